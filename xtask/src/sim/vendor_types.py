"""Checks rendered requests with the request types in the vendors' Python packages.

Usage: vendor_types.py FILE. Each line of FILE is {"target": NAME, "seed": N, "body": REQUEST}. Prints the number
of requests per target, and the first requests that a type rejects; exits with 1 if there is one.
"""

import json
import sys
from collections import Counter

import botocore.loaders
import botocore.model
import botocore.validate
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from google.genai import types as gemini
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import TypeAdapter, ValidationError

# How many rejected requests are printed.
MAX_SHOWN = 5


def read_all(value):
    """Reads lazy iterators to their end: pydantic checks their items only then."""
    if isinstance(value, dict):
        return {key: read_all(item) for key, item in value.items()}
    if isinstance(value, list) or hasattr(value, "__next__"):
        return [read_all(item) for item in value]
    return value


def typed(type_, required):
    """Returns a function that checks a request with a type. `required` has the fields that Recto's caller adds."""
    adapter = TypeAdapter(type_)
    return lambda body: read_all(adapter.validate_python({**required, **body}))


def check_gemini(body):
    for content in body["contents"]:
        gemini.Content.model_validate(content)
    if "systemInstruction" in body:
        gemini.Content.model_validate(body["systemInstruction"])
    for tool in body.get("tools", []):
        gemini.Tool.model_validate(tool)


def check_responses(body):
    """Checks a request of the Responses API.

    Its type requires fields that OpenAI does not require: id, status and annotations of an output message of the
    assistant, and detail of an image. Requests without them were accepted. So they are added before the check.
    """

    def filled(value):
        if isinstance(value, list):
            return [filled(item) for item in value]
        if not isinstance(value, dict):
            return value
        value = {key: filled(item) for key, item in value.items()}
        if value.get("role") == "assistant" and isinstance(value.get("content"), list):
            value = {"id": "msg_1", "status": "completed", **value}
        if value.get("type") == "output_text":
            value = {"annotations": [], **value}
        if value.get("type") == "input_image":
            value = {"detail": "auto", **value}
        return value

    RESPONSES({**body, "input": filled(body["input"])})


RESPONSES = typed(ResponseCreateParamsNonStreaming, {"model": "m"})


class ShapeError(Exception):
    """A request that botocore's description of an AWS service rejects."""

    def errors(self):
        return [{"loc": [], "msg": str(self)}]


def converse():
    """Returns a function that checks a request with botocore's description of the Bedrock service."""
    described = botocore.loaders.Loader().load_service_model("bedrock-runtime", "service-2")
    service = botocore.model.ServiceModel(described)
    shape = service.operation_model("Converse").input_shape

    def check(body):
        report = botocore.validate.ParamValidator().validate({"modelId": "m", **body}, shape)
        if report.has_errors():
            raise ShapeError(report.generate_report())

    return check


CHECKS = {
    "anthropic": typed(MessageCreateParamsNonStreaming, {"model": "m", "max_tokens": 1}),
    "openai-chat": typed(CompletionCreateParamsNonStreaming, {"model": "m"}),
    "openai-responses": check_responses,
    "gemini": check_gemini,
    "bedrock-converse": converse(),
}


def main():
    counts, rejected = Counter(), []
    with open(sys.argv[1], encoding="utf-8") as lines:
        for line in lines:
            request = json.loads(line)
            counts[request["target"]] += 1
            try:
                CHECKS[request["target"]](request["body"])
            except (ValidationError, ShapeError) as error:
                rejected.append((request, error))
    print(", ".join(f"{count} {target}" for target, count in sorted(counts.items())), end="")
    print(f": {len(rejected)} rejected")
    for request, error in rejected[:MAX_SHOWN]:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        print(f"{request['target']}, seed {request['seed']}: {where}: {first['msg']}")
        print(json.dumps(request["body"], ensure_ascii=False)[:2000])
    if not counts:
        sys.exit("there are no requests")
    sys.exit(1 if rejected else 0)


main()
