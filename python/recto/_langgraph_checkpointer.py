"""A LangGraph checkpointer that needs no other checkpointer."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from ._cancellation import completed
from ._langgraph_ledger import SUFFIX, LedgerSaver
from ._langgraph_saver import RectoSaver
from .store import Store, opened

if TYPE_CHECKING:
    from langgraph.checkpoint.serde.base import SerializerProtocol


class RectoCheckpointer(RectoSaver[str]):
    """A checkpointer that keeps everything in a Recto store: SQLite, PostgreSQL or memory.

    ``store`` is a store, or the address of one. The messages of a thread are a conversation, as with
    :class:`RectoSaver`; everything else is in a second conversation, the ledger of the thread. Copying a
    thread forks its conversations, and copies nothing. ``serde`` converts and may encrypt everything
    but the messages. If it is not LangGraph's ``JsonPlusSerializer``, it converts the messages too, and
    they are in the ledger; ``messages_in_clear`` is as in :class:`RectoSaver`.
    """

    def __init__(
        self,
        store: Store | str,
        *,
        serde: SerializerProtocol | None = None,
        channel: str = "messages",
        prefix: str = "",
        counter: str | None = None,
        messages_in_clear: bool = False,
    ) -> None:
        shared = opened(store)
        ledger = LedgerSaver(shared, lambda thread: self._base(thread), serde=serde)
        super().__init__(
            ledger,
            shared,
            channel=channel,
            prefix=prefix,
            counter=counter,
            messages_in_clear=messages_in_clear,
        )
        self._ledger = ledger

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> RectoCheckpointer:
        inner = self._ledger.with_allowlist(extra_allowlist)
        if inner is self._ledger:
            return self
        clone = RectoCheckpointer(
            self.store,
            serde=inner.serde,
            channel=self.channel,
            prefix=self.prefix,
            counter=self.counter,
            messages_in_clear=self.messages_in_clear,
        )
        clone.inner = clone._ledger = inner
        clone._views = self._views
        return clone

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies all checkpoints. Nothing is copied in the store: each conversation is forked."""
        # The version is read first: another writer may add a checkpoint while the messages are forked.
        # The ledger is forked last: after a crash in between, the copy has no checkpoint.
        version = self._ledger.version(source_thread_id)
        is_new = self._ledger.version(target_thread_id) is None
        self._fork_conversations(source_thread_id, target_thread_id, is_new=is_new)
        if version is not None:
            self._ledger.fork(source_thread_id, target_thread_id, version)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies all checkpoints. Nothing is copied in the store: each conversation is forked.

        The copy is completed even if the caller is cancelled.
        """
        await completed(self.copy_thread, source_thread_id, target_thread_id)

    def _referenced(self, name: str, thread_id: object, checkpoint_ns: object) -> str:
        # A checkpoint of a copied thread names the conversation of its source.
        return self._name(thread_id, checkpoint_ns)

    def _conversations(self, thread_id: str) -> Iterator[str]:
        names = super()._conversations(thread_id)
        return (name for name in names if not name.endswith(SUFFIX))
