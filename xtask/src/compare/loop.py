#!/usr/bin/env python3
"""Measures a turn of an agent with LangGraph, LangChain's SummarizationMiddleware and the SQLite saver.

    python loop.py URL MESSAGES TURNS ROUND

URL is a server with the API of OpenAI's chat completions. The benchmark `loop` starts this script and
measures the same turn with Recto. The state has MESSAGES messages. (Messages that were summarised before
would be in older checkpoints, which a turn does not read, so there are none.) Prints {"median", "usual",
"bytes"}: the seconds of a turn without the time of the server, in the fastest round of ROUND turns and
over all turns, and the bytes of the last request.
"""
import json
import os
import sqlite3
import statistics
import sys
import tempfile
import time
import urllib.request

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.sqlite import SqliteSaver


class Served(BaseChatModel):
    """A model over HTTP. The time of its responses is measured separately."""

    url: str
    waited: float = 0.0
    sent: int = 0

    @property
    def _llm_type(self):
        return "served"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        # The time to write the request counts for the turn; the time to send it does not.
        body = json.dumps({"model": "gpt-5", "messages": convert_to_openai_messages(messages)})
        body = body.encode()
        start = time.perf_counter()
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(self.url, body, headers)
        with urllib.request.urlopen(request) as response:
            answer = json.load(response)
        self.waited += time.perf_counter() - start
        self.sent = len(body)
        usage = answer["usage"]
        message = AIMessage(
            answer["choices"][0]["message"]["content"],
            usage_metadata={
                "input_tokens": usage["prompt_tokens"],
                "output_tokens": usage["completion_tokens"],
                "total_tokens": usage["prompt_tokens"] + usage["completion_tokens"],
            },
        )
        return ChatResult(generations=[ChatGeneration(message=message)])


def main(url, messages, turns, size):
    os.environ["LANGSMITH_TRACING"] = "false"
    model = Served(url=url)
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(os.path.join(folder, "conversations.db"), check_same_thread=False)
        agent = create_agent(
            model,
            tools=[],
            middleware=[
                SummarizationMiddleware(model, trigger=("tokens", 900_000), keep=("messages", 200))
            ],
            checkpointer=SqliteSaver(connection),
        )
        thread = {"configurable": {"thread_id": "talk"}}
        text = "turn {}: " + "the gateway times out now and then " * 6
        kinds = [HumanMessage, AIMessage]
        state = [kinds[n % 2](text.format(n)) for n in range(messages)]
        agent.update_state(thread, {"messages": state})
        took = []
        for turn in range(turns):
            model.waited = 0.0
            start = time.perf_counter()
            said = {"messages": [HumanMessage(f"And now, in turn {turn}?")]}
            agent.invoke(said, thread, durability="sync")
            took.append(time.perf_counter() - start - model.waited)
        connection.close()
    took = took[size:]  # the first turns open things
    rounds = [took[at : at + size] for at in range(0, len(took), size)]
    median = min(statistics.median(turns) for turns in rounds)
    print(json.dumps({"median": median, "usual": statistics.median(took), "bytes": model.sent}))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]))
