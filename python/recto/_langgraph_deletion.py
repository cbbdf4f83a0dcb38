"""Deletes single checkpoints, for which the interface of LangGraph's checkpointers has no method."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver

_SQL = (
    "DELETE FROM writes WHERE thread_id = {0} AND checkpoint_ns = {0} AND checkpoint_id = {0}",
    "DELETE FROM checkpoints WHERE thread_id = {0} AND checkpoint_ns = {0} AND checkpoint_id = {0}",
)


def delete_checkpoints(
    inner: BaseCheckpointSaver[Any], keys: Sequence[tuple[str, str, str]]
) -> None:
    if not keys:
        return
    inner_any: Any = inner
    kind = type(inner).__module__
    if hasattr(inner, "delete_checkpoints"):
        inner_any.delete_checkpoints(keys)
    elif hasattr(inner, "storage") and hasattr(inner, "writes"):
        for thread, namespace, identity in keys:
            inner_any.storage[thread][namespace].pop(identity, None)
            inner_any.writes.pop((thread, namespace, identity), None)
    elif kind == "langgraph.checkpoint.sqlite":
        with inner_any.cursor() as cursor:
            for statement in _SQL:
                cursor.executemany(statement.format("?"), keys)
    elif kind.startswith("langgraph.checkpoint.postgres") and hasattr(inner, "_cursor"):
        with inner_any._cursor(pipeline=True) as cursor:
            for statement in _SQL:
                name = statement.replace("writes", "checkpoint_writes", 1).format("%s")
                cursor.executemany(name, keys)
    else:
        raise _cannot_delete(inner)


async def adelete_checkpoints(
    inner: BaseCheckpointSaver[Any], keys: Sequence[tuple[str, str, str]]
) -> None:
    if not keys:
        return
    inner_any: Any = inner
    kind = type(inner).__module__
    if kind == "langgraph.checkpoint.sqlite.aio":
        async with inner_any.lock, inner_any.conn.cursor() as cursor:
            for statement in _SQL:
                await cursor.executemany(statement.format("?"), keys)
            await inner_any.conn.commit()
    elif kind == "langgraph.checkpoint.postgres.aio":
        async with inner_any._cursor(pipeline=True) as cursor:
            for statement in _SQL:
                name = statement.replace("writes", "checkpoint_writes", 1).format("%s")
                await cursor.executemany(name, keys)
    else:
        await asyncio.to_thread(delete_checkpoints, inner, keys)


def _cannot_delete(inner: BaseCheckpointSaver[Any]) -> NotImplementedError:
    name = type(inner).__name__
    return NotImplementedError(
        f"{name} has no method that deletes single checkpoints; use InMemorySaver, SqliteSaver or "
        "PostgresSaver, or implement delete_for_runs and delete_checkpoints"
    )
