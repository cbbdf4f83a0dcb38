"""RectoSaver in LangGraph."""

import asyncio
import random
import sqlite3
from contextlib import asynccontextmanager, contextmanager
from typing import Annotated

import pytest
from hostile import IDS

pytest.importorskip("langgraph")

from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES, _messages_delta_reducer
from typing_extensions import TypedDict

import recto
from recto import Store
from recto.langgraph import RectoCheckpointer, RectoSaver


@checkpointer_test(name="RectoSaver(InMemorySaver)")
async def over_memory():
    yield RectoSaver(InMemorySaver(), Store.open("memory:"))


@checkpointer_test(name="RectoSaver(AsyncSqliteSaver)")
async def over_sqlite():
    async with AsyncSqliteSaver.from_conn_string(":memory:") as inner:
        yield RectoSaver(inner, Store.open("memory:"))


@checkpointer_test(name="RectoCheckpointer")
async def standalone():
    yield RectoCheckpointer(Store.open("memory:"))


def check_conformance(saver):
    report = asyncio.run(validate(saver))
    assert report.passed_all(), report
    for capability, result in report.results.items():
        assert result.detected and result.passed, (capability, result.failures)


@pytest.mark.parametrize("saver", [over_memory, over_sqlite, standalone])
def test_the_conformance_suite_passes_with_all_capabilities(saver):
    check_conformance(saver)


@pytest.mark.parametrize("kind", ["file", "server"])
def test_the_conformance_suite_passes_with_a_file_and_with_a_server(kind, tmp_path, request):
    address = f"sqlite:{tmp_path}/recto.db"
    if kind == "server":
        address = request.getfixturevalue("postgres")

    @checkpointer_test(name=f"RectoCheckpointer ({kind})")
    async def saver():
        with Store.open(address) as store:
            yield RectoCheckpointer(store)

    check_conformance(saver)


def test_the_conformance_suite_passes_with_two_databases_of_a_server(postgres):
    module = pytest.importorskip("langgraph.checkpoint.postgres.aio")

    @checkpointer_test(name="RectoSaver(AsyncPostgresSaver)")
    async def saver():
        async with module.AsyncPostgresSaver.from_conn_string(postgres) as inner:
            await inner.setup()
            with Store.open(postgres) as store:
                yield RectoSaver(inner, store)

    check_conformance(saver)


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


class IntegerVersions(InMemorySaver):
    """Numbers the versions of a channel from the parent on, as the base class does."""

    get_next_version = BaseCheckpointSaver.get_next_version


@pytest.mark.parametrize("seed", range(6))
def test_branches_with_the_same_channel_version_keep_their_messages(seed):
    expected = scenario(IntegerVersions(), seed)
    saver = RectoSaver(IntegerVersions(), Store.open("memory:"), counter="approx")
    assert scenario(saver, seed) == expected


def agent(saver, calls=20):
    from langchain.agents import create_agent
    from scripted import ScriptedModel, read

    model = ScriptedModel(calls=calls, requests=[], refused=[])
    return create_agent(model, [read], checkpointer=saver)


def run(app, thread="t", text="go"):
    config = {"configurable": {"thread_id": thread}, "recursion_limit": 1000}
    return app.invoke({"messages": [("user", text)]}, config)["messages"]


def state(app, thread="t"):
    return app.get_state({"configurable": {"thread_id": thread}}).values.get("messages", [])


def test_storage_grows_with_what_is_new(tmp_path):
    def size(name):
        return sum(file.stat().st_size for file in tmp_path.glob(f"{name}*"))

    connection = sqlite3.connect(tmp_path / "plain.db", check_same_thread=False)
    run(agent(SqliteSaver(connection), calls=60))
    connection.close()
    connection = sqlite3.connect(tmp_path / "with.db", check_same_thread=False)
    with Store.open(f"sqlite:{tmp_path}/with-recto.db") as store:
        saver = RectoSaver(SqliteSaver(connection), store)
        app = agent(saver, calls=60)
        messages = run(app)
        assert state(app) == messages and len(messages) == 122
        conversation = saver.conversation("t")
        assert conversation.stats()["totalMessages"] == 122
        assert len(conversation.messages(at=2)) == 2
    connection.close()
    assert size("with") * 5 < size("plain")


