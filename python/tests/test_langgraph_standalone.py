"""RectoCheckpointer: LangGraph without another checkpointer."""

import asyncio
import threading

import pytest

pytest.importorskip("langgraph")

from langgraph.checkpoint.memory import InMemorySaver
from test_langgraph import agent, run, scenario, state

from recto import Store
from recto.langgraph import RectoCheckpointer


@pytest.mark.parametrize("seed", range(12))
def test_the_history_is_that_of_langgraphs_own_saver(seed):
    expected = scenario(InMemorySaver(), seed)
    store = Store.open("memory:")
    assert scenario(RectoCheckpointer(store, counter="approx"), seed) == expected
    assert store.verify()["sound"]


def test_a_copied_thread_shares_everything(tmp_path):
    path = tmp_path / "talks.db"
    with Store.open(f"sqlite:{path}", search=False) as store:
        saver = RectoCheckpointer(store)
        app = agent(saver, calls=40)
        messages = run(app)
        for number in range(20):
            saver.copy_thread("t", f"copy{number}")
        assert state(app, "copy7") == messages
        histories = [
            [one.values for one in app.get_state_history({"configurable": {"thread_id": thread}})]
            for thread in ("t", "copy7")
        ]
        assert histories[0] == histories[1]
        listed = [one.config["configurable"]["thread_id"] for one in saver.list(None)]
        assert set(listed) == {"t", *(f"copy{number}" for number in range(20))}
        more = run(app, "copy7")
        assert state(app) == messages and state(app, "copy7") == more
        entries = store.conversation("t//checkpoints").stats()["totalMessages"]
        forked = store.conversation("copy3//checkpoints").info()
        assert forked["forkedFrom"] and forked["version"] <= entries + 1
        saver.delete_thread("t")
        assert state(app) == [] and state(app, "copy7") == more


def test_an_interrupted_copy_is_not_listed_as_its_source():
    store = Store.open("memory:")
    saver = RectoCheckpointer(store)
    run(agent(saver, calls=1))
    count = len([*saver.list(None)])
    # What a process leaves that ends between the fork of the ledger and its first message.
    store.conversation("t//checkpoints").fork("copy//checkpoints")
    assert len([*saver.list(None)]) == count > 0


def test_pruned_threads_are_read_by_another_process(tmp_path):
    address = f"sqlite:{tmp_path}/talks.db"
    with Store.open(address) as store:
        saver = RectoCheckpointer(store)
        app = agent(saver, calls=5)
        messages = run(app)
        saver.prune(["t"])
        assert len([*saver.list({"configurable": {"thread_id": "t"}})]) == 1
    with Store.open(address) as store:
        saver = RectoCheckpointer(store)
        app = agent(saver, calls=5)
        assert state(app) == messages
        assert len([*saver.list({"configurable": {"thread_id": "t"}})]) == 1
        assert run(app)[: len(messages)] == messages


def test_a_deleted_thread_that_another_store_creates_again(tmp_path):
    address = f"sqlite:{tmp_path}/talks.db"
    with Store.open(address) as one, Store.open(address) as other:
        first, second = (agent(RectoCheckpointer(store), calls=2) for store in (one, other))
        run(first)
        assert len(state(second)) == 6
        first.checkpointer.delete_thread("t")
        expected = run(agent(RectoCheckpointer(one), calls=4), text="again")
        assert state(second) == expected


def test_many_threads_and_an_event_loop():
    saver = RectoCheckpointer(Store.open("memory:"), counter="approx")
    app = agent(saver, calls=2)
    workers = [threading.Thread(target=run, args=(app, f"t{n}")) for n in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    async def later():
        config = {"configurable": {"thread_id": "a"}}
        await app.ainvoke({"messages": [("user", "go")]}, config)
        found = await app.aget_state(config)
        return found.values["messages"], [one async for one in saver.alist(config)]

    messages, found = asyncio.run(later())
    assert messages == found[0].checkpoint["channel_values"]["messages"]
    assert len({one.config["configurable"]["thread_id"] for one in saver.list(None)}) == 7
