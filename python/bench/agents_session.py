"""RectoSession compared with SQLiteSession of the OpenAI Agents SDK: append and load."""

from __future__ import annotations

import asyncio
import statistics
import time
from pathlib import Path
from typing import Any

from agents import SQLiteSession
from table import Row

from recto import Store
from recto.openai_agents import RectoSession

ITEMS = 600


def item(number: int) -> Any:
    if number % 2:
        arguments = f'{{"path": "src/file_{number}.py"}}'
        call = {"type": "function_call", "call_id": f"c{number}", "name": "read"}
        return {**call, "arguments": arguments}
    output = "\n".join(f"{number} line {line} of the log" for line in range(40))
    return {"type": "function_call_output", "call_id": f"c{number - 1}", "output": output}


async def measured(sessions: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """The 20th percentile of an append of a turn (2 items), and of a load of all items.

    The sessions take turns, so that the load of the machine is the same for both.
    """
    append: dict[str, list[float]] = {name: [] for name in sessions}
    load: dict[str, list[float]] = {name: [] for name in sessions}
    for number in range(1, ITEMS, 2):
        turn = [item(number), item(number + 1)]
        for name, session in sessions.items():
            begin = time.perf_counter()
            await session.add_items(turn)
            append[name].append(time.perf_counter() - begin)
    loaded = {}
    for _ in range(30):
        for name, session in sessions.items():
            begin = time.perf_counter()
            loaded[name] = await session.get_items()
            load[name].append(time.perf_counter() - begin)
    first, *others = loaded.values()
    assert len(first) == ITEMS and all(other == first for other in others)
    fifth = lambda taken: statistics.quantiles(taken, n=5)[0]
    return {name: (fifth(append[name]), fifth(load[name])) for name in sessions}


def rows(folder: Path) -> list[Row]:
    place = folder / "sessions"
    place.mkdir()
    with Store.open(f"sqlite:{place}/recto.db", search=False) as store:
        ours = RectoSession("s", store)
        theirs = SQLiteSession("s", f"{place}/sdk.db")
        times = asyncio.run(measured({"recto": ours, "sdk": theirs}))
        theirs.close()
    (append, load), (their_append, their_load) = times["recto"], times["sdk"]
    return [
        Row(
            "RectoSession: append a turn of 2 items", append, "s", "SQLiteSession", their_append, 1
        ),
        Row(f"… load {ITEMS} items", load, "s", "SQLiteSession", their_load, 1),
    ]