def test_a_new_process_reads_what_another_one_stored(tmp_path):
    connection = sqlite3.connect(tmp_path / "inner.db", check_same_thread=False)
    address = f"sqlite:{tmp_path}/recto.db"
    with Store.open(address) as store:
        messages = run(agent(RectoSaver(SqliteSaver(connection), store), calls=3))
    with Store.open(address) as store:
        saver = RectoSaver(SqliteSaver(connection), store)
        app = agent(saver, calls=3)
        assert state(app) == messages
        more = run(app)
        assert more[: len(messages)] == messages
        # Nothing was stored twice.
        assert saver.conversation("t").stats()["totalMessages"] == len(more)
    connection.close()


def test_two_processes_on_one_thread():
    inner, store = InMemorySaver(), Store.open("memory:")
    apps = [agent(RectoSaver(inner, store), calls=2) for _ in range(2)]
    for number in range(6):
        before = state(apps[number % 2])
        after = run(apps[number % 2])
        assert after[: len(before)] == before
        assert state(apps[0]) == state(apps[1]) == after


def test_copied_pruned_and_deleted_threads():
    inner, store = InMemorySaver(), Store.open("memory:")
    saver = RectoSaver(inner, store)
    app = agent(saver, calls=3)
    messages = run(app, "a/b")
    run(app, "a")
    saver.copy_thread("a/b", "copy")
    assert state(app, "copy") == messages
    assert saver.conversation("copy").info()["forkedFrom"]
    old = [*app.get_state_history({"configurable": {"thread_id": "copy"}})]
    expected = [*app.get_state_history({"configurable": {"thread_id": "a/b"}})]
    assert [one.values for one in old] == [one.values for one in expected]
    more = run(app, "copy")
    assert state(app, "a/b") == messages and state(app, "copy") == more
    saver.prune(["copy"])
    assert state(app, "copy") == more
    assert len([*app.get_state_history({"configurable": {"thread_id": "copy"}})]) == 1
    saver.delete_thread("a/b")
    assert state(app, "a/b") == [] and state(app, "copy") == more and len(state(app, "a")) == 8
    saver.delete_thread("copy")
    saver.delete_thread("a")
    assert store.list() == []


def test_a_prune_leaves_no_message_of_a_deleted_checkpoint():
    inner, store = InMemorySaver(), Store.open("memory:")
    saver = RectoSaver(inner, store)
    app, identity = graph(saver, random.Random(1))
    message = HumanMessage("secret", id=identity())
    app.update_state(CONFIG, {"messages": [message]}, as_node="o")
    app.update_state(CONFIG, {"messages": [RemoveMessage(id=message.id)]}, as_node="o")
    # The newest checkpoint has no messages, so it refers to no conversation.
    assert app.get_state(CONFIG).values["messages"] == [] and store.search("secret")
    saver.prune([CONFIG["configurable"]["thread_id"]])
    assert store.search("secret") == [] and store.list() == []
    app.update_state(CONFIG, {"messages": [HumanMessage("new", id=identity())]}, as_node="o")
    assert [one.content for one in app.get_state(CONFIG).values["messages"]] == ["new"]


def test_messages_that_are_not_json_stay_in_the_inner_saver():
    inner, store = InMemorySaver(), Store.open("memory:")
    saver = RectoSaver(inner, store)
    app, identity = graph(saver, random.Random(1))
    special = ToolMessage("x", tool_call_id="c", artifact={1, 2}, id=identity())
    app.update_state(CONFIG, {"messages": [HumanMessage("u", id=identity())]}, as_node="o")
    app.update_state(CONFIG, {"messages": [special]}, as_node="o")
    assert app.get_state(CONFIG).values["messages"][-1] == special
    assert saver.conversation("t").stats()["totalMessages"] == 1


