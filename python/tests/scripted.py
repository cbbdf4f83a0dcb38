"""A chat model that follows a script, and a check of requests that providers refuse."""

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool


class ScriptedModel(BaseChatModel):
    """Calls the tool ``read`` a number of times, then answers. Refuses what a provider refuses."""

    calls: int = 5
    requests: list = []
    refused: list = []
    strict: bool = True

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **options):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **options):
        self.requests.append(list(messages))
        broken = violations(messages)
        if broken:
            self.refused.append(broken)
            if self.strict:
                raise ValueError(f"400 invalid request: {broken}")
        number = len(self.requests)
        if number % (self.calls + 1):
            call = {"id": f"call_{number}", "name": "read", "args": {"path": f"f{number}"}}
            message = AIMessage(content=f"I read {number}.", tool_calls=[call])
        else:
            message = AIMessage(content=f"Done {number}.")
        return ChatResult(generations=[ChatGeneration(message=message)])


def violations(messages):
    """Calls without results and results without calls, as providers check them."""
    open_calls, found = set(), []
    for position, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in open_calls:
                found.append((position, "a result without a call"))
            open_calls.discard(message.tool_call_id)
            continue
        if open_calls:
            found.append((position, "a call without a result"))
        calls = message.tool_calls if isinstance(message, AIMessage) else []
        open_calls = {call["id"] for call in calls}
    if open_calls:
        found.append((len(messages), "a call without a result"))
    return found


@tool
def read(path: str) -> str:
    """Reads a file."""
    return "\n".join(f"{path} line {number} of the log" for number in range(25))
