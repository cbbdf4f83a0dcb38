"""Runs changes of a store to their end, even if the task is cancelled."""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def completed(change: Callable[..., T], *arguments: object, **options: object) -> T:
    """Runs a change in a thread and waits for it.

    If the caller is cancelled meanwhile, the cancellation is raised after the change.
    """
    call = functools.partial(contextvars.copy_context().run, change, *arguments, **options)
    return await ended(asyncio.get_running_loop().run_in_executor(None, call))


async def ended(running: asyncio.Future[T]) -> T:
    """Waits for a thread or task. If the caller is cancelled meanwhile, the cancellation is raised afterwards."""
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait({running})
        except asyncio.CancelledError as error:
            cancelled = cancelled or error
    if cancelled is not None:
        if not running.cancelled():
            running.exception()  # marks the exception as retrieved, so that asyncio does not log it
        raise cancelled
    return running.result()
