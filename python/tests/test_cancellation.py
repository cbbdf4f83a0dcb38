"""Cancellation at every await: a change is made completely or not at all, and everything still works."""

import asyncio
import sysconfig
from types import SimpleNamespace

import pytest
from cancelling import cancelled_at_every_await

from recto import AsyncStore, Store

# Without the GIL, a thread may end before the coroutine waits for it.
LEAST_AWAITS = 1 if sysconfig.get_config_var("Py_GIL_DISABLED") else 2


def test_the_helper_cancels_at_each_await():
    seen = []

    def prepare():
        seen.append([])
        return seen[-1]

    async def work(steps):
        for number in range(3):
            steps.append(number)
            await asyncio.sleep(0)
        steps.append("end")

    assert cancelled_at_every_await(prepare, work, lambda *_: None) == 3
    assert seen == [[0], [0, 1], [0, 1, 2], [0, 1, 2, "end"]]


def user(text):
    return {"role": "user", "content": text}


STORE_WORK = {
    "append": (lambda it: it.append([user("c"), user("d")]), {"ab", "abcd"}),
    "hide": (lambda it: it.hide([0, 1]), {"ab", ""}),
    "undo": (lambda it: it.undo(), {"ab", "a"}),
    "rename": (lambda it: it.rename("other"), {"ab"}),
    "fork": (lambda it: it.fork("other"), {"ab"}),
    "remove": (lambda it: it.remove(), {"ab", None}),
    "messages": (lambda it: it.messages(), {"ab"}),
}


@pytest.mark.parametrize("name", STORE_WORK)
def test_the_async_store(name, tmp_path):
    work, allowed = STORE_WORK[name]
    count = 0

    def prepare():
        nonlocal count
        count += 1
        store = Store.open(f"sqlite:{tmp_path}/{count}.db")
        store.create("support", counter="approx").append(user("a"))
        store.conversation("support").append(user("b"))
        return store

    async def run(store):
        conversation = await AsyncStore(store).conversation("support")
        await work(conversation)

    def check(store, cancelled):
        names = [info["name"] for info in store.list()]
        shown = [store.conversation(one).messages() for one in names]
        texts = {"".join(message["content"] for message in one) for one in shown} or {None}
        assert texts <= allowed and store.verify()["sound"]
        store.create("new", counter="approx").append(user("x"))
        store.close()

    assert cancelled_at_every_await(prepare, run, check) >= LEAST_AWAITS


ITEMS = [user("a"), {"role": "assistant", "content": "b"}, user("c")]
SESSION_WORK = {
    "add_items": (lambda it: it.add_items([user("d"), user("e")]), {"abc", "abcde"}),
    "pop_item": (lambda it: it.pop_item(), {"abc", "ab"}),
    "clear_session": (lambda it: it.clear_session(), {"abc", ""}),
    "rewind": (lambda it: it.rewind(steps=2), {"abc", "a"}),
    "undo": (lambda it: it.undo(), {"abc", ""}),
    "fork": (lambda it: it.fork("branch"), {"abc"}),
    "get_items": (lambda it: it.get_items(), {"abc"}),
}


@pytest.mark.parametrize("name", SESSION_WORK)
def test_a_session(name):
    pytest.importorskip("agents")
    from recto.openai_agents import RectoSession

    work, allowed = SESSION_WORK[name]

    def prepare():
        return RectoSession("s", Store.open("memory:"), counter="approx")

    async def run(session):
        await session.add_items(ITEMS)
        await work(session)

    def check(session, cancelled):
        texts = "".join(item["content"] for item in asyncio.run(session.get_items()))
        assert texts in allowed | {""}
        names = {info["name"] for info in session.store.list()}
        assert names <= {"agents/s", "agents/branch"}
        asyncio.run(session.add_items([user("next")]))
        assert asyncio.run(session.pop_item()) == user("next")
        assert session.store.verify()["sound"]

    assert cancelled_at_every_await(prepare, run, check) >= 2


