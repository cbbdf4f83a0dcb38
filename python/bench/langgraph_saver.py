"""RectoSaver compared with SqliteSaver alone and with DeltaChannel: storage, and the time of a step."""

import random
import sqlite3
import statistics
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import _messages_delta_reducer, add_messages
from table import Row

from recto import Store
from recto.langgraph import RectoSaver

THREAD = {"configurable": {"thread_id": "run"}}
KINDS = ("sqlite", "delta", "recto", "standalone")
NOTHING = "nothing"
LABELS = {
    "sqlite": "SqliteSaver",
    "delta": "SqliteSaver with DeltaChannel",
    "recto": "RectoSaver(SqliteSaver)",
    "standalone": "RectoCheckpointer",
}


def message(number: int) -> BaseMessage:
    """A message of an agent run: a tool call, then its result of 1.2 KB."""
    identity, call = f"m{number:06d}", f"call_{number // 2}"
    if number == 0:
        return HumanMessage("Why does checkout fail?", id=identity)
    if number % 2:
        calls = [{"id": call, "name": "read", "args": {"path": f"src/file_{number}.py"}}]
        return AIMessage(f"I read file {number}.", tool_calls=calls, id=identity)
    rnd = random.Random(number)
    lines = [f"{rnd.random():.17f} line {line} of the log" for line in range(28)]
    return ToolMessage("\n".join(lines), tool_call_id=f"call_{(number - 1) // 2}", id=identity)


def graph(saver: Any, kind: str, count: int, marks: list[float], first: int = 0) -> Any:
    """A graph that adds one message in each step until the state has ``first + count`` messages."""
    channel: Any = add_messages
    if kind == "delta":
        channel = DeltaChannel(_messages_delta_reducer, snapshot_frequency=100)

    class State(TypedDict):
        messages: Annotated[list, channel]

    done = first

    def step(_: State) -> dict[str, Any]:
        nonlocal done
        marks.append(time.perf_counter())
        done += 1
        return {"messages": [message(done - 1)]}

    builder = StateGraph(State)
    builder.add_node("step", step)
    builder.add_edge(START, "step")
    last = first + count
    builder.add_conditional_edges("step", lambda _: END if done == last else "step", ["step", END])
    return builder.compile(checkpointer=saver)


class StoresNothing(BaseCheckpointSaver[str]):
    """A saver for the time that LangGraph itself needs for a step."""

    def get_tuple(self, config: Any) -> None:
        return None

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        return {"configurable": {**config["configurable"], "checkpoint_id": checkpoint["id"]}}

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        pass


@contextmanager
def saver_of(kind: str, folder: Path) -> Iterator[Any]:
    if kind == NOTHING:
        yield StoresNothing()
        return
    if kind == "standalone":
        from recto.langgraph import RectoCheckpointer

        with Store.open(f"sqlite:{folder}/recto.db", search=False) as store:
            yield RectoCheckpointer(store)
        return
    with SqliteSaver.from_conn_string(f"{folder}/inner.db") as inner:
        if kind != "recto":
            yield inner
            return
        with Store.open(f"sqlite:{folder}/recto.db", search=False) as store:
            yield RectoSaver(inner, store)


def stored_bytes(folder: Path) -> int:
    for file in folder.glob("*.db"):
        with sqlite3.connect(file) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.close()
    return sum(file.stat().st_size for file in folder.iterdir())


def run(kind: str, folder: Path, count: int) -> dict[str, Any]:
    """Stores a run from its first message on. A step ends when its checkpoint is committed."""
    folder.mkdir()
    marks: list[float] = []
    with saver_of(kind, folder) as saver:
        app = graph(saver, kind, count, marks)
        config = {**THREAD, "recursion_limit": count + 10}
        app.invoke({"messages": []}, config, durability="sync")
        marks.append(time.perf_counter())
        begin = time.perf_counter()
        state = app.get_state(THREAD).values["messages"]
        load = time.perf_counter() - begin
        assert state == [message(number) for number in range(count)]
    return {"bytes": stored_bytes(folder), "load": load}


def step_at(kinds: tuple[str, ...], folder: Path, size: int, steps: int = 20) -> dict[str, float]:
    """The time of a step of a thread that already has ``size`` messages: the 20th percentile.

    The savers take turns, so that the load of the machine is the same for all of them. Other programs
    interrupt more than half of the steps on a busy machine, so that a median would measure them.
    """
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    for round_ in range(5):
        for kind in kinds:
            place = folder / f"{kind}-{size}-{round_}"
            place.mkdir()
            marks: list[float] = []
            with saver_of(kind, place) as saver:
                app = graph(saver, kind, steps, marks, first=size)
                given = {"messages": [message(number) for number in range(size)]}
                app.invoke(given, {**THREAD, "recursion_limit": steps + 10}, durability="sync")
            # The first step also stores all the messages that were given.
            times[kind] += [after - before for before, after in pairwise(marks[2:])]
    return {kind: statistics.quantiles(taken, n=5)[0] for kind, taken in times.items()}


def rows(folder: Path, *, messages: int = 600, many: int = 2000) -> list[Row]:
    warnings.filterwarnings("ignore")
    kinds = tuple(kind for kind in KINDS if kind != "standalone" or _has_standalone())
    runs = {kind: run(kind, folder / kind, messages) for kind in kinds}
    at_few, at_many = (step_at((NOTHING, *kinds), folder, size) for size in (messages, many))
    plain, delta = runs["sqlite"], runs["delta"]["bytes"]
    found: list[Row] = []
    for kind in kinds[2:]:
        size, own = runs[kind]["bytes"], at_many[kind] - at_many[NOTHING]
        plain_own = at_many["sqlite"] - at_many[NOTHING]
        found += [
            Row(
                f"{LABELS[kind]}: storage of {messages} messages",
                size,
                "B",
                "SqliteSaver",
                plain["bytes"],
                50,
            ),
            Row("… compared with DeltaChannel", size, "B", "DeltaChannel", delta, 1),
            Row(
                f"… a step at {messages} messages",
                at_few[kind],
                "s",
                "SqliteSaver",
                at_few["sqlite"],
                1,
            ),
            Row(
                f"… a step at {many:,} messages",
                at_many[kind],
                "s",
                "SqliteSaver",
                at_many["sqlite"],
                5,
            ),
            Row("… without the time of LangGraph itself", own, "s", "SqliteSaver", plain_own, None),
            Row(
                "… compared with DeltaChannel",
                at_many[kind],
                "s",
                "DeltaChannel",
                at_many["delta"],
                None,
            ),
            Row(
                f"… load {messages} messages",
                runs[kind]["load"],
                "s",
                "SqliteSaver",
                plain["load"],
                None,
            ),
        ]
    return found


def _has_standalone() -> bool:
    import recto.langgraph

    return hasattr(recto.langgraph, "RectoCheckpointer")