def test_encrypted_messages_are_not_stored_in_clear():
    from langgraph.checkpoint.serde.base import CipherProtocol
    from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

    class Reversed(CipherProtocol):
        def encrypt(self, plaintext):
            return "reversed", plaintext[::-1]

        def decrypt(self, ciphername, ciphertext):
            return ciphertext[::-1]

    store = Store.open("memory:")
    app = agent(RectoSaver(InMemorySaver(serde=EncryptedSerializer(Reversed())), store), calls=1)
    messages = run(app)
    assert state(app) == messages and store.list() == []


class Inverting(JsonPlusSerializer):
    """Stands for an application's own serializer that encrypts."""

    def dumps_typed(self, obj):
        kind, data = super().dumps_typed(obj)
        return kind, bytes(255 - byte for byte in data)

    def loads_typed(self, data):
        return super().loads_typed((data[0], bytes(255 - byte for byte in data[1])))


def test_messages_of_an_unknown_serializer_are_not_stored_in_clear():
    store = Store.open("memory:")
    app = agent(RectoSaver(InMemorySaver(serde=Inverting()), store), calls=1)
    messages = run(app)
    assert state(app) == messages and len(messages) == 4
    assert store.list() == []
    ledger = RectoCheckpointer(store, serde=Inverting())
    messages = run(agent(ledger, calls=1), text="a secret question")
    assert state(agent(ledger)) == messages
    assert all(info["name"].endswith("//checkpoints") for info in store.list())
    assert "secret" not in str(store.conversation(store.list()[0]["name"]).messages())
    # An explicit option allows it.
    clear = RectoSaver(InMemorySaver(serde=Inverting()), store, messages_in_clear=True)
    assert len(run(agent(clear, calls=1))) == 4
    assert len(clear.conversation("t").messages()) == 4


class Growing(TypedDict):
    messages: Annotated[list, DeltaChannel(_messages_delta_reducer)]


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("kind", ["wrapper", "standalone"])
def test_a_thread_that_changes_to_a_delta_channel(kind, mode):
    def node(values):
        return {"messages": [AIMessage(f"a{len(values['messages'])}")]}

    def app(schema, saver):
        builder = StateGraph(schema)
        builder.add_node("n", node)
        builder.add_edge(START, "n")
        builder.add_edge("n", END)
        return builder.compile(checkpointer=saver)

    def texts(saver):
        found = []
        for schema in (MessagesState, MessagesState, Growing, Growing):
            given = {"messages": [HumanMessage("u", id=f"u{len(found)}")]}
            graph = app(schema, saver)
            if mode == "sync":
                values = graph.invoke(given, CONFIG)
                values = graph.get_state(CONFIG).values
            else:
                values = asyncio.run(graph.ainvoke(given, CONFIG))
                values = asyncio.run(graph.aget_state(CONFIG)).values
            found.append([message.text for message in values["messages"]])
        return found

    store = Store.open("memory:")
    if kind == "wrapper":
        # InMemorySaver of langgraph-checkpoint 4.1.0 loses the first new message.
        assert texts(RectoSaver(InMemorySaver(), store)) == texts(InMemorySaver())
    else:
        whole = ["u", "a1", "u", "a3", "u", "a5", "u", "a7"]
        assert texts(RectoCheckpointer(store)) == [whole[:end] for end in (2, 4, 6, 8)]


def test_wrong_arguments():
    for wrong in ("x", None, Store.open("memory:")):
        with pytest.raises(TypeError, match="inner"):
            RectoSaver(wrong, "memory:")
    with pytest.raises(TypeError, match="store"):
        RectoSaver(InMemorySaver(), 7)
    with pytest.raises(TypeError, match="store"):
        RectoCheckpointer(None)
    with pytest.raises(recto.InvalidRequest) as error:
        RectoSaver(InMemorySaver(), "memory:").prune(["t"], strategy="some")
    assert error.value.field == "strategy"


