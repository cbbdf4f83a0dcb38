"""RectoSaver in LangGraph."""

import asyncio
import random

import pytest

pytest.importorskip("langgraph")

from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from recto import Store
from recto.langgraph import RectoSaver


@checkpointer_test(name="RectoSaver(InMemorySaver)")
async def over_memory():
    yield RectoSaver(InMemorySaver(), Store.open("memory:"))


@checkpointer_test(name="RectoSaver(AsyncSqliteSaver)")
async def over_sqlite():
    async with AsyncSqliteSaver.from_conn_string(":memory:") as inner:
        yield RectoSaver(inner, Store.open("memory:"))


@pytest.mark.parametrize("saver", [over_memory, over_sqlite])
def test_the_conformance_suite_passes_with_all_capabilities(saver):
    report = asyncio.run(validate(saver))
    assert report.passed_all(), report
    for capability, result in report.results.items():
        assert result.detected and result.passed, (capability, result.failures)


def graph(saver, rnd):
    """A graph that adds, removes and replaces messages at random."""
    count = 0

    def identity():
        nonlocal count
        count += 1
        return f"m{count}"

    def node(state):
        messages, chance = state["messages"], rnd.random()
        out = [AIMessage(content=f"a{count}", id=identity())]
        if messages and chance < 0.15:
            out.append(RemoveMessage(id=rnd.choice(messages).id))
        elif messages and chance < 0.3:
            message = rnd.choice(messages)
            out.append(type(message)(content=message.content + "!", id=message.id))
        elif chance < 0.36:
            out = [RemoveMessage(id=REMOVE_ALL_MESSAGES), *messages[-2:], *out]
        return {"messages": out}

    builder = StateGraph(MessagesState)
    builder.add_node("n", node)
    builder.add_node("o", node)
    builder.add_edge(START, "n")
    builder.add_edge("n", "o")
    builder.add_edge("o", END)
    return builder.compile(checkpointer=saver), identity


CONFIG = {"configurable": {"thread_id": "t"}}


def history(app):
    found = [*app.get_state_history(CONFIG)]
    rows = [
        (one.metadata["step"], one.metadata["source"], one.values.get("messages", []), one.next)
        for one in found
    ]
    return rows, found


def scenario(saver, seed, steps=10):
    rnd = random.Random(seed)
    app, identity = graph(saver, rnd)
    for _ in range(steps):
        _, found = history(app)
        config = CONFIG if rnd.random() < 0.6 or not found else rnd.choice(found).config
        try:
            if rnd.random() < 0.2:
                edit = HumanMessage(content="edit", id=identity())
                app.update_state(config, {"messages": [edit]}, as_node="o")
            else:
                app.invoke({"messages": [HumanMessage(content="u", id=identity())]}, config)
        except ValueError:
            pass  # a message that does not exist is removed
    return history(app)[0]


@pytest.mark.parametrize("seed", range(12))
def test_the_history_is_that_of_the_inner_saver(seed):
    expected = scenario(InMemorySaver(), seed)
    store = Store.open("memory:")
    assert scenario(RectoSaver(InMemorySaver(), store, counter="approx"), seed) == expected
    assert store.verify()["sound"]