@pytest.mark.parametrize("inner", ["memory", "sqlite", "standalone"])
def test_a_checkpointer(inner, tmp_path):
    pytest.importorskip("langgraph")
    from langchain_core.messages import AIMessage, HumanMessage
    from langgraph.checkpoint.base import empty_checkpoint
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    from recto.langgraph import RectoCheckpointer, RectoSaver

    config = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    messages = [HumanMessage("q", id="1"), AIMessage("a", id="2"), HumanMessage("r", id="3")]
    count = 0

    def prepare():
        nonlocal count
        count += 1
        return SimpleNamespace(store=Store.open("memory:"), memory=InMemorySaver(), number=count)

    async def with_saver(it, work):
        if inner == "sqlite":
            async with AsyncSqliteSaver.from_conn_string(f"{tmp_path}/{it.number}.db") as saver:
                return await work(RectoSaver(saver, it.store, counter="approx"))
        if inner == "memory":
            return await work(RectoSaver(it.memory, it.store, counter="approx"))
        return await work(RectoCheckpointer(it.store, counter="approx"))

    def checkpoint(number):
        made = empty_checkpoint()
        made["id"] = f"{number:08}"
        made["channel_values"] = {"messages": messages[:number], "other": number}
        made["channel_versions"] = {"messages": f"{number:032}.0", "other": f"{number:032}.0"}
        return made

    async def put(saver):
        at = config
        for number in (1, 2, 3):
            made = checkpoint(number)
            at = await saver.aput(at, made, {"step": number}, made["channel_versions"])
            await saver.aput_writes(at, [("messages", messages[number - 1])], f"task {number}")

    async def read(saver):
        return [found async for found in saver.alist(config)]

    def check(it, cancelled):
        found = asyncio.run(with_saver(it, read))
        numbers = [one.checkpoint["channel_values"]["other"] for one in found]
        assert numbers == [*range(len(numbers), 0, -1)]
        for one, number in zip(found, numbers, strict=True):
            assert one.checkpoint["channel_values"]["messages"] == messages[:number]
            assert len(one.pending_writes) == 1 or number == numbers[0]
        # The same work afterwards ends, and gives what it gives without a cancellation.
        asyncio.run(with_saver(it, put))
        again = asyncio.run(with_saver(it, read))
        assert [one.checkpoint["channel_values"]["messages"] for one in again] == [
            messages[:number] for number in (3, 2, 1)
        ]
        assert [len(one.pending_writes) for one in again] == [1, 1, 1]
        assert it.store.verify()["sound"]

    async def run(it):
        await with_saver(it, put)

    assert cancelled_at_every_await(prepare, run, check) >= 3


def test_the_middleware():
    pytest.importorskip("langchain")
    from langchain.agents.middleware import ModelRequest
    from langchain_core.messages import AIMessage, HumanMessage

    from recto.langchain import RectoMiddleware

    messages = [HumanMessage("a line of the log " * 20, id=str(at)) for at in range(20)]

    def prepare():
        return RectoMiddleware(Store.open("memory:"), budget=600, counter="approx")

    async def call(middleware):
        sent = []

        async def handler(request):
            await asyncio.sleep(0)
            sent.append([message.id for message in request.messages])
            return AIMessage("done")

        for end in (5, 10, 20):
            request = ModelRequest(model=None, messages=messages[:end])
            await middleware.awrap_model_call(request, handler)
        return sent

    expected = asyncio.run(call(prepare()))[-1]

    def check(middleware, cancelled):
        assert asyncio.run(call(middleware))[-1][-1] == expected[-1]
        shown, report = middleware.view("default", messages)
        assert report.tokens <= 600 and shown[-1] is messages[-1]
        logged = middleware.conversation("default").query(scope="all")
        ids = [entry["message"]["id"] for entry in logged]
        assert ids == [str(at) for at in range(20)]
        assert middleware.store.verify()["sound"]

    assert cancelled_at_every_await(prepare, call, check) >= 6