def test_a_message_that_was_changed_in_place_is_stored():
    saver = RectoSaver(InMemorySaver(), Store.open("memory:"))

    def node(values):
        values["messages"][0].content = "changed"
        return {"messages": [AIMessage("done")]}

    builder = StateGraph(MessagesState)
    builder.add_node("n", node)
    builder.add_edge(START, "n")
    builder.add_edge("n", END)
    app = builder.compile(checkpointer=saver)
    app.invoke({"messages": [HumanMessage("hello")]}, CONFIG)
    assert state(app)[0].content == "changed"


def test_equal_messages_make_no_version():
    saver = RectoSaver(InMemorySaver(), Store.open("memory:"))
    app = agent(saver, calls=3)
    run(app)
    version = saver.conversation("t").version()
    config = {"configurable": {"thread_id": "t"}}
    for _ in range(3):
        for _ in range(2):
            copies = [message.model_copy(deep=True) for message in state(app)]
        app.update_state(config, {"messages": copies}, as_node="model")
    assert saver.conversation("t").version() == version
    assert len(run(app)) == 16 and saver.conversation("t").stats()["totalMessages"] == 16


def test_a_crash_between_the_two_writes():
    def crashing(kind):
        class Crashing(kind):
            left = 5

            def put(self, config, checkpoint, metadata, new_versions):
                if isinstance(self, RectoSaver):
                    self._without_messages(config, checkpoint)
                self.left -= 1
                if self.left == 0:
                    raise KeyboardInterrupt
                return super().put(config, checkpoint, metadata, new_versions)

        return Crashing

    def texts(crashes, saver):
        with pytest.raises(KeyboardInterrupt):
            run(agent(crashes, calls=4))
        app = agent(saver, calls=4)
        found = [[message.text for message in state(app)]]
        found.append([message.text for message in run(app, text="again")])
        return [*found, [message.text for message in state(app)]]

    plain = crashing(InMemorySaver)()
    expected = texts(plain, plain)
    inner, store = InMemorySaver(), Store.open("memory:")
    assert texts(crashing(RectoSaver)(inner, store), RectoSaver(inner, store)) == expected
    assert store.verify()["sound"]


def test_any_thread_id_is_a_name():
    saver = RectoSaver(InMemorySaver(), Store.open("memory:"))
    app = agent(saver, calls=1)
    for thread in IDS:
        messages = run(app, thread)
        assert state(app, thread) == messages
    assert len(saver.store.list()) == len(IDS)


@contextmanager
def sync_inner(kind, folder, request):
    if kind == "memory":
        yield InMemorySaver()
    elif kind == "sqlite":
        with SqliteSaver.from_conn_string(f"{folder}/inner.db") as inner:
            yield inner
    else:
        module = pytest.importorskip("langgraph.checkpoint.postgres")
        address = request.getfixturevalue("postgres")
        with module.PostgresSaver.from_conn_string(address) as inner:
            inner.setup()
            yield inner


@asynccontextmanager
async def async_inner(kind, folder, address):
    if kind == "memory":
        yield InMemorySaver()
    elif kind == "sqlite":
        async with AsyncSqliteSaver.from_conn_string(f"{folder}/inner.db") as inner:
            yield inner
    else:
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

        async with AsyncPostgresSaver.from_conn_string(address) as inner:
            await inner.setup()
            yield inner


def checkpoint_of(number, messages):
    made = empty_checkpoint()
    made["id"] = f"{number:08}"
    made["channel_values"] = {"messages": messages, "other": number}
    made["channel_versions"] = {"messages": f"{number:032}.0", "other": f"{number:032}.0"}
    return made


def written(thread, namespace):
    """Checkpoints of runs a, b, a, b, …: their configurations, contents and metadata."""
    messages = [HumanMessage(f"m{at}", id=str(at)) for at in range(6)]
    config = {"configurable": {"thread_id": thread, "checkpoint_ns": namespace}}
    for number in range(1, 7):
        made = checkpoint_of(number, messages[:number])
        run_id = "ab"[number % 2]
        yield config, made, {"source": "loop", "step": number, "run_id": run_id}
        place = {**config["configurable"], "checkpoint_id": made["id"]}
        config = {"configurable": place}


