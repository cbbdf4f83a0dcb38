"""Errors. Every error of the contract is a ``RectoError`` with a code; frequent codes have a class."""

from __future__ import annotations

import json
from typing import Any

__all__ = [
    "BatchNotFound",
    "BudgetTooSmall",
    "ConversationExists",
    "ConversationNotFound",
    "InvalidRequest",
    "NotFound",
    "NothingToRevert",
    "PinnedEntry",
    "RectoError",
    "StorageError",
    "VersionConflict",
    "VersionNotFound",
]


class RectoError(Exception):
    """A request that was refused. It has changed nothing, unless the message says that the outcome is unknown."""

    code: str
    """The code of the contract, such as ``version_conflict``."""
    message: str
    """What was wrong, where, and what is allowed."""
    field: str | None
    """The field of the request that is wrong, such as ``op.maxTokens``."""
    details: dict[str, Any]
    """Values that belong to the code. Empty if there are none."""

    def __init__(
        self,
        code: str,
        message: str,
        field: str | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        # All arguments are in `args`, so that an error can be pickled.
        super().__init__(code, message, field, details)
        self.code = code
        self.message = message
        self.field = field
        self.details = details or {}

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class InvalidRequest(RectoError, ValueError):
    """The request is malformed, or names something that it must not name."""


class NotFound(RectoError, LookupError):
    """The request names something that does not exist."""


class ConversationNotFound(NotFound):
    """No conversation has this name or id."""


class VersionNotFound(NotFound):
    """The conversation does not have this version."""


class BatchNotFound(NotFound):
    """The live path does not have this batch."""


class ConversationExists(RectoError):
    """A conversation has this name already."""


class VersionConflict(RectoError):
    """The newest version is not the expected one. ``details`` has both."""

    @property
    def current_version(self) -> int | None:
        """The newest version of the conversation."""
        version = self.details.get("currentVersion")
        return version if isinstance(version, int) else None


class PinnedEntry(RectoError):
    """The request would hide or replace a pinned entry."""


class NothingToRevert(RectoError):
    """There is nothing to undo or to redo."""


class BudgetTooSmall(RectoError):
    """FIT cannot keep anything within the budget."""

    @property
    def needed(self) -> int | None:
        """The smallest budget with which the request succeeds."""
        needed = self.details.get("needed")
        return needed if isinstance(needed, int) else None


class StorageError(RectoError):
    """The store failed, is damaged, or is closed."""


_CLASSES: dict[str, type[RectoError]] = {
    "invalid_json": InvalidRequest,
    "invalid_operation": InvalidRequest,
    "invalid_message": InvalidRequest,
    "empty_content": InvalidRequest,
    "position_out_of_range": InvalidRequest,
    "index_out_of_range": InvalidRequest,
    "not_visible": InvalidRequest,
    "invalid_range": InvalidRequest,
    "nothing_to_compress": InvalidRequest,
    "too_large": InvalidRequest,
    "batch_not_found": BatchNotFound,
    "version_not_found": VersionNotFound,
    "conversation_not_found": ConversationNotFound,
    "conversation_exists": ConversationExists,
    "version_conflict": VersionConflict,
    "pinned": PinnedEntry,
    "nothing_to_undo": NothingToRevert,
    "nothing_to_redo": NothingToRevert,
    "budget_too_small": BudgetTooSmall,
    "storage": StorageError,
}


def error_of(text: str) -> RectoError:
    """The exception for ``{"error": {code, message, field?, details?}}``. The native module calls it."""
    error: dict[str, Any] = json.loads(text)["error"]
    code: str = error["code"]
    kind = _CLASSES.get(code, RectoError)
    return kind(code, error["message"], error.get("field"), error.get("details"))
