"""``RectoSaver``: a LangGraph checkpointer that keeps the messages of another one in Recto."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeGuard, TypeVar, cast

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from ._cancellation import completed, ended
from ._langchain import are_messages, from_recto
from ._langgraph_deletion import adelete_checkpoints, delete_checkpoints
from ._langgraph_view import SharedViews, View, ViewChange, fields_of
from ._names import checked_prefix, name_part
from .errors import (
    ConversationExists,
    ConversationNotFound,
    InvalidRequest,
    NotFound,
    VersionConflict,
)
from .store import Conversation, Store, opened

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

REFERENCE = "__recto__"
"""The key of a reference that takes the place of messages: ``{"__recto__": [conversation, version]}``."""

_MAX_ATTEMPTS = 100
"""Maximum attempts after version conflicts."""

V = TypeVar("V", int, float, str)


class RectoSaver(BaseCheckpointSaver[V], Generic[V]):
    """A checkpointer that keeps the messages of another checkpointer in a Recto store.

    ``inner`` is any checkpointer, synchronous or asynchronous. ``store`` is a store, or the address of
    one. Everything but the channel of messages stays in ``inner``. Messages stay there too if they
    cannot be restored exactly from JSON, or if the serializer of ``inner`` is not LangGraph's
    ``JsonPlusSerializer``: another serializer may encrypt messages, and Recto stores them as plain JSON.
    ``messages_in_clear=True`` stores messages in Recto with every serializer.
    """

    def __init__(
        self,
        inner: BaseCheckpointSaver[V],
        store: Store | str,
        *,
        channel: str = "messages",
        prefix: str = "",
        counter: str | None = None,
        messages_in_clear: bool = False,
    ) -> None:
        if not isinstance(inner, BaseCheckpointSaver):  # pyright: ignore[reportUnnecessaryIsInstance]
            kind = type(inner).__name__
            raise TypeError(f"inner must be a checkpointer (BaseCheckpointSaver), not {kind}")
        super().__init__(serde=inner.serde)
        self.inner = inner
        self.store = opened(store)
        self.channel = channel
        self.prefix = checked_prefix(prefix)
        self.counter = counter
        self.messages_in_clear = messages_in_clear
        self._views = SharedViews()

    @property
    def config_specs(self) -> list[Any]:
        return self.inner.config_specs

    def get_next_version(self, current: V | None, channel: None) -> V:
        return self.inner.get_next_version(current, channel)

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> RectoSaver[V]:
        inner = self.inner.with_allowlist(extra_allowlist)
        if inner is self.inner:
            return self
        clone = RectoSaver(
            inner,
            self.store,
            channel=self.channel,
            prefix=self.prefix,
            counter=self.counter,
            messages_in_clear=self.messages_in_clear,
        )
        clone._views = self._views
        return clone

    def conversation(self, thread_id: str, checkpoint_ns: str = "") -> Conversation:
        """The conversation that holds the messages of one namespace of a thread."""
        return self.store.conversation(self._name(thread_id, checkpoint_ns))

    # Reading

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        found = self.inner.get_tuple(config)
        return None if found is None else self._with_messages(found)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        found = await self.inner.aget_tuple(config)
        return None if found is None else await asyncio.to_thread(self._with_messages, found)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        for found in self.inner.list(config, filter=filter, before=before, limit=limit):
            yield self._with_messages(found)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        async for found in self.inner.alist(config, filter=filter, before=before, limit=limit):
            yield await asyncio.to_thread(self._with_messages, found)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, Any]:
        found = self.inner.get_delta_channel_history(config=config, channels=channels)
        return self._with_seed(config, found)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, Any]:
        found = await self.inner.aget_delta_channel_history(config=config, channels=channels)
        return await asyncio.to_thread(self._with_seed, config, found)

    # Writing. Messages are stored first: a crash in between leaves a version without a reference.

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        stored = self._without_messages(config, checkpoint)
        return self.inner.put(config, stored, metadata, new_versions)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        stored = await asyncio.to_thread(self._without_messages, config, checkpoint)
        return await self.inner.aput(config, stored, metadata, new_versions)

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        self.inner.put_writes(config, writes, task_id, task_path)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        await self.inner.aput_writes(config, writes, task_id, task_path)

    # Threads

    def delete_thread(self, thread_id: str) -> None:
        self.inner.delete_thread(thread_id)
        self._remove_conversations(thread_id)

    async def adelete_thread(self, thread_id: str) -> None:
        await self.inner.adelete_thread(thread_id)
        await asyncio.to_thread(self._remove_conversations, thread_id)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies all checkpoints. The messages are shared: each conversation is forked."""
        # The checkpoints are read first, so that the forks have their versions.
        all_found = [*self.inner.list(_thread(source_thread_id))]
        is_new = not any(self.inner.list(_thread(target_thread_id), limit=1))
        self._fork_conversations(source_thread_id, target_thread_id, is_new=is_new)
        for found in reversed(all_found):
            config, stored, versions = self._copy(found, target_thread_id)
            self.inner.put(config, stored, found.metadata, versions)
            for task, writes in _writes_by_task(found):
                self.inner.put_writes(_at(config, stored), writes, task)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies all checkpoints. The messages are shared: each conversation is forked.

        The copy is completed even if the caller is cancelled.
        """
        copying = self._acopy_thread(source_thread_id, target_thread_id)
        await ended(asyncio.ensure_future(copying))

    async def _acopy_thread(self, source: str, target: str) -> None:
        all_found = [found async for found in self.inner.alist(_thread(source))]
        targets = [found async for found in self.inner.alist(_thread(target), limit=1)]
        await completed(self._fork_conversations, source, target, is_new=not targets)
        for found in reversed(all_found):
            config, stored, versions = self._copy(found, target)
            await self.inner.aput(config, stored, found.metadata, versions)
            for task, writes in _writes_by_task(found):
                await self.inner.aput_writes(_at(config, stored), writes, task)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Deletes the checkpoints of runs. Their messages stay in the conversation until it is pruned."""
        if _is_overridden(self.inner, "delete_for_runs"):
            self.inner.delete_for_runs(run_ids)
            return
        for run_id in run_ids:
            found = [*self.inner.list(None, filter={"run_id": run_id})]
            delete_checkpoints(self.inner, [_key(one) for one in found])

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Deletes the checkpoints of runs. Their messages stay in the conversation until it is pruned."""
        if _is_overridden(self.inner, "adelete_for_runs"):
            await self.inner.adelete_for_runs(run_ids)
            return
        for run_id in run_ids:
            found = [one async for one in self.inner.alist(None, filter={"run_id": run_id})]
            await adelete_checkpoints(self.inner, [_key(one) for one in found])

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Deletes all checkpoints of threads, or all but the newest of each namespace.

        The messages that only deleted checkpoints have are overwritten.
        """
        _check_strategy(strategy)
        for thread_id in thread_ids:
            if strategy == "delete":
                self.delete_thread(thread_id)
                continue
            if _is_overridden(self.inner, "prune"):
                self.inner.prune([thread_id], strategy=strategy)
                kept = [*self.inner.list(_thread(thread_id))]
            else:
                kept, dropped = _newest([*self.inner.list(_thread(thread_id))])
                delete_checkpoints(self.inner, dropped)
            self._prune_conversations(thread_id, kept)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Deletes all checkpoints of threads, or all but the newest of each namespace.

        The messages that only deleted checkpoints have are overwritten.
        """
        _check_strategy(strategy)
        for thread_id in thread_ids:
            if strategy == "delete":
                await self.adelete_thread(thread_id)
                continue
            if _is_overridden(self.inner, "aprune"):
                await self.inner.aprune([thread_id], strategy=strategy)
                kept = [one async for one in self.inner.alist(_thread(thread_id))]
            else:
                found = [one async for one in self.inner.alist(_thread(thread_id))]
                kept, dropped = _newest(found)
                await adelete_checkpoints(self.inner, dropped)
            await asyncio.to_thread(self._prune_conversations, thread_id, kept)

    # Messages

    def _name(self, thread_id: object, checkpoint_ns: object) -> str:
        """The name of the conversation of a namespace of a thread. Any text is allowed as a thread id."""
        return f"{self._base(thread_id)}/{name_part(str(checkpoint_ns))}"

    def _base(self, thread_id: object) -> str:
        return self.prefix + name_part(str(thread_id))

    def _without_messages(self, config: RunnableConfig, checkpoint: Checkpoint) -> Checkpoint:
        """The checkpoint with a reference in the place of its messages."""
        values = checkpoint["channel_values"]
        messages = values.get(self.channel)
        # A subclass may encrypt, so only the class itself is known to write plain text.
        is_plain = self.messages_in_clear or type(self.inner.serde) is JsonPlusSerializer
        if not is_plain or not _are_messages(messages):
            return checkpoint
        configurable = config.get("configurable", {})
        name = self._name(configurable["thread_id"], configurable.get("checkpoint_ns", ""))
        channel_version = checkpoint["channel_versions"].get(self.channel)
        with self._views.writer(name):
            try:
                version = self._store_messages(name, messages, channel_version)
            except InvalidRequest:
                return checkpoint  # a message that is not JSON, or that is too large
            if version is None:
                return checkpoint
            self._views.keep_version(name, channel_version, version)
        reference = {REFERENCE: [name, version]}
        return {**checkpoint, "channel_values": {**values, self.channel: reference}}

    def _store_messages(
        self, name: str, messages: list[BaseMessage], channel_version: object
    ) -> int | None:
        """Makes the messages the view of the conversation, and returns the version that shows them.

        ``None`` if a new message cannot be restored exactly.
        """
        messages = [*messages]  # the application may change its list meanwhile
        known = self._views.version(name, channel_version)
        if known is not None and self._shows(name, known, messages):
            return known
        for _ in range(_MAX_ATTEMPTS):
            view = self._views.view(name) or self._load(name)
            change = ViewChange.between(view, messages)
            if not change.operations:
                self._views.keep_view(name, change.applied(view, messages, view.version, []))
                return view.version
            if not all(from_recto(stored) == message for stored, message in change.added):
                return None
            try:
                outcome = self.store.conversation(name).apply(
                    change.operations, expected_version=view.version
                )
            except (VersionConflict, ConversationNotFound):  # changed or removed by another process
                self._views.drop_view(name)
                continue
            view = change.applied(view, messages, outcome["version"], outcome["added"])
            self._views.keep_view(name, view)
            return view.version
        raise VersionConflict("version_conflict", f"other writers keep changing {name!r}")

    def _shows(self, name: str, version: int, messages: list[BaseMessage]) -> bool:
        """Whether a version shows exactly these messages.

        Branches of a thread may use one channel version for different lists: some checkpointers
        number channel versions from the parent on.
        """
        view = self._views.view(name)
        if view is None or view.version != version:
            try:
                view = self._read(name, version)
            except NotFound:  # removed by another process
                return False
        return not ViewChange.between(view, messages).operations

    def _load(self, name: str) -> View:
        """The newest view of a conversation, which is created if it does not exist."""
        try:
            return self._read(name, None)
        except ConversationNotFound:
            settings: Any = {"counter": self.counter} if self.counter else True
            self.store.conversation(name, create=settings)
            return self._read(name, None)

    def _read(self, name: str, version: int | None) -> View:
        shown = self.store.request({"conversation": name, "show": True, "at": version})
        entries = shown["messages"]
        messages = [from_recto(entry["message"]) for entry in entries]
        fields = [fields_of(message) for message in messages]
        return View(shown["version"], messages, fields, [entry["index"] for entry in entries])

    def _with_messages(self, found: CheckpointTuple) -> CheckpointTuple:
        """The checkpoint with its messages in the place of the reference."""
        values = found.checkpoint["channel_values"]
        reference = _reference(values.get(self.channel))
        if reference is None:
            return found
        configurable = found.config.get("configurable", {})
        thread_id, namespace = configurable["thread_id"], configurable.get("checkpoint_ns", "")
        name, version = self._referenced(reference[0], thread_id, namespace), reference[1]
        view = self._read(name, version)
        channel_version = found.checkpoint["channel_versions"].get(self.channel)
        self._views.keep_version(name, channel_version, version)
        with self._views.writer(name):
            newest = self._views.view(name)
            if newest is None or newest.version <= version:
                self._views.keep_view(name, view)
        values = {**values, self.channel: [*view.messages]}
        return found._replace(checkpoint={**found.checkpoint, "channel_values": values})

    def _with_seed(self, config: RunnableConfig, found: Mapping[str, Any]) -> Mapping[str, Any]:
        """The history of a ``DeltaChannel`` with messages in the place of a reference.

        Such a reference was stored before the application changed the channel to a ``DeltaChannel``.
        """
        history = found.get(self.channel) or {}
        reference = _reference(history.get("seed"))
        if reference is None:
            return found
        configurable = config.get("configurable", {})
        thread_id, namespace = configurable["thread_id"], configurable.get("checkpoint_ns", "")
        name = self._referenced(reference[0], thread_id, namespace)
        messages = [*self._read(name, reference[1]).messages]
        return {**found, self.channel: {**history, "seed": messages}}

    def _referenced(self, name: str, thread_id: object, checkpoint_ns: object) -> str:
        """The conversation with the messages of a checkpoint. ``name`` is the name in its reference."""
        return name

    # Conversations of threads

    def _conversations(self, thread_id: str) -> Iterator[str]:
        """The names of the conversations of all namespaces of a thread."""
        start = f"{self._base(thread_id)}/"
        after = start[:-1]
        while True:
            page = self.store.list(after=after, limit=100)
            for info in page:
                after = info["name"]
                if after.startswith(start):
                    yield after
                elif after > start:
                    return
            if len(page) < 100:
                return

    def _remove_conversations(self, thread_id: str) -> None:
        self._remove({*self._conversations(thread_id)})

    def _remove(self, names: set[str]) -> None:
        for name in names:
            self._views.forget(name)
            try:
                self.store.conversation(name).remove()
            except ConversationNotFound:
                pass  # removed by another process

    def _fork_conversations(self, source: str, target: str, *, is_new: bool) -> None:
        """Forks the conversations of a thread. ``is_new`` is whether the target has no checkpoint."""
        for name in [*self._conversations(source)]:
            fork = self._base(target) + name[len(self._base(source)) :]
            try:
                self.store.conversation(name).fork(fork)
            except ConversationExists:
                if not is_new:
                    raise
                # The target has no checkpoint, so the fork was left by a process that ended while it copied.
                self._views.forget(fork)
                self.store.conversation(fork).remove()
                self.store.conversation(name).fork(fork)

    def _copy(
        self, found: CheckpointTuple, target: str
    ) -> tuple[RunnableConfig, Checkpoint, ChannelVersions]:
        """A checkpoint for another thread, with a reference to the fork."""
        namespace = found.config.get("configurable", {}).get("checkpoint_ns", "")
        configurable = {"thread_id": target, "checkpoint_ns": namespace}
        if found.parent_config:
            parent = found.parent_config.get("configurable", {})
            configurable["checkpoint_id"] = parent["checkpoint_id"]
        stored = found.checkpoint
        reference = _reference(stored["channel_values"].get(self.channel))
        if reference is not None:
            name = self._name(target, namespace)
            values = {**stored["channel_values"], self.channel: {REFERENCE: [name, reference[1]]}}
            stored = cast("Checkpoint", {**stored, "channel_values": values})
        config: RunnableConfig = {"configurable": configurable}
        return config, stored, dict(stored["channel_versions"])

    def _prune_conversations(self, thread_id: str, kept: Sequence[CheckpointTuple]) -> None:
        """Overwrites the messages of a thread that no kept checkpoint shows."""
        versions: dict[str, list[int]] = {}
        for found in kept:
            reference = _reference(found.checkpoint["channel_values"].get(self.channel))
            if reference is not None:
                thread, namespace, _ = _key(found)
                name = self._referenced(reference[0], thread, namespace)
                versions.setdefault(name, []).append(reference[1])
        for name, shown in versions.items():
            self.store.conversation(name).prune(versions=sorted({*shown}))
            self._views.forget(name)
        # Only deleted checkpoints referred to the others.
        self._remove({*self._conversations(thread_id)} - {*versions})


def _are_messages(value: object) -> TypeGuard[list[BaseMessage]]:
    if not isinstance(value, list) or not value:
        return False
    return are_messages(cast("list[Any]", value))


def _reference(value: object) -> tuple[str, int] | None:
    if isinstance(value, dict) and REFERENCE in value:
        name, version = cast("dict[str, Any]", value)[REFERENCE]
        return name, version
    return None


def _thread(thread_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id}}


def _at(config: RunnableConfig, checkpoint: Checkpoint) -> RunnableConfig:
    configurable = config.get("configurable", {})
    return {"configurable": {**configurable, "checkpoint_id": checkpoint["id"]}}


def _writes_by_task(found: CheckpointTuple) -> list[tuple[str, list[tuple[str, Any]]]]:
    tasks: dict[str, list[tuple[str, Any]]] = {}
    for task, channel, value in found.pending_writes or ():
        tasks.setdefault(task, []).append((channel, value))
    return [*tasks.items()]


def _key(found: CheckpointTuple) -> tuple[str, str, str]:
    configurable = found.config.get("configurable", {})
    return (
        configurable["thread_id"],
        configurable.get("checkpoint_ns", ""),
        configurable["checkpoint_id"],
    )


def _newest(
    found: Sequence[CheckpointTuple],
) -> tuple[list[CheckpointTuple], list[tuple[str, str, str]]]:
    """The newest checkpoint of each namespace, and the keys of the others."""
    newest: dict[str, CheckpointTuple] = {}
    for one in found:
        _, namespace, identity = _key(one)
        if namespace not in newest or identity > _key(newest[namespace])[2]:
            newest[namespace] = one
    kept = {_key(one) for one in newest.values()}
    return [*newest.values()], [_key(one) for one in found if _key(one) not in kept]


def _check_strategy(strategy: str) -> None:
    if strategy not in ("keep_latest", "delete"):
        message = f"strategy cannot be {strategy!r}; use 'keep_latest' or 'delete'"
        raise InvalidRequest("invalid_operation", message, "strategy")


def _is_overridden(inner: BaseCheckpointSaver[Any], method: str) -> bool:
    base = getattr(BaseCheckpointSaver, method, None)
    return getattr(type(inner), method, None) is not base
