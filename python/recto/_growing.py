"""Token budgets for the messages of a run. The list grows with each model call.

A cut changes the front of the request, which invalidates the prompt cache of the provider. So a list is
cut down to a target well below the budget, and then only grows until it is over the budget again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar, cast

from ._fit import Fitted, count_tokens
from ._fork import starts_again_in_child
from .errors import InvalidRequest

M = TypeVar("M")

_MAX_LISTS = 64
"""Number of runs whose newest list stays in memory."""


class _List(NamedTuple):
    messages: Sequence[object]
    """The list of a model call."""
    kept: list[int]
    """Positions in it that no cut has dropped."""


class GrowingLists(Generic[M]):
    """Fits the lists of model calls. A list that continues an earlier one keeps the cuts of that one.

    Runs may share an instance, also in several threads: a list belongs to the run whose newest list is
    a prefix of it. A list that continues no other one is fitted as a whole.
    """

    def __init__(self) -> None:
        # Ordered by their last use, the newest last.
        self._lists: list[_List] = []
        self.start_again()
        starts_again_in_child(self)

    def start_again(self) -> None:
        self._lock = threading.Lock()

    def fit(self, messages: Sequence[M], fit: Callable[[list[M]], Fitted[M]]) -> Fitted[M]:
        """Fits the messages that earlier cuts kept, together with the new messages.

        The positions are those of ``messages``. ``tokens_before`` does not count dropped messages.
        """
        given = [*messages]  # the application may change its list meanwhile
        earlier = self._continued(given)
        candidates = [*earlier.kept, *range(len(earlier.messages), len(given))]
        fitted = fit([given[at] for at in candidates])
        kept = [candidates[at] for at in fitted.positions if at is not None]
        self._keep(earlier, _List(given, kept))
        dropped = sorted(set(range(len(given))).difference(kept))
        return Fitted(
            fitted.messages,
            cast("list[int | None]", kept),
            dropped,
            fitted.tokens_before,
            fitted.tokens,
            fitted.repairs,
        )

    def _continued(self, given: Sequence[object]) -> _List:
        """The longest earlier list that is a prefix of this one."""
        with self._lock:
            lists = [*self._lists]
        lists.sort(key=lambda one: len(one.messages), reverse=True)
        for one in lists:
            if len(one.messages) <= len(given) and _all_same(one.messages, given):
                return one
        return _NO_LIST

    def _keep(self, earlier: _List, newest: _List) -> None:
        with self._lock:
            self._lists = [one for one in self._lists if one is not earlier]
            self._lists.append(newest)
            del self._lists[:-_MAX_LISTS]


_NO_LIST = _List([], [])


def _all_same(start: Sequence[object], given: Sequence[object]) -> bool:
    return all(old is new or old == new for old, new in zip(start, given))


def checked_target(
    budget: object, target: object, names: tuple[str, str], counter: str | None = None
) -> int:
    """The target of cuts. Default: 60 % of the budget. ``names`` are those of the two options."""
    if not isinstance(budget, int) or isinstance(budget, bool) or budget < 1:
        raise _invalid(names[0], f"must be a positive number of tokens, not {budget!r}")
    if target is None:
        target = max(budget * 6 // 10, 1)
    if not isinstance(target, int) or isinstance(target, bool) or not 0 < target <= budget:
        raise _invalid(names[1], f"must be from 1 to the {names[0]} of {budget}, not {target!r}")
    if counter is not None:
        count_tokens("x", counter=counter)  # fails if the counter is unknown
    return target


def checked_option(name: str, value: object, allowed: Sequence[str]) -> None:
    """Refuses a value that is neither ``None`` nor allowed."""
    if value is not None and value not in allowed:
        raise _invalid(name, f"cannot be {value!r}; use {', '.join(map(repr, allowed))}")


def _invalid(field: str, message: str) -> InvalidRequest:
    return InvalidRequest("invalid_operation", f"{field} {message}", field)
