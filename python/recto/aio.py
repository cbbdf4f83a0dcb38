"""Stores and conversations for asyncio: each method runs in a thread (``asyncio.to_thread``).

Cancelling a method does not cancel its request: a change that has started is made. ``make_async.py``
writes this file.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, List  # `list` is a method of AsyncStore

from . import types as t
from .store import Conversation, Store

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self, Unpack

__all__ = ["AsyncConversation", "AsyncStore"]


class AsyncStore:
    """A :class:`~recto.Store` for asyncio."""

    def __init__(self, store: Store) -> None:
        self._sync = store

    @classmethod
    async def open(
        cls,
        address: str,
        *,
        tenant: str | None = None,
        search: bool | None = None,
        max_message_bytes: int | None = None,
    ) -> Self:
        """Opens the store at an address: ``memory:``, ``sqlite:PATH`` or ``postgres://…``."""
        store = await asyncio.to_thread(
            Store.open,
            address,
            tenant=tenant,
            search=search,
            max_message_bytes=max_message_bytes,
        )
        return cls(store)

    @classmethod
    async def shared(cls, address: str) -> AsyncStore:
        """The open store at an address, the same for all callers in this process.

        The first call opens it.
        """
        return AsyncStore(await asyncio.to_thread(Store.shared, address))

    @property
    def sync(self) -> Store:
        """The store with blocking methods."""
        return self._sync

    @property
    def address(self) -> str:
        """The address that the store was opened with. It may contain a password."""
        return self._sync.address

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._sync.closed

    async def conversations(self) -> AsyncIterator[t.ConversationInfo]:
        """All conversations in the order of their names."""
        pages = self._sync.conversations()
        while (info := await asyncio.to_thread(next, pages, None)) is not None:
            yield info

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def request(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Performs any request of ``docs/exec.md``, and returns its response."""
        return await asyncio.to_thread(self._sync.request, request)

    async def request_json(self, text: str) -> str:
        """:meth:`request` with JSON text, which keeps the bytes of messages."""
        return await asyncio.to_thread(self._sync.request_json, text)

    async def create(
        self,
        name: str,
        *,
        messages: Iterable[t.Message] | None = None,
        counter: str | None = None,
        media_tokens: int | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        heading: str | None = None,
        token_limit: int | None = None,
        compression: t.Compression | None = None,
    ) -> AsyncConversation:
        """Creates a conversation. ``messages`` are visible at version 0."""
        return AsyncConversation(
            await asyncio.to_thread(
                self._sync.create,
                name,
                messages=messages,
                counter=counter,
                media_tokens=media_tokens,
                tools=tools,
                heading=heading,
                token_limit=token_limit,
                compression=compression,
            )
        )

    async def conversation(
        self, name: str, *, create: bool | t.Settings = False
    ) -> AsyncConversation:
        """A conversation by its name or id.

        ``create`` creates a conversation that does not exist: with the default settings if it is
        ``True``, otherwise with these settings. Without it nothing is read here, and the first
        request about a missing conversation raises ``ConversationNotFound``.
        """
        return AsyncConversation(
            await asyncio.to_thread(self._sync.conversation, name, create=create)
        )

    async def list(
        self, *, after: str | None = None, limit: int | None = None
    ) -> List[t.ConversationInfo]:
        """Conversations in the order of their names, from the first name after ``after``.

        ``limit`` is their largest number. Default: 1000.
        """
        return await asyncio.to_thread(self._sync.list, after=after, limit=limit)

    async def search(self, text: str, *, limit: int | None = None) -> List[t.SearchHit]:
        """Messages that contain all words of the text, in all conversations."""
        return await asyncio.to_thread(self._sync.search, text, limit=limit)

    async def import_transcript(
        self,
        name: str,
        data: object,
        *,
        format: str | None = None,
        select: str | None = None,
        settings: t.Settings | None = None,
        return_state: bool = False,
    ) -> t.Imported:
        """Imports a transcript: JSON, or a string that contains it.

        Without ``format``, the format is recognised.
        ``select`` is the path of the messages in a larger document, such as ``request.messages``.
        """
        return await asyncio.to_thread(
            self._sync.import_transcript,
            name,
            data,
            format=format,
            select=select,
            settings=settings,
            return_state=return_state,
        )

    async def verify(self) -> t.StoreVerification:
        """Checks everything that is stored."""
        return await asyncio.to_thread(self._sync.verify)

    async def close(self) -> None:
        """Closes the store. Running requests are completed, later ones are refused.

        Closing it again has no effect.
        """
        await asyncio.to_thread(self._sync.close)


class AsyncConversation:
    """A :class:`~recto.Conversation` for asyncio."""

    def __init__(self, conversation: Conversation) -> None:
        self._sync = conversation

    @property
    def sync(self) -> Conversation:
        """The conversation with blocking methods."""
        return self._sync

    @property
    def name(self) -> str:
        """The name, or the id, that this object was made with."""
        return self._sync.name

    async def request(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Performs a request about this conversation: ``{"stats": True}``."""
        return await asyncio.to_thread(self._sync.request, request)

    async def apply(self, operations: t.Operations, **options: Unpack[t.WriteOptions]) -> t.Outcome:
        """Applies an operation, or a list of operations as one atomic request."""
        return await asyncio.to_thread(self._sync.apply, operations, **options)

    async def preview(self, operations: t.Operations) -> t.Outcome:
        """The outcome that :meth:`apply` would have. Nothing is stored."""
        return await asyncio.to_thread(self._sync.preview, operations)

    async def append(
        self,
        messages: t.Message | Iterable[t.Message],
        *,
        format: str | None = None,
        description: str | None = None,
        **options: Unpack[t.WriteOptions],
    ) -> t.Appended:
        """Adds a message, or several, to the end of the view.

        ``format`` is the format of the messages, such as ``openai-chat``, if they are not Recto's own. The
        result then has ``remarks``: what could not be represented.
        """
        return await asyncio.to_thread(
            self._sync.append, messages, format=format, description=description, **options
        )

    async def insert(
        self,
        position: int,
        messages: t.Message | Iterable[t.Message],
        *,
        description: str | None = None,
        **options: Unpack[t.WriteOptions],
    ) -> t.Outcome:
        """Inserts messages at a position of the view."""
        return await asyncio.to_thread(
            self._sync.insert, position, messages, description=description, **options
        )

    async def replace(
        self,
        position: int,
        message: t.Message,
        *,
        description: str | None = None,
        **options: Unpack[t.WriteOptions],
    ) -> t.Outcome:
        """Replaces the entry at a position with a message. The old entry stays in the log."""
        return await asyncio.to_thread(
            self._sync.replace, position, message, description=description, **options
        )

    async def hide(
        self,
        indices: Sequence[int],
        *,
        summary: t.Message | None = None,
        description: str | None = None,
        **options: Unpack[t.WriteOptions],
    ) -> t.Outcome:
        """Hides log entries (DELETE). ``summary`` is a message that replaces them (COMPRESS)."""
        return await asyncio.to_thread(
            self._sync.hide, indices, summary=summary, description=description, **options
        )

    async def restore(
        self,
        indices: Sequence[int],
        *,
        description: str | None = None,
        **options: Unpack[t.WriteOptions],
    ) -> t.Outcome:
        """Shows hidden log entries again."""
        return await asyncio.to_thread(
            self._sync.restore, indices, description=description, **options
        )

    async def fit(
        self,
        max_tokens: int,
        *,
        keep_system: bool | None = None,
        start_on: t.Role | None = None,
        description: str | None = None,
        **options: Unpack[t.WriteOptions],
    ) -> t.Outcome:
        """Keeps the newest messages that fit a token budget (FIT)."""
        return await asyncio.to_thread(
            self._sync.fit,
            max_tokens,
            keep_system=keep_system,
            start_on=start_on,
            description=description,
            **options,
        )

    async def mark(
        self, indices: Sequence[int], mark: str = "pinned", **options: Unpack[t.WriteOptions]
    ) -> t.Outcome:
        """Sets a label on log entries. The mark ``pinned`` protects them from being hidden."""
        return await asyncio.to_thread(self._sync.mark, indices, mark, **options)

    async def unmark(
        self, indices: Sequence[int], mark: str = "pinned", **options: Unpack[t.WriteOptions]
    ) -> t.Outcome:
        """Removes a label from log entries."""
        return await asyncio.to_thread(self._sync.unmark, indices, mark, **options)

    async def undo(self, **options: Unpack[t.WriteOptions]) -> t.Outcome:
        """Reverts the newest request that is not reverted."""
        return await asyncio.to_thread(self._sync.undo, **options)

    async def redo(self, **options: Unpack[t.WriteOptions]) -> t.Outcome:
        """Applies again the request that the newest UNDO reverted."""
        return await asyncio.to_thread(self._sync.redo, **options)

    async def rollback(
        self,
        *,
        version: int | None = None,
        batch: int | None = None,
        description: str | None = None,
        **options: Unpack[t.WriteOptions],
    ) -> t.Outcome:
        """Returns to the state of a version, or to a batch of the live path."""
        return await asyncio.to_thread(
            self._sync.rollback, version=version, batch=batch, description=description, **options
        )

    async def set_tools(
        self, tools: Sequence[Mapping[str, Any]], **options: Unpack[t.WriteOptions]
    ) -> t.Outcome:
        """Sets the tools. An empty list removes all tools."""
        return await asyncio.to_thread(self._sync.set_tools, tools, **options)

    async def messages(self, *, at: int | None = None) -> list[dict[str, Any]]:
        """The messages of the view, as they were given."""
        return await asyncio.to_thread(self._sync.messages, at=at)

    async def entries(
        self, indices: Sequence[int] | None = None, *, at: int | None = None
    ) -> list[t.Entry]:
        """The entries of the view, or the log entries with these indices."""
        return await asyncio.to_thread(self._sync.entries, indices, at=at)

    async def query(self, **query: Any) -> list[t.Entry]:
        """Entries that a query selects: ``query(role="user", last=3, scope="all")``."""
        return await asyncio.to_thread(self._sync.query, **query)

    async def count(self, **query: Any) -> int:
        """The number of entries that a query selects."""
        return await asyncio.to_thread(self._sync.count, **query)

    async def version(self) -> int:
        """The newest version."""
        return await asyncio.to_thread(self._sync.version)

    async def versions(
        self, *, limit: int | None = None, before: int | None = None
    ) -> list[t.VersionInfo]:
        """Versions, newest first, at most ``limit``. Default: 50."""
        return await asyncio.to_thread(self._sync.versions, limit=limit, before=before)

    async def stats(self) -> t.Stats:
        """The statistics of the newest version: messages, batches and tokens."""
        return await asyncio.to_thread(self._sync.stats)

    async def info(self) -> t.Info:
        """The statistics, marks, tools and warnings of the conversation."""
        return await asyncio.to_thread(self._sync.info)

    async def diff(self, old: int, new: int) -> t.Difference:
        """The difference between two versions."""
        return await asyncio.to_thread(self._sync.diff, old, new)

    async def blame(self, index: int) -> list[t.Blame]:
        """The versions that added, hid or restored a log entry, oldest first."""
        return await asyncio.to_thread(self._sync.blame, index)

    async def blame_marks(self, index: int) -> list[t.MarkBlame]:
        """The versions that added a mark to a log entry or removed one, oldest first."""
        return await asyncio.to_thread(self._sync.blame_marks, index)

    async def marks(self, *, at: int | None = None) -> list[t.MarkedEntries]:
        """All marks with their entries."""
        return await asyncio.to_thread(self._sync.marks, at=at)

    async def mark_map(self, *, scope: t.Scope = "visible", at: int | None = None) -> t.MarkMap:
        """The mark map: the view, the entries of each role and the batch boundaries."""
        return await asyncio.to_thread(self._sync.mark_map, scope=scope, at=at)

    async def tools(self, *, at: int | None = None) -> list[dict[str, Any]]:
        """The tools, as they were given."""
        return await asyncio.to_thread(self._sync.tools, at=at)

    async def tokens(self, *, largest: int | None = None, at: int | None = None) -> t.TokenShares:
        """Tokens by role and by tool, and the largest messages."""
        return await asyncio.to_thread(self._sync.tokens, largest=largest, at=at)

    async def token_check(self) -> t.CheckedTokens:
        """Compares the tokens of the view with the token limit and the threshold."""
        return await asyncio.to_thread(self._sync.token_check)

    async def state(self, *, at: int | None = None) -> t.State:
        """The visible messages and the batch snapshots."""
        return await asyncio.to_thread(self._sync.state, at=at)

    async def snapshot(self, batch: int) -> t.BatchSnapshot:
        """The snapshot of a batch of the live path: its messages, and why it was opened."""
        return await asyncio.to_thread(self._sync.snapshot, batch)

    async def render(
        self,
        provider: t.Provider,
        *,
        model: str | None = None,
        api_version: str | None = None,
        fields: Mapping[str, Any] | None = None,
        at: int | None = None,
    ) -> t.Rendered:
        """The view as a request to a provider, with repairs.

        ``api_version`` is the version of the provider's API, such as ``2026-10-21`` at Anthropic.
        Default: the oldest.
        """
        return await asyncio.to_thread(
            self._sync.render, provider, model=model, api_version=api_version, fields=fields, at=at
        )

    async def lint(
        self,
        provider: t.Provider,
        *,
        model: str | None = None,
        api_version: str | None = None,
        fields: Mapping[str, Any] | None = None,
        at: int | None = None,
    ) -> list[t.Finding]:
        """The rules of a provider that the view violates.

        Some rules depend on ``api_version``, the version of the provider's API, and on ``fields``, other
        fields of the request, such as ``thinking``.
        """
        return await asyncio.to_thread(
            self._sync.lint, provider, model=model, api_version=api_version, fields=fields, at=at
        )

    async def export(
        self,
        format: str | None = None,
        *,
        scope: t.Scope | None = None,
        lines: bool | None = None,
        at: int | None = None,
    ) -> t.Exported:
        """The view, or the whole log, as a transcript."""
        return await asyncio.to_thread(self._sync.export, format, scope=scope, lines=lines, at=at)

    async def fork(self, name: str, *, at: int | None = None) -> AsyncConversation:
        """Creates a conversation that starts at a version of this one. It copies no messages."""
        return AsyncConversation(await asyncio.to_thread(self._sync.fork, name, at=at))

    async def rename(self, name: str) -> AsyncConversation:
        """Gives the conversation another name, and returns it under that name."""
        return AsyncConversation(await asyncio.to_thread(self._sync.rename, name))

    async def remove(self, *, expected_version: int | None = None) -> None:
        """Removes the conversation permanently."""
        await asyncio.to_thread(self._sync.remove, expected_version=expected_version)

    async def settings(self) -> t.ConversationSettings:
        """The settings."""
        return await asyncio.to_thread(self._sync.settings)

    async def change_settings(self, changes: Mapping[str, Any]) -> t.ConversationSettings:
        """Changes ``tools``, ``tokenLimit`` or ``compression``. ``None`` removes a setting."""
        return await asyncio.to_thread(self._sync.change_settings, changes)

    async def prune(
        self,
        *,
        keep_versions: int | None = None,
        keep_batches: int | None = None,
        keep_since: int | None = None,
        versions: Sequence[int] | None = None,
        expected_version: int | None = None,
        dry_run: bool = False,
    ) -> t.Pruned:
        """Overwrites the messages that no kept version shows."""
        return await asyncio.to_thread(
            self._sync.prune,
            keep_versions=keep_versions,
            keep_batches=keep_batches,
            keep_since=keep_since,
            versions=versions,
            expected_version=expected_version,
            dry_run=dry_run,
        )

    async def erase(
        self, indices: Sequence[int], *, expected_version: int | None = None
    ) -> list[t.ErasedEntry]:
        """Overwrites messages permanently, in every version and fork."""
        return await asyncio.to_thread(self._sync.erase, indices, expected_version=expected_version)

    async def verify(self) -> t.Verification:
        """Checks everything that is stored of the conversation."""
        return await asyncio.to_thread(self._sync.verify)
