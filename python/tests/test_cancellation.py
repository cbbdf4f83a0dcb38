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
    "apply": (lambda it: it.apply([{"operation": "TRUNCATE", "keepLast": 1}]), {"ab", "b"}),
    "erase": (lambda it: it.erase([0]), {"ab", "[erased]b"}),
    "prune": (lambda it: it.prune(keep_versions=1), {"ab"}),
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


TWO = [user("a"), user("b")]
CREATING_WORK = {
    "create": lambda it: it.create("new", counter="approx", messages=TWO),
    "import": lambda it: it.import_transcript("new", TWO, format="openai-chat"),
    "conversation": lambda it: it.conversation("new", create=True),
    "open": lambda it: AsyncStore.open(it.address),
    "verify": lambda it: it.verify(),
}


@pytest.mark.parametrize("name", CREATING_WORK)
def test_what_the_async_store_creates(name, tmp_path):
    count = 0

    def prepare():
        nonlocal count
        count += 1
        return Store.open(f"sqlite:{tmp_path}/{count}.db")

    async def run(store):
        await CREATING_WORK[name](AsyncStore(store))

    def check(store, cancelled):
        shown = [store.conversation(info["name"]).messages() for info in store.list()]
        creates = name not in ("open", "verify")
        expected = [] if name == "conversation" else TWO
        # A change that has started is made.
        assert shown == ([expected] if creates else []) or (cancelled and shown == [])
        store.conversation("new", create=True).append(user("c"))
        assert store.verify()["sound"]
        store.close()

    assert cancelled_at_every_await(prepare, run, check) >= LEAST_AWAITS - 1


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


def savers(inner, folder):
    """A function that runs ``work`` with a saver of a kind, on the stores of one attempt."""
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    from recto.langgraph import RectoCheckpointer, RectoSaver

    async def with_saver(it, work):
        if inner == "sqlite":
            async with AsyncSqliteSaver.from_conn_string(f"{folder}/{it.number}.db") as saver:
                return await work(RectoSaver(saver, it.store, counter="approx"))
        if inner == "memory":
            return await work(RectoSaver(it.memory, it.store, counter="approx"))
        return await work(RectoCheckpointer(it.store, counter="approx"))

    return with_saver


@pytest.mark.parametrize("inner", ["memory", "sqlite", "standalone"])
def test_a_checkpointer(inner, tmp_path):
    pytest.importorskip("langgraph")
    from langchain_core.messages import AIMessage, HumanMessage
    from langgraph.checkpoint.base import empty_checkpoint
    from langgraph.checkpoint.memory import InMemorySaver

    config = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    messages = [HumanMessage("q", id="1"), AIMessage("a", id="2"), HumanMessage("r", id="3")]
    count = 0

    def prepare():
        nonlocal count
        count += 1
        return SimpleNamespace(store=Store.open("memory:"), memory=InMemorySaver(), number=count)

    with_saver = savers(inner, tmp_path)

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


CHECKPOINTER_WORK = {
    "acopy_thread": (lambda it: it.acopy_thread("t", "copy"), [{"t": 3}, {"t": 3, "copy": 3}]),
    "aprune": (lambda it: it.aprune(["t"]), [{"t": 3}, {"t": 1}]),
    "aprune all": (lambda it: it.aprune(["t"], strategy="delete"), [{"t": 3}, {}]),
    "adelete_thread": (lambda it: it.adelete_thread("t"), [{"t": 3}, {}]),
    "adelete_for_runs": (lambda it: it.adelete_for_runs(["r2"]), [{"t": 3}, {"t": 2}]),
    "aget_tuple": (lambda it: it.aget_tuple({"configurable": {"thread_id": "t"}}), [{"t": 3}]),
}


