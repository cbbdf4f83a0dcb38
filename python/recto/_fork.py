"""Locks in processes that are created with ``fork``.

A lock that another thread holds stays locked in the child, where this thread does not exist, and what the
thread was changing stays half changed. So an object with a lock starts again in the child.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol

from ._recto import after_fork_in_child, after_fork_in_parent, before_fork


class HasLocks(Protocol):
    """An object with locks. It is hashed by its identity."""

    def start_again(self) -> None:
        """Makes new locks, and forgets what a thread may have left half changed."""


_OBJECTS: weakref.WeakSet[HasLocks] = weakref.WeakSet()


def starts_again_in_child(it: HasLocks) -> None:
    """Calls ``start_again`` in each child that this process forks, while the object exists."""
    _OBJECTS.add(it)


def _after_fork_in_child() -> None:
    after_fork_in_child()
    for it in list(_OBJECTS):
        it.start_again()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=before_fork,
        after_in_parent=after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
