"""Fits, repairs and counts lists of messages. Nothing is stored."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from . import types as t
from ._json import as_json, decode, encode, not_text
from ._recto import call, compute
from .errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Fitted", "count_tokens", "fit", "repair"]

M = TypeVar("M")


@dataclass(frozen=True)
class Fitted(Generic[M]):
    """A list of messages that fits a budget, or that was repaired."""

    messages: list[M]
    """The list: the caller's own objects, and messages that a repair made."""
    positions: list[int | None]
    """For each message its position in the given list; ``None`` if a repair made it."""
    dropped: list[int]
    """Positions of given messages that are not in the list."""
    tokens_before: int
    """The tokens of the given list."""
    tokens: int
    """The tokens of the list."""
    repairs: list[t.ListRepair]
    """The violated rules of the provider, each with its repair."""


def fit(
    messages: Sequence[M],
    max_tokens: int,
    *,
    target_tokens: int | None = None,
    format: str | None = None,
    keep_system: bool = True,
    start_on: t.Role | None = None,
    keep: Sequence[int] = (),
    counter: str | None = None,
    repair_for: t.Provider | None = None,
    model: str | None = None,
) -> Fitted[M]:
    """Keeps the newest messages that fit a token budget. Tool calls stay with their results.

    A list with more than ``max_tokens`` is cut down to ``target_tokens``: cut rarely and deeply,
    because each cut invalidates the prompt cache of the provider. ``keep`` has positions that stay.
    Messages are LangChain messages or dicts of a ``format``, by default Recto's. A dict of another
    format, such as one with ``tool_calls``, raises :class:`InvalidRequest` with the format to give.

    >>> fit([{"role": "user", "content": "one"}, {"role": "user", "content": "two"}], 5).messages
    [{'role': 'user', 'content': 'two'}]
    """
    given = _Given.of(messages, format, "fit")
    request = {
        "fit": given.items,
        "format": given.format,
        "maxTokens": max_tokens,
        "targetTokens": target_tokens,
        "keepSystem": keep_system,
        "startOn": start_on,
        "keep": list(keep),
        "counter": counter,
        "repairFor": repair_for,
        "model": model,
    }
    return given.fitted(messages, given.computed(request, "fit"))


def repair(
    messages: Sequence[M],
    provider: t.Provider,
    *,
    format: str | None = None,
    counter: str | None = None,
    model: str | None = None,
) -> Fitted[M]:
    """Repairs a list for a provider: each tool call gets a result, each result has a call."""
    given = _Given.of(messages, format, "repair")
    request = {
        "repair": given.items,
        "for": provider,
        "format": given.format,
        "counter": counter,
        "model": model,
    }
    return given.fitted(messages, given.computed(request, "repair"))


def count_tokens(
    messages: str | object | Sequence[object],
    *,
    counter: str | None = None,
    format: str | None = None,
) -> int:
    """The tokens of a text, of a message or of a list of messages. It works offline.

    >>> count_tokens("hello world")
    2
    """
    if isinstance(messages, str):
        if not messages:
            return 0
        # A message has 3 tokens besides its text.
        request = {"countTokens": [{"role": "user", "content": messages}], "counter": counter}
        return _compute(request)["tokens"] - 3
    is_list = isinstance(messages, (list, tuple))
    listed = cast("Sequence[object]", messages if is_list else [messages])
    given = _Given.of(listed, format, "countTokens")
    request = {"countTokens": given.items, "format": given.format, "counter": counter}
    return given.computed(request, "countTokens")["tokens"]


def _compute(request: Mapping[str, Any]) -> dict[str, Any]:
    response = call(request)
    if response is not NotImplemented:
        return response
    try:
        return decode(compute(encode(request)))
    except UnicodeEncodeError:
        raise not_text(request) from None


@dataclass(frozen=True)
class _Given:
    """Messages as dicts, their format, and how a new message becomes one of the caller's objects."""

    items: list[Any]
    format: str | None
    restore: Callable[[dict[str, Any]], Any]

    @staticmethod
    def of(messages: Sequence[object], format: str | None, field: str) -> _Given:
        listed = _listed(messages, field)
        # A LangChain message exists only if its module is loaded.
        base = getattr(sys.modules.get("langchain_core.messages.base"), "BaseMessage", None)
        if format is None and base is not None and any(isinstance(one, base) for one in listed):
            from langchain_core.messages import message_to_dict, messages_from_dict

            items = [
                message_to_dict(_langchain_message(one, f"{field}[{at}]"))
                for at, one in enumerate(listed)
            ]
            return _Given(items, "langchain", lambda made: messages_from_dict([made])[0])
        return _Given(listed, format, lambda made: made)

    def computed(self, request: Mapping[str, Any], field: str) -> dict[str, Any]:
        """The response. ``field`` of the request has the messages."""
        try:
            return _compute(request)
        except InvalidRequest as error:
            # A message of LangChain may have an artifact or other objects that no model reads.
            if self.format != "langchain" or error.code != "invalid_json":
                raise
            return _compute({**request, field: as_json(self.items)})

    def fitted(self, messages: Sequence[M], response: Mapping[str, Any]) -> Fitted[M]:
        shown: list[M] = []
        positions: list[int | None] = []
        for item in response["messages"]:
            position = cast("int | None", item.get("from"))
            positions.append(position)
            if position is None:
                shown.append(cast("M", self.restore(item["made"])))
            else:
                shown.append(messages[position])
        return Fitted(
            shown,
            positions,
            response["dropped"],
            response["tokensBefore"],
            response["tokens"],
            response["repairs"],
        )


def _listed(messages: object, field: str) -> list[Any]:
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):
        kind = type(cast("object", messages)).__name__
        message = f"{field} must be a list of messages, not {kind}"
        raise InvalidRequest("invalid_message", message, field)
    return list(cast("Iterable[Any]", messages))


def _langchain_message(message: object, field: str) -> Any:
    from langchain_core.messages import convert_to_messages

    try:
        return convert_to_messages(cast("Any", [message]))[0]
    except (NotImplementedError, TypeError, ValueError) as error:
        text = f"{field} is a {type(message).__name__}, which is not a message of LangChain"
        raise InvalidRequest("invalid_message", text, field) from error