def ids(found, namespace=""):
    return [
        one.config["configurable"]["checkpoint_id"]
        for one in found
        if one.config["configurable"]["checkpoint_ns"] == namespace
    ]


DELETED = ["00000005", "00000003", "00000001"]


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
def test_deleted_runs_and_pruned_threads(kind, tmp_path, request):
    with sync_inner(kind, tmp_path, request) as inner:
        saver = RectoSaver(inner, Store.open("memory:"), counter="approx")
        for thread in ("t", "other"):
            for namespace in ("", "child"):
                for config, made, metadata in written(thread, namespace):
                    at = saver.put(config, made, metadata, made["channel_versions"])
                    saver.put_writes(at, [("messages", made["id"])], f"task {made['id']}")
        config = {"configurable": {"thread_id": "t"}}
        saver.delete_for_runs(["b", "missing"])
        found = [*saver.list(config)]
        assert ids(found) == ids(found, "child") == ["00000006", "00000004", "00000002"]
        shown = [len(one.checkpoint["channel_values"]["messages"]) for one in found]
        assert sorted(shown) == [2, 2, 4, 4, 6, 6]
        assert all(len(one.pending_writes) == 1 for one in found)
        saver.prune(["t"])
        found = [*saver.list(config)]
        assert ids(found) == ids(found, "child") == ["00000006"]
        assert [len(one.checkpoint["channel_values"]["messages"]) for one in found] == [6, 6]
        others = [*saver.list({"configurable": {"thread_id": "other"}})]
        assert ids(others) == ["00000006", "00000004", "00000002"]
        assert all(len(one.checkpoint["channel_values"]["messages"]) > 1 for one in others)
        saver.prune(["t"], strategy="delete")
        assert [*saver.list(config)] == []
        assert len(saver.store.list()) == 2 and saver.store.verify()["sound"]


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
def test_deleted_runs_and_pruned_threads_of_an_event_loop(kind, tmp_path, request):
    if kind == "postgres":
        pytest.importorskip("langgraph.checkpoint.postgres")
    address = request.getfixturevalue("postgres") if kind == "postgres" else ""

    async def work():
        async with async_inner(kind, tmp_path, address) as inner:
            saver = RectoSaver(inner, Store.open("memory:"), counter="approx")
            for config, made, metadata in written("t", ""):
                at = await saver.aput(config, made, metadata, made["channel_versions"])
                await saver.aput_writes(at, [("messages", "x")], f"task {made['id']}")
            config = {"configurable": {"thread_id": "t"}}
            await saver.adelete_for_runs(["b"])
            found = [one async for one in saver.alist(config)]
            assert ids(found) == ["00000006", "00000004", "00000002"]
            await saver.acopy_thread("t", "copy")
            await saver.aprune(["t"])
            found = [one async for one in saver.alist(config)]
            assert ids(found) == ["00000006"] and len(found[0].pending_writes) == 1
            assert len(found[0].checkpoint["channel_values"]["messages"]) == 6
            copied = [one async for one in saver.alist({"configurable": {"thread_id": "copy"}})]
            assert ids(copied) == ["00000006", "00000004", "00000002"]
            assert [len(one.checkpoint["channel_values"]["messages"]) for one in copied] == [
                6,
                4,
                2,
            ]

    asyncio.run(work())


