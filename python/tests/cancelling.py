"""Cancels a coroutine at each of its awaits."""

import asyncio


class CancelledAt:
    """Awaits a coroutine, and cancels its task when it waits for the n-th time (from 0)."""

    def __init__(self, coroutine, number):
        self.coroutine = coroutine
        self.number = number
        self.was_cancelled = False

    def __await__(self):
        steps = self.coroutine.__await__()
        count = 0
        advance = steps.send, None
        while True:
            try:
                waiting = advance[0](advance[1])
            except StopIteration as done:
                return done.value
            if count == self.number:
                self.was_cancelled = True
                asyncio.current_task().cancel()
            count += 1
            try:
                advance = steps.send, (yield waiting)
            except BaseException as error:
                advance = steps.throw, error


def cancelled_at_every_await(prepare, work, check):
    """Runs ``work(prepare())`` again and again, each time cancelled at a later await.

    ``check(prepared, cancelled)`` runs when all threads of the event loop have ended. Returns the number
    of awaits.
    """
    number = 0
    while True:
        prepared, cancelled = asyncio.run(_once(prepare, work, number))
        check(prepared, cancelled)
        if not cancelled:
            return number
        number += 1
        assert number < 1000, "the work does not end"


async def _once(prepare, work, number):
    prepared = prepare()
    run = CancelledAt(work(prepared), number)

    async def runner():
        return await run

    try:
        await asyncio.create_task(runner())
    except asyncio.CancelledError:
        assert run.was_cancelled
    return prepared, run.was_cancelled
