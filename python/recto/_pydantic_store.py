"""A conversation store of Pydantic AI whose conversations are Recto conversations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

from pydantic import TypeAdapter
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)
from pydantic_ai.messages import ModelMessage

from ._cancellation import completed
from ._names import checked_prefix, conversation_name
from .errors import ConversationExists, ConversationNotFound, VersionConflict
from .store import Conversation, Store, opened

KEY = "pydantic_ai"
"""The field of ``metadata`` with the entry."""
_RECORD = "pydantic_ai_record"
"""The field of a note, or of the metadata of a hidden message, with the record."""
_MAX_NOTE_BYTES = 12_000
"""A larger record is stored as a hidden message: a note has at most 16 KiB."""
_MAX_ATTEMPTS = 100
"""Maximum attempts after version conflicts."""

_RECORDS = TypeAdapter(ConversationRecord)
_MESSAGES: TypeAdapter[ModelMessage] = TypeAdapter(ModelMessage)
Convert = Callable[[ModelMessage], "dict[str, Any]"]


class RectoConversationStore(ConversationStore):
    """Keeps conversations in a Recto store. The view of a Recto conversation is the current history.

    ``store`` is a store, or the address of one. The name of a conversation is ``prefix`` and its id, which
    may be any text. Each message is stored once; a record is stored in the same transaction as its new messages. A branch that
    was left is hidden, and a fork shares the messages before it. Deleting a conversation deletes the
    messages that no fork shows.
    """

    def __init__(
        self, store: Store | str, *, prefix: str = "pydantic-ai/", counter: str | None = None
    ) -> None:
        self.store = opened(store)
        self.prefix = checked_prefix(prefix)
        self.counter = counter
        # Cache: entry id -> the conversation that contains it. Avoids a search of all conversations.
        self._conversation_of: dict[str, str] = {}

    def conversation(self, conversation_id: str) -> Conversation:
        """The Recto conversation, with its versions."""
        return self.store.conversation(self._name(conversation_id))

    def _name(self, conversation_id: str) -> str:
        return conversation_name(self.prefix, conversation_id)

    # The primitives of a backend

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        found = await asyncio.to_thread(self._stored, self._name(conversation_id))
        return None if found is None else found.record

    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Sequence[ConversationRecord]:
        return await asyncio.to_thread(self._records, scope, limit)

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        await completed(self._write, record, list(new_entries), expected_revision)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        await completed(self._delete, conversation_id, expected_revision)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        return await asyncio.to_thread(self._entry, entry_id)

    async def read_history(
        self, head_id: str | None, *, limit: int | None = None
    ) -> list[ConversationEntry]:
        if head_id is None or limit == 0:
            return []
        return await asyncio.to_thread(self._history, head_id, limit)

    # Reading

    def _stored(self, name: str) -> _Stored | None:
        """The newest version and the record of a conversation, or ``None`` if it has no record."""
        conversation = self.store.conversation(name)
        before: int | None = None
        newest: int | None = None
        try:
            while True:
                page = conversation.versions(limit=20, before=before)
                if not page:
                    return None
                newest = page[0]["version"] if newest is None else newest
                for version in page:
                    note = version.get("note")
                    if isinstance(note, dict) and _RECORD in note:
                        stored = self._read_note(name, newest, cast("dict[str, Any]", note))
                        # A fork without its own record shows the versions of its source.
                        is_own = self._name(stored.record.conversation_id) == name
                        return stored if is_own else None
                before = page[-1]["version"]
        except ConversationNotFound:
            return None

    def _read_note(self, name: str, newest: int, note: dict[str, Any]) -> _Stored:
        record = note[_RECORD]
        if "index" in record:
            [entry] = self.store.conversation(name).entries([record["index"]])
            record = entry["message"]["metadata"][_RECORD]
        read = _RECORDS.validate_python(record)
        for entry_id in [read.head_id, *read.branches]:
            if entry_id is not None:
                self._conversation_of[entry_id] = name
        return _Stored(newest, read)

    def _records(self, scope: str | None, limit: int | None) -> list[ConversationRecord]:
        names = [info["name"] for info in self.store.conversations()]
        stored = [self._stored(name) for name in names if name.startswith(self.prefix)]
        found = [one.record for one in stored if one is not None]
        found = [record for record in found if scope is None or record.scope == scope]
        found.sort(key=lambda record: record.updated_at, reverse=True)
        return found[:limit]

    def _log(self, name: str) -> dict[str, tuple[int, dict[str, Any]]]:
        """All entries of a conversation, including hidden ones: entry id -> log index and metadata."""
        found: dict[str, tuple[int, dict[str, Any]]] = {}
        try:
            entries = self.store.conversation(name).query(scope="all")
        except ConversationNotFound:
            return found
        for entry in entries:
            kept = (entry["message"].get("metadata") or {}).get(KEY)
            if kept is not None:
                found[kept["id"]] = (entry["index"], kept)
                self._conversation_of[kept["id"]] = name
        return found

    def _log_with(self, entry_id: str) -> dict[str, tuple[int, dict[str, Any]]]:
        """The entries of the conversation with this entry. Raises ``LookupError`` if there is none."""
        known = self._conversation_of.get(entry_id)
        if known and entry_id in (log := self._log(known)):
            return log
        for info in self.store.conversations():
            name = info["name"]
            if name.startswith(self.prefix) and entry_id in (log := self._log(name)):
                return log
        self._conversation_of.pop(entry_id, None)
        raise LookupError(f"there is no entry {entry_id!r}")

    def _entry(self, entry_id: str) -> ConversationEntry:
        return _entry(self._log_with(entry_id)[entry_id][1])

    def _history(self, head_id: str, limit: int | None) -> list[ConversationEntry]:
        log = self._log_with(head_id)
        chain: list[ConversationEntry] = []
        at: str | None = head_id
        while at is not None and (limit is None or len(chain) < limit):
            if at not in log:
                log = self._log_with(at)
            chain.append(_entry(log[at][1]))
            at = chain[-1].parent_id
        chain.reverse()
        return chain

    # Writing

    def _write(
        self, record: ConversationRecord, new: list[ConversationEntry], expected: str | None
    ) -> None:
        name = self._name(record.conversation_id)
        conflict = ConversationConflict(record.conversation_id)
        for _ in range(_MAX_ATTEMPTS):
            # The version is read before the revision: a change in between is a version conflict.
            version = self._version(name)
            stored = self._stored(name)
            if (None if stored is None else stored.record.revision) != expected:
                raise conflict
            try:
                if version is None:
                    version = self._create(name, record, new, conflict)
                self._apply(name, record, new, version, conflict)
            except VersionConflict:
                continue  # the next attempt finds another revision, or a change by another program
            return
        raise conflict

    def _version(self, name: str) -> int | None:
        """The newest version of the conversation. ``None`` if there is none."""
        try:
            return self.store.conversation(name).version()
        except ConversationNotFound:
            return None

    def _create(
        self,
        name: str,
        record: ConversationRecord,
        new: list[ConversationEntry],
        conflict: ConversationConflict,
    ) -> int:
        """Creates or forks the conversation, and returns its version."""
        new_ids = {entry.id for entry in new}
        start = new[0].parent_id if new else record.head_id
        try:
            if start is None or start in new_ids:
                self.store.create(name, counter=self.counter)
            else:
                self._log_with(start)
                self.store.conversation(self._conversation_of[start]).fork(name)
        except ConversationExists:
            # Another program was first.
            raise VersionConflict("version_conflict", f"{name!r} was created meanwhile") from None
        except LookupError:
            raise conflict from None
        return self.store.conversation(name).version()

    def _apply(
        self,
        name: str,
        record: ConversationRecord,
        new: list[ConversationEntry],
        version: int,
        conflict: ConversationConflict,
    ) -> None:
        """Stores the new entries and the record, and makes the history of the record the view."""
        from .pydantic_ai import message_of

        conversation = self.store.conversation(name)
        log = self._log(name)
        length = conversation.versions(limit=1)[0]["log"]
        indices = {entry_id: index for entry_id, (index, _) in log.items()}
        parents = {entry_id: kept["parent"] for entry_id, (_, kept) in log.items()}
        added: list[dict[str, Any]] = []
        for entry in new:
            kept = {"id": entry.id, "parent": entry.parent_id}
            kept["message"] = _MESSAGES.dump_python(entry.message, mode="json")
            added.append({**message_of(entry.message), "id": entry.id, "metadata": {KEY: kept}})
            indices[entry.id], parents[entry.id] = length + len(added) - 1, entry.parent_id
        chain: list[int] = []
        at = record.head_id
        while at is not None:
            if at not in indices:
                raise conflict
            chain.append(indices[at])
            at = parents[at]
        note: dict[str, Any] = {_RECORD: _RECORDS.dump_python(record, mode="json")}
        if len(_RECORDS.dump_json(record)) > _MAX_NOTE_BYTES:
            part = {"type": "pydantic_ai_record"}
            added.append({"role": "user", "content": [part], "metadata": note})
            note = {_RECORD: {"index": length + len(added) - 1}}
        operations: list[dict[str, Any]] = []
        if added:
            operations.append({"operation": "APPEND", "messages": added})
        shown = [entry["index"] for entry in conversation.query()]
        if [*shown, *range(length, length + len(added))] != chain[::-1] or not operations:
            operations.append({"operation": "ARRANGE", "indices": chain[::-1]})
        conversation.apply(operations, expected_version=version, note=note)

    def _delete(self, conversation_id: str, expected: str) -> None:
        name = self._name(conversation_id)
        for _ in range(_MAX_ATTEMPTS):
            stored = self._stored(name)
            if stored is None or stored.record.revision != expected:
                raise ConversationConflict(conversation_id)
            try:
                self.store.conversation(name).remove(expected_version=stored.version)
            except VersionConflict:
                continue
            except ConversationNotFound:
                raise ConversationConflict(conversation_id) from None
            return
        raise ConversationConflict(conversation_id)


class _Stored:
    """The newest version of a conversation, and its record."""

    def __init__(self, version: int, record: ConversationRecord) -> None:
        self.version = version
        self.record = record


def _entry(kept: dict[str, Any]) -> ConversationEntry:
    message = _MESSAGES.validate_python(kept["message"])
    return ConversationEntry(id=kept["id"], parent_id=kept["parent"], message=message)
