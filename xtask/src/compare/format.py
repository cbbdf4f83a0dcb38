"""Reads chat completions with json and LangChain, and writes them again: megabytes per second, and
milliseconds for the whole list, each in the fastest of several runs."""

import json
import sys
import time

from langchain_core.messages import convert_to_messages
from langchain_core.messages.utils import convert_to_openai_messages


def fastest(run, seconds=3.0):
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end or best == float("inf"):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    size = len(text.encode()) / 1e6
    lines = text.splitlines()
    messages = convert_to_messages([json.loads(line) for line in lines])

    def read():
        return convert_to_messages([json.loads(line) for line in lines])

    def write():
        return "\n".join(json.dumps(message) for message in convert_to_openai_messages(messages))

    def render():
        return json.dumps({"messages": convert_to_openai_messages(messages)})

    print(json.dumps({
        "import": size / fastest(read),
        "export": size / fastest(write),
        "render": fastest(render) * 1e3,
    }))


main()
