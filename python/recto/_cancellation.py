"""Runs changes of a store to their end, even if the task is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def completed(change: Callable[..., T], *arguments: object, **options: object) -> T:
    """Runs a change in a thread and waits for it.

    If the caller is cancelled meanwhile, the cancellation is raised after the change.
    """
    task = asyncio.ensure_future(asyncio.to_thread(change, *arguments, **options))
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = cancelled or error
    if cancelled is not None:
        task.exception()  # marks the exception as retrieved, so that asyncio does not log it
        raise cancelled
    return task.result()
