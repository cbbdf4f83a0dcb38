"""Recto: versioned context for LLM agents.

>>> import recto
>>> store = recto.Store.open("memory:")
>>> conversation = store.create("support", counter="approx")
>>> conversation.append({"role": "user", "content": "Checkout fails!"})["version"]
1
>>> conversation.messages()
[{'role': 'user', 'content': 'Checkout fails!'}]
"""

from __future__ import annotations

from . import types
from ._fit import Fitted, count_tokens, fit, repair
from .aio import AsyncConversation, AsyncStore
from .errors import (
    BatchNotFound,
    BudgetTooSmall,
    ConversationExists,
    ConversationNotFound,
    InvalidRequest,
    NotFound,
    NothingToRevert,
    PinnedEntry,
    RectoError,
    StorageError,
    VersionConflict,
    VersionNotFound,
)
from .store import Conversation, Store

__all__ = [
    "AsyncConversation",
    "AsyncStore",
    "BatchNotFound",
    "BudgetTooSmall",
    "Conversation",
    "ConversationExists",
    "ConversationNotFound",
    "Fitted",
    "InvalidRequest",
    "NotFound",
    "NothingToRevert",
    "PinnedEntry",
    "RectoError",
    "StorageError",
    "Store",
    "VersionConflict",
    "VersionNotFound",
    "count_tokens",
    "fit",
    "repair",
    "types",
]