# The threads of aiosqlite do not survive a cancellation while a file is opened.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("name", CHECKPOINTER_WORK)
@pytest.mark.parametrize("inner", ["memory", "sqlite", "standalone"])
def test_threads_of_a_checkpointer(inner, name, tmp_path):
    pytest.importorskip("langgraph")
    from langchain_core.messages import HumanMessage
    from langgraph.checkpoint.base import empty_checkpoint
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.checkpoint.sqlite import SqliteSaver

    from recto.langgraph import RectoCheckpointer, RectoSaver

    work, allowed = CHECKPOINTER_WORK[name]
    messages = [HumanMessage(str(number), id=str(number)) for number in range(3)]

    with_saver = savers(inner, tmp_path)

    def fill(saver):
        at = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        for number in (1, 2, 3):
            made = empty_checkpoint()
            made["id"] = f"{number:08}"
            made["channel_values"] = {"messages": messages[:number]}
            made["channel_versions"] = {"messages": f"{number:032}.0"}
            versions = made["channel_versions"]
            at = saver.put(at, made, {"run_id": f"r{number}"}, versions)
            saver.put_writes(at, [("messages", messages[number - 1])], "task")

    async def run(it):
        await with_saver(it, work)

    async def read(saver):
        found = {}
        for thread in ("t", "copy"):
            config = {"configurable": {"thread_id": thread}}
            listed = [one async for one in saver.alist(config)]
            for one in listed:
                number = int(one.config["configurable"]["checkpoint_id"])
                assert one.checkpoint["channel_values"]["messages"] == messages[:number]
                assert len(one.pending_writes) == 1
            if listed:
                found[thread] = len(listed)
        return found

    count = 0

    def prepare():
        nonlocal count
        count += 1
        it = SimpleNamespace(store=Store.open("memory:"), memory=InMemorySaver(), number=count)
        if inner == "sqlite":
            with SqliteSaver.from_conn_string(f"{tmp_path}/{count}.db") as saver:
                fill(RectoSaver(saver, it.store, counter="approx"))
        elif inner == "memory":
            fill(RectoSaver(it.memory, it.store, counter="approx"))
        else:
            fill(RectoCheckpointer(it.store, counter="approx"))
        return it

    def check(it, cancelled):
        found = asyncio.run(with_saver(it, read))
        assert found in (allowed if cancelled else allowed[-1:])
        # The same work afterwards ends, and gives what it gives without a cancellation.
        if "copy" not in found:
            asyncio.run(with_saver(it, work))
            assert asyncio.run(with_saver(it, read)) == allowed[-1]
        assert it.store.verify()["sound"]

    assert cancelled_at_every_await(prepare, run, check) >= 1


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


CONVERSATION_WORK = {
    "save": (lambda it, one: it.save(one), [2, 4]),
    "branch": (lambda it, one: it.branch("t", at=1, expected_revision=one.revision), [2, 1]),
    "fork": (lambda it, one: it.fork("t", new_conversation_id="fork"), [2]),
    "delete": (lambda it, one: it.delete("t"), [2, 0]),
    "load": (lambda it, one: it.load("t"), [2]),
}


@pytest.mark.parametrize("name", CONVERSATION_WORK)
def test_a_conversation_store(name, tmp_path):
    pytest.importorskip("pydantic_ai")
    from pydantic_ai.conversation import Conversation
    from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart

    from recto.pydantic_ai import RectoConversationStore

    work, allowed = CONVERSATION_WORK[name]
    count = 0

    def turn():
        return [ModelRequest(parts=[UserPromptPart("q")]), ModelResponse(parts=[TextPart("a")])]

    def prepare():
        nonlocal count
        count += 1
        address = f"sqlite:{tmp_path}/{count}.db"
        return RectoConversationStore(Store.open(address), counter="approx")

    async def run(store):
        conversation = Conversation(conversation_id="t", messages=turn())
        await store.save(conversation)
        conversation = await store.load("t")
        if name == "save":
            conversation.messages.extend(turn())
        await work(store, conversation)

    async def lengths(store):
        found = {}
        for record in await store.list_conversations(limit=10):
            loaded = await store.load(record.conversation_id)
            found[record.conversation_id] = len(loaded.messages)
        return found

    def check(store, cancelled):
        found = asyncio.run(lengths(store))
        assert found.get("t", 0) in ([0, *allowed] if cancelled else allowed[-1:])
        assert found.get("fork", 2) == 2
        if not cancelled:
            assert ("fork" in found) is (name == "fork")

        # A writer continues.
        async def more():
            conversation = await store.load("t") or Conversation(conversation_id="t")
            conversation.messages.extend(turn())
            await store.save(conversation)
            return len((await store.load("t")).messages)

        assert asyncio.run(more()) == found.get("t", 0) + 2
        assert store.store.verify()["sound"]
        store.store.close()

    assert cancelled_at_every_await(prepare, run, check) >= 3


def test_the_capability_of_pydantic_ai():
    pytest.importorskip("pydantic_ai")
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    from recto.pydantic_ai import RectoContext

    def prepare():
        return RectoContext(budget=400, counter="approx")

    async def run_agent(context):
        sent = []

        async def answer(messages, info):
            await asyncio.sleep(0)
            sent.append(len(messages))
            if len(sent) < 8:
                return ModelResponse(parts=[ToolCallPart("read", {}, tool_call_id=f"c{len(sent)}")])
            return ModelResponse(parts=[TextPart("done")])

        agent = Agent(FunctionModel(answer), capabilities=[context])
        agent.tool_plain(name="read")(lambda: "a line of the log\n" * 20)
        await agent.run("go")
        return sent

    expected = asyncio.run(run_agent(prepare()))
    assert max(expected) < 15

    def check(context, cancelled):
        # The run that was cancelled leaves nothing that changes another run.
        assert asyncio.run(run_agent(context)) == expected

    assert cancelled_at_every_await(prepare, run_agent, check) >= 8