class Pruning(InMemorySaver):
    """Has its own deletion, as the saver of an application. It keeps the two newest checkpoints."""

    def prune(self, thread_ids, *, strategy="keep_latest"):
        self.pruned = (*thread_ids, strategy)
        for thread in thread_ids:
            kept = sorted(self.storage[thread][""])[-2:]
            for identity in set(self.storage[thread][""]).difference(kept):
                del self.storage[thread][""][identity]

    async def aprune(self, thread_ids, *, strategy="keep_latest"):
        self.prune(thread_ids, strategy=strategy)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_saver_that_prunes_itself(mode):
    saver = RectoSaver(Pruning(), Store.open("memory:"), counter="approx")
    messages = [HumanMessage(f"m{at}", id=str(at)) for at in range(6)]
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    for number in range(6):  # each checkpoint has another message
        made = checkpoint_of(number, [messages[number]])
        saver.put(config, made, {}, made["channel_versions"])
    if mode == "sync":
        saver.prune(["t"])
    else:
        asyncio.run(saver.aprune(["t"]))
    assert saver.inner.pruned == ("t", "keep_latest")
    found = [*saver.list({"configurable": {"thread_id": "t"}})]
    shown = [one.checkpoint["channel_values"]["messages"] for one in found]
    assert shown == [[messages[5]], [messages[4]]]
    logged = saver.conversation("t").query(scope="all")
    assert sum("m0" in str(entry["message"]) for entry in logged) == 0


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_step_of_another_writer_while_a_thread_is_copied(mode):
    """The other writer adds a checkpoint while the copy reads the checkpoints."""
    store = Store.open("memory:")

    class Busy(InMemorySaver):
        is_busy = False

        def list(self, config, **options):
            if self.is_busy and config["configurable"]["thread_id"] == "t":
                self.is_busy = False
                other = RectoSaver(self, store, counter="approx")
                made = checkpoint_of(2, [HumanMessage("a", id="a"), HumanMessage("b", id="b")])
                place = {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "00000001"}
                other.put({"configurable": place}, made, {}, made["channel_versions"])
            yield from super().list(config, **options)

        async def alist(self, config, **options):
            for one in self.list(config, **options):
                yield one

    inner = Busy()
    saver = RectoSaver(inner, store, counter="approx")
    made = checkpoint_of(1, [HumanMessage("a", id="a")])
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    saver.put(config, made, {}, made["channel_versions"])
    inner.is_busy = True
    if mode == "sync":
        saver.copy_thread("t", "copy")
    else:
        asyncio.run(saver.acopy_thread("t", "copy"))
    copied = [*saver.list({"configurable": {"thread_id": "copy"}})]
    shown = [len(one.checkpoint["channel_values"]["messages"]) for one in copied]
    assert shown == [2, 1] and not inner.is_busy


@pytest.mark.parametrize("kind", ["wrapper", "standalone"])
def test_a_copy_that_ended_before_its_checkpoints_is_repeated(kind):
    store = Store.open("memory:")
    saver = RectoSaver(InMemorySaver(), store) if kind == "wrapper" else RectoCheckpointer(store)
    app = agent(saver, calls=2)
    messages = run(app)
    # What a process leaves that ends after the forks.
    saver.conversation("t").fork(saver.conversation("copy").name, at=1)
    saver.copy_thread("t", "copy")
    assert state(app, "copy") == messages and len(state(app, "copy")) == 6
    more = run(app, "copy")
    with pytest.raises(recto.ConversationExists):  # a thread with checkpoints is not replaced
        saver.copy_thread("t", "copy")
    assert state(app, "copy") == more and store.verify()["sound"]


def test_another_process_deletes_the_thread_of_a_run(tmp_path):
    address, inner = f"sqlite:{tmp_path}/recto.db", InMemorySaver()
    with Store.open(address) as one, Store.open(address) as other:
        first, second = RectoSaver(inner, one), RectoSaver(inner, other)
        app = agent(first, calls=2)
        messages = run(app)
        second.delete_thread("t")
        assert state(app) == []
        made = checkpoint_of(1, [*messages, HumanMessage("new", id="new")])
        config = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        at = first.put(config, made, {}, made["channel_versions"])
        found = second.get_tuple(at)
        assert found.checkpoint["channel_values"]["messages"][-1].id == "new"
        assert len(found.checkpoint["channel_values"]["messages"]) == len(messages) + 1
        assert one.verify()["sound"]
