"""RectoSaver with processes that end or run at the same time, and with interrupts."""

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("langgraph")

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from recto import Store
from recto.langgraph import RectoCheckpointer, RectoSaver

CONFIG = {"configurable": {"thread_id": "t"}}


def graph(saver):
    """A graph of two nodes, each of which adds a message with the number of messages before it."""

    def node(state):
        count = len(state["messages"])
        return {"messages": [AIMessage(f"a{count}", id=f"a{count}")]}

    builder = StateGraph(MessagesState)
    builder.add_node("n", node)
    builder.add_node("o", node)
    builder.add_edge(START, "n")
    builder.add_edge("n", "o")
    builder.add_edge("o", END)
    return builder.compile(checkpointer=saver)


def checkpoints(app):
    return [
        (one.metadata["step"], [message.text for message in one.values.get("messages", [])])
        for one in app.get_state_history(CONFIG)
    ]


KILLED = """
import os, signal, sqlite3, sys
sys.path.insert(0, {tests!r})
from test_langgraph_crashes import *

class Killing(SqliteSaver):
    left = {left}
    def put(self, config, checkpoint, metadata, new_versions):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)  # the messages are stored, the checkpoint is not
        return super().put(config, checkpoint, metadata, new_versions)

inner = Killing(sqlite3.connect({folder!r} + "/inner.db", check_same_thread=False))
saver = RectoSaver(inner, "sqlite:" + {folder!r} + "/recto.db") if {wrapped} else inner
for number in range(3):
    graph(saver).invoke(
        {{"messages": [HumanMessage("u", id=f"u{{number}}")]}}, CONFIG, durability="sync"
    )
"""


@pytest.mark.parametrize("left", [1, 2, 5, 8])
def test_kill_between_the_two_writes(left, tmp_path):
    seen = []
    for wrapped in (False, True):
        folder = tmp_path / str(wrapped)
        folder.mkdir()
        tests = str(Path(__file__).parent)
        program = KILLED.format(tests=tests, left=left, folder=str(folder), wrapped=wrapped)
        run = [sys.executable, "-W", "ignore", "-c", program]
        done = subprocess.run(run, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr
        connection = sqlite3.connect(folder / "inner.db", check_same_thread=False)
        saver = SqliteSaver(connection)
        if wrapped:
            saver = RectoSaver(saver, Store.open(f"sqlite:{folder}/recto.db"))
        app = graph(saver)
        found = [checkpoints(app)]
        if wrapped and left == 2:  # the version of the checkpoint that was not written
            newest = found[0][0][1]
            assert len(saver.conversation("t").messages()) == len(newest) + 1
        if found[0]:
            app.invoke(None, CONFIG)  # the interrupted turn
        app.invoke({"messages": [HumanMessage("u", id="next")]}, CONFIG)
        found.append(checkpoints(app))
        seen.append(found)
        if wrapped:
            assert saver.store.verify()["sound"]
            saver.store.close()
        connection.close()
    assert seen[0] == seen[1]
    assert seen[0][1][0][1][-1].startswith("a")


CONCURRENT = """
import sqlite3, sys
sys.path.insert(0, {tests!r})
from test_langgraph_crashes import *

connection = sqlite3.connect({folder!r} + "/inner.db", check_same_thread=False, timeout=60)
saver = {saver}
for number in range(8):
    given = {{"messages": [HumanMessage("u", id=f"u{{sys.argv[1]}} {{number}}")]}}
    graph(saver).invoke(given, CONFIG, durability="sync")
"""


@pytest.mark.parametrize("kind", ["wrapper", "standalone"])
def test_two_processes_on_one_thread_at_the_same_time(kind, tmp_path):
    address = f"sqlite:{tmp_path}/recto.db"
    saver = f"RectoCheckpointer({address!r})"
    if kind == "wrapper":
        saver = f"RectoSaver(SqliteSaver(connection), {address!r})"
    tests = str(Path(__file__).parent)
    program = CONCURRENT.format(tests=tests, folder=str(tmp_path), saver=saver)
    connection = sqlite3.connect(tmp_path / "inner.db", check_same_thread=False)
    inner = SqliteSaver(connection)
    inner.setup()
    command = [sys.executable, "-W", "ignore", "-c", program]
    running = [
        subprocess.Popen([*command, str(number)], stderr=subprocess.PIPE, text=True)
        for number in range(2)
    ]
    for process in running:
        _, errors = process.communicate(timeout=240)
        assert process.returncode == 0, errors
    with Store.open(address) as store:
        ours = RectoSaver(inner, store) if kind == "wrapper" else RectoCheckpointer(store)
        found = {one.config["configurable"]["checkpoint_id"]: one for one in ours.list(CONFIG)}
        assert len(found) == 2 * 8 * 4
        ids = {None: []}
        for identity, one in found.items():
            messages = one.checkpoint["channel_values"].get("messages", [])
            ids[identity] = [message.id for message in messages]
        for identity, one in found.items():
            parent = one.parent_config and one.parent_config["configurable"]["checkpoint_id"]
            before = ids[parent]
            # A step adds at most one message to those of its parent.
            assert ids[identity][: len(before)] == before
            assert len(ids[identity]) <= len(before) + 1
        assert store.verify()["sound"]
    connection.close()


@pytest.mark.parametrize("kind", ["wrapper", "standalone"])
def test_an_interrupt_is_resumed(kind, tmp_path):
    def ask(state):
        answer = interrupt({"question": "continue?", "messages": len(state["messages"])})
        return {"messages": [AIMessage(f"answer {answer}", id=f"i{len(state['messages'])}")]}

    def observed(make):
        seen = []
        for number in range(3):
            # Each step has a new checkpointer, as in a new process.
            given = {"messages": [HumanMessage("u", id=f"u{number}")]}
            for value in (given, Command(resume=f"yes {number}")):
                builder = StateGraph(MessagesState)
                builder.add_node("n", lambda state: {"messages": [AIMessage("n")]})
                builder.add_node("ask", ask)
                builder.add_edge(START, "n")
                builder.add_edge("n", "ask")
                builder.add_edge("ask", END)
                app = builder.compile(checkpointer=make())
                result = app.invoke(value, CONFIG)
                seen.append([message.text for message in result["messages"]])
                asked = [one.value for one in result.get("__interrupt__", ())]
                seen.append((asked, app.get_state(CONFIG).next))
        return [*seen, checkpoints(app)]

    plain, inner = InMemorySaver(), InMemorySaver()
    expected = observed(lambda: plain)
    assert expected[3] == ([], ()) and expected[1][0][0]["messages"] == 2
    with Store.open(f"sqlite:{tmp_path}/recto.db") as store:
        if kind == "wrapper":
            assert observed(lambda: RectoSaver(inner, store)) == expected
        else:
            assert observed(lambda: RectoCheckpointer(store)) == expected
        assert store.verify()["sound"]
