"""Checkpoints of LangGraph as messages of a conversation: the ledger of a thread.

A ledger has one message for each checkpoint and for each call of ``put_writes``. Checkpoints and writes are
only appended, so concurrent writers need no lock. A row is the value of ``metadata.langgraph`` of a message. A
deletion appends a row that names the deleted checkpoints, hides their messages and prunes the ledger.
A fork of a ledger is a copy of its thread.
"""

from __future__ import annotations

import asyncio
import base64
import random
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
)

from ._fork import starts_again_in_child
from .errors import ConversationNotFound
from .store import Conversation, Store

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.serde.base import SerializerProtocol

KEY = "langgraph"
SUFFIX = "//checkpoints"
"""Suffix of the names of ledgers. Other conversations of a thread do not have it: ``/`` in an id is escaped."""
_END = 2**31

Key = tuple[str, str]
"""A namespace and the id of a checkpoint."""


class _Ledger:
    """Index of a ledger: the log indices of its checkpoints and writes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.start_again()
        starts_again_in_child(self)

    def start_again(self) -> None:
        self.lock = threading.Lock()
        self.clear()

    def clear(self) -> None:
        self.thread_id = ""
        self.id = ""
        self.version = -1
        self.length = 0
        self.checkpoints: dict[Key, int] = {}
        self.writes: dict[Key, list[int]] = {}

    def read(self, index: int, row: dict[str, Any] | None) -> None:
        """Adds the row at a log index to this index. ``None`` stands for a row that was pruned."""
        self.length = max(self.length, index + 1)
        if row is None:
            pass
        elif row["kind"] == "thread":
            self.thread_id = row["thread_id"]
        elif row["kind"] == "deleted":
            for namespace, identity in row["keys"]:
                self.checkpoints.pop((namespace, identity), None)
                self.writes.pop((namespace, identity), None)
        elif row["kind"] == "checkpoint":
            self.checkpoints[row["ns"], row["id"]] = index
        else:
            self.writes.setdefault((row["ns"], row["id"]), []).append(index)


class _Ledgers:
    """The ledgers that this process has read. LangGraph copies savers, and the copies share them."""

    def __init__(self) -> None:
        self._by_name: dict[str, _Ledger] = {}
        self.start_again()
        starts_again_in_child(self)

    def start_again(self) -> None:
        self._lock = threading.Lock()

    def ledger(self, name: str) -> _Ledger:
        with self._lock:
            ledger = self._by_name.get(name)
            if ledger is None:
                ledger = self._by_name[name] = _Ledger(name)
            return ledger

    def forget(self, name: str) -> None:
        with self._lock:
            self._by_name.pop(name, None)


class LedgerSaver(BaseCheckpointSaver[str]):
    """A checkpointer that keeps checkpoints in a Recto store. ``RectoCheckpointer`` adds the messages."""

    def __init__(self, store: Store, base: Any, *, serde: SerializerProtocol | None = None) -> None:
        super().__init__(serde=serde)
        self.store = store
        self._base = base
        """Function: thread id -> the name of its conversations without their namespace."""
        self._ledgers = _Ledgers()

    def get_next_version(self, current: str | None, channel: None) -> str:
        number = int(str(current).split(".")[0]) + 1 if current is not None else 1
        return f"{number:032}.{random.random():016}"

    # Ledgers

    def ledger(self, thread_id: object) -> Conversation:
        return self.store.conversation(self._base(thread_id) + SUFFIX)

    def _open(self, name: str) -> _Ledger | None:
        """The index of a ledger, with the rows of other processes. ``None`` if there is no ledger."""
        ledger = self._ledgers.ledger(name)
        conversation = self.store.conversation(name)
        with ledger.lock:
            try:
                info = conversation.info()
                if ledger.id and ledger.id != info["id"]:  # it was removed and created again
                    ledger.clear()
                if info["version"] != ledger.version:
                    span = {"start": ledger.length, "end": _END}
                    for entry in conversation.query(scope="all", range=span):
                        ledger.read(entry["index"], _row(entry))
                ledger.id, ledger.version = info["id"], info["version"]
                return ledger
            except ConversationNotFound:
                self._ledgers.forget(name)
                return None

    def _add(self, thread_id: str, row: dict[str, Any]) -> None:
        conversation = self.ledger(thread_id)
        try:
            conversation.append(_message(row))
        except ConversationNotFound:
            self.store.conversation(conversation.name, create={"counter": "approx"})
            conversation.append(
                [_message({"kind": "thread", "thread_id": thread_id}), _message(row)]
            )

    def _threads(self, config: RunnableConfig | None) -> Iterator[_Ledger]:
        if config is not None:
            ledger = self._open(self._base(config.get("configurable", {})["thread_id"]) + SUFFIX)
            if ledger is not None:
                yield ledger
            return
        for info in self.store.conversations():
            if info["name"].endswith(SUFFIX):
                ledger = self._open(info["name"])
                # A copy that was interrupted still has the thread id of its source.
                if ledger is not None and self._base(ledger.thread_id) + SUFFIX == ledger.name:
                    yield ledger

    # Reading

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        configurable = config.get("configurable", {})
        namespace, identity = configurable.get("checkpoint_ns", ""), get_checkpoint_id(config)
        for ledger in self._threads(config):
            if identity is None:
                found = [key[1] for key in [*ledger.checkpoints] if key[0] == namespace]
                identity = max(found, default=None)
            if identity is not None and (namespace, identity) in ledger.checkpoints:
                return self._tuple(ledger, (namespace, identity), str(configurable["thread_id"]))
        return None

    def _tuple(self, ledger: _Ledger, key: Key, thread_id: str) -> CheckpointTuple | None:
        try:
            wanted = [ledger.checkpoints[key], *ledger.writes.get(key, ())]
        except KeyError:
            return None  # it was deleted meanwhile
        entries = self.store.conversation(ledger.name).entries(wanted)
        rows = [row for entry in entries if (row := _row(entry)) is not None]
        if len(rows) != len(wanted):
            return None
        first, *others = rows
        parent = first["parent"]
        return CheckpointTuple(
            _config(thread_id, key[0], key[1]),
            self._loads(first["checkpoint"]),
            self._loads(first["metadata"]),
            None if parent is None else _config(thread_id, key[0], parent),
            self._pending(others),
        )

    def _pending(self, rows: list[dict[str, Any]]) -> list[tuple[str, str, Any]]:
        found: dict[tuple[str, str, int], tuple[str, Any]] = {}
        for row in rows:
            is_replaced = all(channel in WRITES_IDX_MAP for _, channel, _ in row["writes"])
            for at, channel, value in row["writes"]:
                key = (row["path"], row["task"], at)
                if is_replaced or key not in found:
                    found[key] = (channel, value)
        return [
            (key[1], channel, self._loads(value)) for key, (channel, value) in sorted(found.items())
        ]

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        configurable = {} if config is None else config.get("configurable", {})
        namespace, identity = configurable.get("checkpoint_ns"), configurable.get("checkpoint_id")
        end = None if before is None else get_checkpoint_id(before)
        keys = [
            (key, ledger)
            for ledger in self._threads(config)
            for key in [*ledger.checkpoints]
            if (namespace is None or key[0] == namespace)
            and (identity is None or key[1] == identity)
            and (end is None or key[1] < end)
        ]
        keys.sort(key=lambda one: one[0][1], reverse=True)
        count = 0
        for key, ledger in keys:
            if limit is not None and count >= limit:
                return
            thread_id = str(configurable.get("thread_id", ledger.thread_id))
            found = self._tuple(ledger, key, thread_id)
            if found is not None and _matches(found.metadata, filter):
                count += 1
                yield found

    # Writing

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        configurable = config.get("configurable", {})
        thread_id, namespace = str(configurable["thread_id"]), configurable.get("checkpoint_ns", "")
        row = {
            "kind": "checkpoint",
            "ns": namespace,
            "id": checkpoint["id"],
            "parent": configurable.get("checkpoint_id"),
            "checkpoint": self._dumps(checkpoint),
            "metadata": self._dumps(get_checkpoint_metadata(config, metadata)),
        }
        self._add(thread_id, row)
        return _config(thread_id, namespace, checkpoint["id"])

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        configurable = config.get("configurable", {})
        row = {
            "kind": "writes",
            "ns": configurable.get("checkpoint_ns", ""),
            "id": configurable["checkpoint_id"],
            "task": task_id,
            "path": task_path,
            "writes": [
                (WRITES_IDX_MAP.get(channel, at), channel, self._dumps(value))
                for at, (channel, value) in enumerate(writes)
            ],
        }
        self._add(str(configurable["thread_id"]), row)

    def delete_thread(self, thread_id: str) -> None:
        try:
            self.ledger(thread_id).remove()
        except ConversationNotFound:
            pass

    def version(self, thread_id: str) -> int | None:
        """The version of the ledger of a thread. ``None`` if there is no ledger."""
        ledger = self._open(self._base(thread_id) + SUFFIX)
        return None if ledger is None else ledger.version

    def fork(self, source: str, target: str, version: int) -> None:
        """Copies the checkpoints that the ledger of a thread had at a version."""
        forked = self.ledger(source).fork(self._base(target) + SUFFIX, at=version)
        forked.append(_message({"kind": "thread", "thread_id": target}))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        for run_id in run_ids:
            found = [
                one.config.get("configurable", {})
                for one in self.list(None, filter={"run_id": run_id})
            ]
            self.delete_checkpoints(
                [(one["thread_id"], one["checkpoint_ns"], one["checkpoint_id"]) for one in found]
            )

    def delete_checkpoints(self, keys: Sequence[tuple[str, str, str]]) -> None:
        """Deletes single checkpoints, given as thread id, namespace and checkpoint id."""
        threads: dict[str, list[Key]] = {}
        for thread_id, namespace, identity in keys:
            threads.setdefault(thread_id, []).append((namespace, identity))
        for thread_id, deleted in threads.items():
            ledger = self._open(self._base(thread_id) + SUFFIX)
            if ledger is None:
                continue
            places = [ledger.checkpoints[key] for key in deleted if key in ledger.checkpoints]
            places += [place for key in deleted for place in ledger.writes.get(key, ())]
            if not places:
                continue
            self._add(thread_id, {"kind": "deleted", "keys": deleted})
            # A prune overwrites only messages that no kept version and no fork shows, so they are hidden first.
            conversation = self.ledger(thread_id)
            conversation.hide(places, description="checkpoints deleted")
            conversation.prune(keep_versions=1)

    # Async variants, which do not block the event loop

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (one := await asyncio.to_thread(next, found, None)) is not None:
            yield one

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    # Values

    def _dumps(self, value: Any) -> tuple[str, str]:
        kind, data = self.serde.dumps_typed(value)
        return kind, base64.b64encode(data).decode()

    def _loads(self, value: Sequence[str]) -> Any:
        return self.serde.loads_typed((value[0], base64.b64decode(value[1])))


def _message(row: dict[str, Any]) -> Any:
    content = [{"type": f"langgraph_{row['kind']}"}]
    return {"role": "user", "content": content, "metadata": {KEY: row}}


def _row(entry: Any) -> dict[str, Any] | None:
    return (entry["message"].get("metadata") or {}).get(KEY)


def _config(thread_id: str, namespace: str, identity: str) -> RunnableConfig:
    return {
        "configurable": {
            "thread_id": thread_id,
            "checkpoint_ns": namespace,
            "checkpoint_id": identity,
        }
    }


def _matches(metadata: Any, filter: dict[str, Any] | None) -> bool:
    missing = object()
    wanted = (filter or {}).items()
    return all(metadata.get(name, missing) == value for name, value in wanted)
