"""Calls from Python into the native module: an empty call, an APPEND, and memory."""

from __future__ import annotations

import time
from pathlib import Path

from table import Row

from recto import RectoError, Store, count_tokens

CALLS = 100_000
TEXT = "".join(f"line {number:03d} of the log. " for number in range(20))[:320]


def fastest(work: object, count: int, rounds: int = 30) -> float:
    """The processor time of one call, in the fastest of many short rounds."""
    best = float("inf")
    for _ in range(rounds):
        begin = time.process_time()
        for _ in range(count):
            work()  # type: ignore[operator]
        best = min(best, (time.process_time() - begin) / count)
    return best


def rows(_: Path) -> list[Row]:
    store = Store.open("memory:")
    native = store._native

    def python_call() -> None:
        return None

    plain = fastest(python_call, 20_000)
    loop = fastest_loop()
    empty = fastest(native.is_closed, 20_000) - loop
    found = [
        Row("an empty call of the native module", empty, "s", "", 100e-9, 1),
        Row(
            "… compared with an empty function in Python", empty, "s", "Python", plain - loop, None
        ),
    ]
    for counter, limit in (("o200k_base", 1), ("approx", 1)):
        conversation = store.create(counter, counter=counter)
        taken = fastest(
            lambda conversation=conversation: conversation.append(
                {"role": "user", "content": TEXT}
            ),
            300,
        )
        found.append(Row(f"APPEND of 320 bytes, memory:, {counter}", taken, "s", "", 25e-6, limit))
    grown = growth(store)
    found.append(Row(f"memory that {CALLS:,} calls leave", max(grown, 1), "B", "", 2 << 20, 1))
    return found


def fastest_loop() -> float:
    best = float("inf")
    for _ in range(30):
        begin = time.process_time()
        for _ in range(20_000):
            pass
        best = min(best, (time.process_time() - begin) / 20_000)
    return best


def growth(store: Store) -> int:
    """Bytes of resident memory that many calls leave, after a warm-up."""
    conversation = store.create(
        "memory", counter="approx", messages=[{"role": "user", "content": TEXT}]
    )

    def work(count: int) -> None:
        for number in range(count):
            if number % 3 == 0:
                conversation.stats()
            elif number % 3 == 1:
                count_tokens([{"role": "user", "content": TEXT}], counter="approx")
            else:
                try:
                    store.request({"list": 7})  # refused
                except RectoError:
                    pass

    work(CALLS // 10)
    before = resident()
    work(CALLS)
    return resident() - before


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
