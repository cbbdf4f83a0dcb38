"""A client of `recto exec`. Run it: python3 examples/exec_client.py"""
import json
from subprocess import PIPE, Popen


class RectoError(Exception):
    """The error of a response: {code, message, field?, details?}."""


class Recto:
    def __init__(self, store):
        self.process = Popen(["recto", "exec", "--store", store], stdin=PIPE, stdout=PIPE, encoding="utf-8")

    def request(self, **fields):
        print(json.dumps(fields), file=self.process.stdin, flush=True)
        response = json.loads(self.process.stdout.readline())
        if "error" in response:
            raise RectoError(response["error"])
        return response


if __name__ == "__main__":
    recto = Recto("memory:")
    recto.request(create="support", messages=[{"role": "user", "content": "Hello"}])
    answer = {"role": "assistant", "content": "Hello! How can I help?"}
    append = {"operation": "APPEND", "messages": [answer]}
    outcome = recto.request(conversation="support", op=append, expectedVersion=0)
    print("version", outcome["version"], "has", outcome["stats"]["currentBatchMessages"], "messages")
    try:
        recto.request(conversation="support", op=append, expectedVersion=0)
    except RectoError as error:
        print("refused:", error.args[0]["code"])
