"""Stores and conversations. Each method is one request of ``docs/exec.md``."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, List, cast  # `list` is a method of Store

from . import types as t
from ._fork import starts_again_in_child
from ._json import decode, encode, not_text
from ._recto import NativeStore
from .errors import ConversationExists, InvalidRequest

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self, Unpack

__all__ = ["Conversation", "Store"]

_MAX_BYTES = 2**32 - 1
"""The largest value of ``max_message_bytes``."""


class Store:
    """An open store. Any number of threads may use it at the same time.

    >>> store = Store.open("memory:")
    >>> conversation = store.create("support", counter="approx")
    >>> conversation.append({"role": "user", "content": "Checkout fails!"})["version"]
    1
    """

    def __init__(self, native: NativeStore, address: str) -> None:
        self._native = native
        self._address = address

    @classmethod
    def open(
        cls,
        address: str,
        *,
        tenant: str | None = None,
        search: bool | None = None,
        max_message_bytes: int | None = None,
    ) -> Self:
        """Opens the store at an address: ``memory:``, ``sqlite:PATH`` or ``postgres://…``.

        ``search`` is whether a store that this call creates has an index for :meth:`search`.
        Default: true, except in memory. ``max_message_bytes`` is the size of the largest accepted
        message, in bytes of its JSON: 1 to 2³² - 1. Default: 32 MiB.
        """
        options: dict[str, Any] = {
            "tenant": tenant,
            "search": search,
            "max_message_bytes": max_message_bytes,
        }
        if isinstance(max_message_bytes, int) and not 1 <= max_message_bytes <= _MAX_BYTES:
            allowed = f"allowed are whole numbers from 1 to {_MAX_BYTES}"
            message = f"max_message_bytes is out of range; {allowed}"
            raise InvalidRequest("invalid_operation", message, "max_message_bytes")
        try:
            return cls(NativeStore.open(address, **options), address)
        except UnicodeEncodeError:
            raise not_text({"address": address, **options}) from None

    @classmethod
    def shared(cls, address: str) -> Store:
        """The open store at an address, the same for all callers in this process.

        The first call opens it.
        """
        return _SHARED.store(address)

    def request(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Performs any request of ``docs/exec.md``, and returns its response."""
        response = self._native.call(request)
        if response is not NotImplemented:
            return response
        try:
            return decode(self._native.request(encode(request)))
        except UnicodeEncodeError:
            raise not_text(request) from None

    def request_json(self, text: str) -> str:
        """:meth:`request` with JSON text, which keeps the bytes of messages."""
        try:
            return self._native.request(text)
        except UnicodeEncodeError:
            raise not_text(text) from None

    # Conversations

    def create(
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
    ) -> Conversation:
        """Creates a conversation. ``messages`` are visible at version 0."""
        settings = {
            "counter": counter,
            "mediaTokens": media_tokens,
            "tools": tools,
            "heading": heading,
            "tokenLimit": token_limit,
            "compression": compression,
        }
        self.request(
            {
                "create": name,
                "settings": _given(settings),
                "messages": None if messages is None else _list(messages),
            }
        )
        return Conversation(self, name)

    def conversation(self, name: str, *, create: bool | t.Settings = False) -> Conversation:
        """A conversation by its name or id.

        ``create`` creates a conversation that does not exist: with the default settings if it is
        ``True``, otherwise with these settings. Without it nothing is read here, and the first
        request about a missing conversation raises ``ConversationNotFound``.
        """
        if create is not False:
            settings: Mapping[str, Any] = {} if create is True else create
            try:
                self.request({"create": name, "settings": settings})
            except ConversationExists:
                pass
        return Conversation(self, name)

    def list(
        self, *, after: str | None = None, limit: int | None = None
    ) -> List[t.ConversationInfo]:
        """Conversations in the order of their names, from the first name after ``after``.

        ``limit`` is their largest number. Default: 1000.
        """
        options = _given({"after": after, "limit": limit})
        return self.request({"list": options or True})["conversations"]

    def conversations(self) -> Iterator[t.ConversationInfo]:
        """All conversations in the order of their names."""
        after: str | None = None
        while True:
            page = self.request({"list": _given({"after": after}) or True})
            found = cast("List[t.ConversationInfo]", page["conversations"])
            yield from found
            if not page["more"]:
                return
            after = found[-1]["name"]

    def search(self, text: str, *, limit: int | None = None) -> List[t.SearchHit]:
        """Messages that contain all words of the text, in all conversations."""
        return self.request({"search": text, "limit": limit})["messages"]

    def import_transcript(
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
        request: dict[str, Any] = {
            "import": name,
            "data": data,
            "format": format,
            "select": select,
            "settings": settings,
        }
        if return_state:
            request["return"] = ["state"]
        return cast("t.Imported", self.request(request))

    def verify(self) -> t.StoreVerification:
        """Checks everything that is stored."""
        return cast("t.StoreVerification", self.request({"verify": True}))

    # Lifetime

    @property
    def address(self) -> str:
        """The address that the store was opened with. It may contain a password."""
        return self._address

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._native.is_closed()

    def close(self) -> None:
        """Closes the store. Running requests are completed, later ones are refused.

        Closing it again has no effect.
        """
        self._native.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        kind = self._address.split(":", 1)[0]
        address = "postgres://…" if kind.startswith("postgres") else self._address
        return f"Store({address!r})"

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError(
            "a Store cannot be pickled; pass its address and open it in the other process"
        )


class Conversation:
    """A conversation of a store. It holds only its store and its name: every method is a request."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._name = name

    @property
    def store(self) -> Store:
        """The store."""
        return self._store

    @property
    def name(self) -> str:
        """The name, or the id, that this object was made with."""
        return self._name

    def request(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Performs a request about this conversation: ``{"stats": True}``."""
        return self._store.request({"conversation": self._name, **request})

    # Changes

    def apply(self, operations: t.Operations, **options: Unpack[t.WriteOptions]) -> t.Outcome:
        """Applies an operation, or a list of operations as one atomic request."""
        is_one = type(operations) is dict or isinstance(operations, Mapping)
        name = "op" if is_one else "ops"
        return cast("t.Outcome", self.request({name: operations, **_write_options(options)}))

    def preview(self, operations: t.Operations) -> t.Outcome:
        """The outcome that :meth:`apply` would have. Nothing is stored."""
        return self.apply(operations, dry_run=True)

    def append(
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
        if format is not None:
            converted = {"append": _listed(messages), "format": format, "description": description}
            return cast("t.Appended", self.request({**converted, **_write_options(options)}))
        # The most frequent request, so it builds only the dictionaries that it sends.
        operation: dict[str, Any] = {"operation": "APPEND", "messages": _listed(messages)}
        if description is not None:
            operation["description"] = description
        request: dict[str, Any] = {"conversation": self._name, "op": operation}
        if options:
            request.update(_write_options(options))
        return cast("t.Appended", self._store.request(request))

    def insert(
        self,
        position: int,
        messages: t.Message | Iterable[t.Message],
        *,
        description: str | None = None,
        **options: Unpack[t.WriteOptions],
    ) -> t.Outcome:
        """Inserts messages at a position of the view."""
        added = _listed(messages)
        operation = {
            "operation": "INSERT",
            "position": position,
            "messages": added,
            "description": description,
        }
        return self.apply(_given(operation), **options)

    def replace(
        self,
        position: int,
        message: t.Message,
        *,
        description: str | None = None,
        **options: Unpack[t.WriteOptions],
    ) -> t.Outcome:
        """Replaces the entry at a position with a message. The old entry stays in the log."""
        operation = {
            "operation": "REPLACE",
            "index": position,
            "message": message,
            "description": description,
        }
        return self.apply(_given(operation), **options)

    def hide(
        self,
        indices: Sequence[int],
        *,
        summary: t.Message | None = None,
        description: str | None = None,
        **options: Unpack[t.WriteOptions],
    ) -> t.Outcome:
        """Hides log entries (DELETE). ``summary`` is a message that replaces them (COMPRESS)."""
        operation = {
            "operation": "DELETE" if summary is None else "COMPRESS",
            "indices": indices,
            "summary": summary,
            "description": description,
        }
        return self.apply(_given(operation), **options)

    def restore(
        self,
        indices: Sequence[int],
        *,
        description: str | None = None,
        **options: Unpack[t.WriteOptions],
    ) -> t.Outcome:
        """Shows hidden log entries again."""
        operation = {"operation": "RESTORE", "indices": indices, "description": description}
        return self.apply(_given(operation), **options)

    def fit(
        self,
        max_tokens: int,
        *,
        keep_system: bool | None = None,
        start_on: t.Role | None = None,
        description: str | None = None,
        **options: Unpack[t.WriteOptions],
    ) -> t.Outcome:
        """Keeps the newest messages that fit a token budget (FIT)."""
        operation = {
            "operation": "FIT",
            "maxTokens": max_tokens,
            "keepSystem": keep_system,
            "startOn": start_on,
            "description": description,
        }
        return self.apply(_given(operation), **options)

    def mark(
        self, indices: Sequence[int], mark: str = "pinned", **options: Unpack[t.WriteOptions]
    ) -> t.Outcome:
        """Sets a label on log entries. The mark ``pinned`` protects them from being hidden."""
        return self.apply({"operation": "MARK", "indices": indices, "mark": mark}, **options)

    def unmark(
        self, indices: Sequence[int], mark: str = "pinned", **options: Unpack[t.WriteOptions]
    ) -> t.Outcome:
        """Removes a label from log entries."""
        return self.apply({"operation": "UNMARK", "indices": indices, "mark": mark}, **options)

    def undo(self, **options: Unpack[t.WriteOptions]) -> t.Outcome:
        """Reverts the newest request that is not reverted."""
        return self.apply({"operation": "UNDO"}, **options)

    def redo(self, **options: Unpack[t.WriteOptions]) -> t.Outcome:
        """Applies again the request that the newest UNDO reverted."""
        return self.apply({"operation": "REDO"}, **options)

    def rollback(
        self,
        *,
        version: int | None = None,
        batch: int | None = None,
        description: str | None = None,
        **options: Unpack[t.WriteOptions],
    ) -> t.Outcome:
        """Returns to the state of a version, or to a batch of the live path."""
        operation = {
            "operation": "ROLLBACK",
            "targetVersion": version,
            "targetBatchIndex": batch,
            "description": description,
        }
        return self.apply(_given(operation), **options)

    def set_tools(
        self, tools: Sequence[Mapping[str, Any]], **options: Unpack[t.WriteOptions]
    ) -> t.Outcome:
        """Sets the tools. An empty list removes all tools."""
        return cast("t.Outcome", self.request({"setTools": tools, **_write_options(options)}))

    # Reads

    def messages(self, *, at: int | None = None) -> list[dict[str, Any]]:
        """The messages of the view, as they were given."""
        return [entry["message"] for entry in self.entries(at=at)]

    def entries(
        self, indices: Sequence[int] | None = None, *, at: int | None = None
    ) -> list[t.Entry]:
        """The entries of the view, or the log entries with these indices."""
        shown = True if indices is None else indices
        return self.request({"show": shown, "at": at})["messages"]

    def query(self, **query: Any) -> list[t.Entry]:
        """Entries that a query selects: ``query(role="user", last=3, scope="all")``."""
        return self.request({"ask": query})["messages"]

    def count(self, **query: Any) -> int:
        """The number of entries that a query selects."""
        return self.request({"count": query})["count"]

    def version(self) -> int:
        """The newest version."""
        return self.request({"log": {"limit": 1}})["versions"][0]["version"]

    def versions(
        self, *, limit: int | None = None, before: int | None = None
    ) -> list[t.VersionInfo]:
        """Versions, newest first, at most ``limit``. Default: 50."""
        options = _given({"limit": limit, "before": before})
        return self.request({"log": options or True})["versions"]

    def stats(self) -> t.Stats:
        """The statistics of the newest version: messages, batches and tokens."""
        return cast("t.Stats", self.request({"stats": True}))

    def info(self) -> t.Info:
        """The statistics, marks, tools and warnings of the conversation."""
        return cast("t.Info", self.request({"info": True}))

    def diff(self, old: int, new: int) -> t.Difference:
        """The difference between two versions."""
        return cast("t.Difference", self.request({"diff": {"from": old, "to": new}}))

    def blame(self, index: int) -> list[t.Blame]:
        """The versions that added, hid or restored a log entry, oldest first."""
        return self.request({"blame": index})["history"]

    def blame_marks(self, index: int) -> list[t.MarkBlame]:
        """The versions that added a mark to a log entry or removed one, oldest first."""
        return self.request({"blame": index}).get("marks", [])

    def marks(self, *, at: int | None = None) -> list[t.MarkedEntries]:
        """All marks with their entries."""
        return self.request({"marks": True, "at": at})["marks"]

    def mark_map(self, *, scope: t.Scope = "visible", at: int | None = None) -> t.MarkMap:
        """The mark map: the view, the entries of each role and the batch boundaries."""
        return cast("t.MarkMap", self.request({"markMap": {"scope": scope}, "at": at}))

    def tools(self, *, at: int | None = None) -> list[dict[str, Any]]:
        """The tools, as they were given."""
        return self.request({"tools": True, "at": at})["tools"]

    def tokens(self, *, largest: int | None = None, at: int | None = None) -> t.TokenShares:
        """Tokens by role and by tool, and the largest messages."""
        options = _given({"largest": largest})
        return cast("t.TokenShares", self.request({"tokens": options or True, "at": at}))

    def token_check(self) -> t.CheckedTokens:
        """Compares the tokens of the view with the token limit and the threshold."""
        return cast("t.CheckedTokens", self.request({"tokenCheck": True}))

    def state(self, *, at: int | None = None) -> t.State:
        """The visible messages and the batch snapshots."""
        return cast("t.State", self.request({"state": True, "at": at}))

    def snapshot(self, batch: int) -> t.BatchSnapshot:
        """The snapshot of a batch of the live path: its messages, and why it was opened."""
        return cast("t.BatchSnapshot", self.request({"snapshot": batch}))

    def render(
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
        options = {"model": model, "apiVersion": api_version, "fields": fields, "at": at}
        return cast("t.Rendered", self.request({"render": provider, **options}))

    def lint(
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
        request = {
            "lint": provider,
            "model": model,
            "apiVersion": api_version,
            "fields": fields,
            "at": at,
        }
        return self.request(request)["findings"]

    def export(
        self,
        format: str | None = None,
        *,
        scope: t.Scope | None = None,
        lines: bool | None = None,
        at: int | None = None,
    ) -> t.Exported:
        """The view, or the whole log, as a transcript."""
        options = _given({"format": format, "scope": scope, "lines": lines})
        return cast("t.Exported", self.request({"export": options or True, "at": at}))

    # The conversation as a whole

    def fork(self, name: str, *, at: int | None = None) -> Conversation:
        """Creates a conversation that starts at a version of this one. It copies no messages."""
        self.request({"fork": _given({"name": name, "at": at})})
        return Conversation(self._store, name)

    def rename(self, name: str) -> Conversation:
        """Gives the conversation another name, and returns it under that name."""
        self.request({"rename": name})
        return Conversation(self._store, name)

    def remove(self, *, expected_version: int | None = None) -> None:
        """Removes the conversation permanently."""
        self.request({"remove": True, "expectedVersion": expected_version})

    def settings(self) -> t.ConversationSettings:
        """The settings."""
        return cast("t.ConversationSettings", self.request({"settings": True}))

    def change_settings(self, changes: Mapping[str, Any]) -> t.ConversationSettings:
        """Changes ``tools``, ``tokenLimit`` or ``compression``. ``None`` removes a setting."""
        return cast("t.ConversationSettings", self.request({"settings": changes}))

    def prune(
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
        keep = {
            "keepVersions": keep_versions,
            "keepBatches": keep_batches,
            "keepSince": keep_since,
            "versions": versions,
        }
        request = {"prune": _given(keep), "expectedVersion": expected_version, "dryRun": dry_run}
        return cast("t.Pruned", self.request(request))

    def erase(
        self, indices: Sequence[int], *, expected_version: int | None = None
    ) -> list[t.ErasedEntry]:
        """Overwrites messages permanently, in every version and fork."""
        request = {"erase": indices, "expectedVersion": expected_version}
        return self.request(request)["erased"]

    def verify(self) -> t.Verification:
        """Checks everything that is stored of the conversation."""
        return cast("t.Verification", self.request({"verify": True}))

    def __repr__(self) -> str:
        return f"Conversation({self._name!r})"


class _SharedStores:
    """The stores that all callers in this process share."""

    def __init__(self) -> None:
        self._stores: dict[str, Store] = {}
        self.start_again()
        starts_again_in_child(self)

    def start_again(self) -> None:
        self._lock = threading.Lock()

    def store(self, address: str) -> Store:
        with self._lock:
            store = self._stores.get(address)
            if store is None or store.closed:
                store = self._stores[address] = Store.open(address)
            return store


_SHARED = _SharedStores()


def _listed(messages: t.Message | Iterable[t.Message]) -> list[t.Message]:
    # The test for a dict takes a tenth of the time of the test for a Mapping.
    if type(messages) is dict or isinstance(messages, Mapping):
        return [cast("t.Message", messages)]
    return _list(messages)


def _list(messages: Iterable[t.Message]) -> list[t.Message]:
    if isinstance(messages, (str, bytes)) or not hasattr(messages, "__iter__"):
        kind = type(messages).__name__
        reason = f"messages must be a message or a list of messages, not {kind}"
        raise InvalidRequest("invalid_message", reason, "messages")
    return list(messages)


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are not ``None``."""
    return {name: value for name, value in options.items() if value is not None}


_OPTION_NAMES = {
    "expected_version": "expectedVersion",
    "idempotency_key": "idempotencyKey",
    "note": "note",
    "dry_run": "dryRun",
}


def _write_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a change, as fields of a request."""
    fields: dict[str, Any] = {}
    for name, value in options.items():
        if name == "return_state":
            if value:
                fields["return"] = ["state"]
        elif name not in _OPTION_NAMES:
            known = ", ".join([*_OPTION_NAMES, "return_state"])
            raise TypeError(f"unknown option {name!r}; use {known}")
        elif value is not None and value is not False:
            fields[_OPTION_NAMES[name]] = value
    return fields


def opened(store: object) -> Store:
    """The store that an adapter was given, or the shared store at the address that it was given."""
    if isinstance(store, str):
        return Store.shared(store)
    if not isinstance(store, Store):
        raise TypeError(f"store must be a Store or an address, not {type(store).__name__}")
    return store
