"""What ``RectoMiddleware`` knows of the conversations of threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import types as t
from ._fork import starts_again_in_child
from ._json import as_json, plain
from ._langchain import from_recto, to_recto
from .errors import InvalidRequest

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

REMOVED = "removed from the state"
"""The mark of messages that were hidden because they left the state. They may return to it."""
_MAX_THREADS = 1_024
"""Number of threads whose log indices stay in memory."""


@dataclass
class Thread:
    """What is known of the conversation of a thread."""

    indices: dict[str, int] = field(default_factory=dict)
    """The newest log index of each message id."""
    messages: dict[str, BaseMessage | dict[str, Any]] = field(default_factory=dict)
    """The message of each id: the object of the state, or the stored message if it was only read."""
    removed: set[str] = field(default_factory=set)
    """Ids of messages whose newest entry has the mark of removed messages."""
    version: int = -1
    is_paused: bool = False
    last_sent: list[int] = field(default_factory=list)

    def read(self, entries: list[t.Entry]) -> None:
        """Reads the log, which other writers have changed."""
        known, self.indices = self.indices, {}
        stored: dict[str, BaseMessage | dict[str, Any]] = {}
        self.removed.clear()
        for entry in entries:
            identity = entry["message"].get("id")
            if identity is None:
                continue
            # An id may return: the newest entry counts.
            self.indices[identity], stored[identity] = entry["index"], entry["message"]
            if REMOVED in entry.get("marks", ()):
                self.removed.add(identity)
            else:
                self.removed.discard(identity)
        messages, self.messages = self.messages, stored
        for identity, index in self.indices.items():
            if known.get(identity) == index and identity in messages:
                self.messages[identity] = messages[identity]

    def has(self, identity: str, message: BaseMessage) -> bool:
        """Whether a message equals the known one with its id."""
        known = self.messages[identity]
        if isinstance(known, dict):
            return stored_message(identity, message) == known or from_recto(known) == message
        return known is message or known == message


class Threads:
    """The threads that were used last, and the lock for using them."""

    def __init__(self) -> None:
        self._by_id: OrderedDict[str, Thread] = OrderedDict()
        self.start_again()
        starts_again_in_child(self)

    def start_again(self) -> None:
        self.lock = threading.RLock()
        for thread_id, thread in [*self._by_id.items()]:
            self._by_id[thread_id] = Thread(is_paused=thread.is_paused)

    def get(self, thread_id: str) -> Thread | None:
        thread = self._by_id.get(thread_id)
        if thread is not None:
            self._by_id.move_to_end(thread_id)
        return thread

    def add(self, thread_id: str) -> Thread:
        thread = self._by_id[thread_id] = Thread()
        while len(self._by_id) > _MAX_THREADS:
            self._by_id.popitem(last=False)
        return thread


def id_of(message: BaseMessage, position: int) -> str:
    """The id of a message. In a state every message has one."""
    return message.id or f"position {position}"


def stored_message(identity: str, message: BaseMessage) -> dict[str, Any]:
    """The message as it is stored. If it is not JSON, only what the model reads is stored, as text."""
    try:
        return plain({**to_recto(message), "id": identity})
    except InvalidRequest:
        return as_json({**to_recto(message, keep=False), "id": identity})
