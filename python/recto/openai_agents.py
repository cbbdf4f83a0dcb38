"""A session of the OpenAI Agents SDK that is a Recto conversation.

>>> session = RectoSession("user-42", "memory:")
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from ._extras import missing

try:
    from agents.memory.session_settings import SessionSettings, resolve_session_limit
    from agents.run_config import CallModelData, ModelInputData
except ModuleNotFoundError as error:
    raise missing(error, "openai-agents") from None

from . import types as t
from ._cancellation import completed
from ._fit import Fitted
from ._fit import fit as fit_list
from ._fit import repair as repair_list
from ._growing import GrowingLists, checked_target
from ._json import encode
from ._names import checked_prefix, conversation_name
from .errors import BudgetTooSmall, InvalidRequest, VersionConflict
from .store import Conversation, Store, opened

if TYPE_CHECKING:
    from agents.items import TResponseInputItem

__all__ = ["RectoSession", "fit_input"]

_KEY = "openai_agents"
"""The field of ``metadata`` with the item as it was added, without a text that is stored as the content."""
_TEXT_KEY = "openai_agents_text"
"""The field of ``metadata`` that names the field of the item whose text is the content of the message."""
_TEXT_FIELDS = ("content", "output")
"""The fields of an item whose text is stored once, as the content of the message."""
_FORMAT = "openai-responses"
"""The format of items, and the provider whose rules they follow."""
_MAX_ATTEMPTS = 100
"""Maximum attempts after version conflicts."""


class RectoSession:
    """A session whose items are the messages of a conversation. Every change can be undone.

    ``store`` is a store, or the address of one. The name of the conversation is ``prefix`` and the id of
    the session, which may be any text.
    """

    session_settings: SessionSettings | None = None

    def __init__(
        self,
        session_id: str,
        store: Store | str,
        *,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        counter: str | None = None,
        prefix: str = "agents/",
    ) -> None:
        self.session_id = _checked_id(session_id)
        self.store = opened(store)
        self.prefix = checked_prefix(prefix)
        if isinstance(session_settings, dict):
            session_settings = SessionSettings(**session_settings)
        self.session_settings = session_settings or SessionSettings()
        settings: Any = {"counter": counter} if counter else True
        name = conversation_name(self.prefix, session_id)
        self._conversation = self.store.conversation(name, create=settings)

    @property
    def conversation(self) -> Conversation:
        """The conversation, with its versions."""
        return self._conversation

    # The protocol of sessions. Items come back exactly as they were added: the SDK compares them.

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The newest items, oldest first."""
        _check_number("limit", limit)
        limit = resolve_session_limit(limit, self.session_settings)
        if limit is not None and limit <= 0:
            return []
        query = {} if limit is None else {"last": limit}
        entries = await asyncio.to_thread(self._conversation.query, **query)
        return [_item(entry["message"]) for entry in entries]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Adds items as one atomic request. It is completed even if the caller is cancelled."""
        if items:
            messages = [_message(item) for item in items]
            await completed(self._conversation.append, messages)

    async def pop_item(self) -> TResponseInputItem | None:
        """Removes the newest item from the view, and returns it."""
        return await completed(self._pop)

    async def clear_session(self) -> None:
        """Removes all items from the view. UNDO shows them again."""
        clear = {"operation": "CLEAR", "keepSystemMessage": False, "description": "session cleared"}
        await completed(self._conversation.apply, clear)

    def _pop(self) -> TResponseInputItem | None:
        for _ in range(_MAX_ATTEMPTS):
            shown = self._conversation.request({"show": True})
            entries: list[t.Entry] = shown["messages"]
            if not entries:
                return None
            try:
                self._conversation.hide(
                    [entries[-1]["index"]],
                    description="popped",
                    expected_version=shown["version"],
                )
            except VersionConflict:
                continue
            return _item(entries[-1]["message"])
        raise VersionConflict("version_conflict", "other writers keep changing the session")

    # Beyond the protocol

    def fit(
        self,
        max_tokens: int,
        *,
        target_tokens: int | None = None,
        repair: bool = True,
        counter: str | None = None,
    ) -> Callable[[CallModelData[Any]], ModelInputData]:
        """A ``call_model_input_filter`` that bounds and repairs the input: :func:`fit_input`."""
        return fit_input(max_tokens, target_tokens=target_tokens, repair=repair, counter=counter)

    async def rewind(self, *, before: str = "last user message", steps: int | None = None) -> int:
        """Hides the items from the last message of the user on, or the newest ``steps`` items.

        Returns the number of items. UNDO shows them again.
        """
        if before != "last user message":
            raise InvalidRequest(
                "invalid_operation",
                f"before cannot be {before!r}; use 'last user message'",
                "before",
            )
        _check_number("steps", steps)
        return await completed(self._rewind, steps)

    def _rewind(self, steps: int | None) -> int:
        for _ in range(_MAX_ATTEMPTS):
            shown = self._conversation.request({"show": True})
            entries: list[t.Entry] = shown["messages"]
            start = len(entries) - (steps or 0)
            if steps is None:
                users = [at for at, entry in enumerate(entries) if _is_from_user(entry)]
                start = users[-1] if users else len(entries)
            hidden = [entry["index"] for entry in entries[max(start, 0) :]]
            if not hidden:
                return 0
            try:
                self._conversation.hide(
                    hidden, description="rewound", expected_version=shown["version"]
                )
            except VersionConflict:
                continue
            return len(hidden)
        raise VersionConflict("version_conflict", "other writers keep changing the session")

    async def undo(self) -> None:
        """Reverts the newest change of the session."""
        await completed(self._conversation.undo)

    async def fork(self, session_id: str, *, at: int | None = None) -> RectoSession:
        """A session that starts at a version of this one. It copies no items."""
        name = conversation_name(self.prefix, _checked_id(session_id))
        await completed(self._conversation.fork, name, at=at)
        options: dict[str, Any] = {"session_settings": self.session_settings, "prefix": self.prefix}
        return await asyncio.to_thread(RectoSession, session_id, self.store, **options)


def fit_input(
    max_tokens: int,
    *,
    target_tokens: int | None = None,
    repair: bool = True,
    counter: str | None = None,
) -> Callable[[CallModelData[Any]], ModelInputData]:
    """A ``call_model_input_filter`` that bounds and repairs the input of each model call.

    An input with more than ``max_tokens`` is cut down to ``target_tokens`` (default: 60 % of
    ``max_tokens``). The next inputs of the run consist of the remaining items and the new ones, until these
    are over ``max_tokens`` again. So the front of the input stays the same between two cuts, and the prompt
    cache of the provider stays valid. The session keeps all items.
    """
    target = checked_target(max_tokens, target_tokens, ("max_tokens", "target_tokens"), counter)
    lists: GrowingLists[Any] = GrowingLists()

    def fit(items: list[Any]) -> Fitted[Any]:
        options: dict[str, Any] = {"format": _FORMAT, "counter": counter}
        try:
            return fit_list(items, max_tokens, target_tokens=target, **options)
        except BudgetTooSmall as error:
            # Not even the shortest run of newest items fits in the target: keep only that run.
            return fit_list(items, error.needed or max_tokens, **options)

    def shape(data: CallModelData[Any]) -> ModelInputData:
        items = data.model_data.input
        if not items:
            return data.model_data
        shaped = lists.fit(cast("Sequence[Any]", items), fit).messages
        if repair and shaped:
            shaped = repair_list(shaped, _FORMAT, format=_FORMAT, counter="approx").messages
        return ModelInputData(input=shaped, instructions=data.model_data.instructions)

    return shape


def _checked_id(session_id: object) -> str:
    if not isinstance(session_id, str):
        reason = f"session_id must be a text, not {type(session_id).__name__}"
        raise InvalidRequest("invalid_operation", reason, "session_id")
    return session_id


def _check_number(name: str, value: object) -> None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        reason = f"{name} must be a whole number, not {value!r}"
        raise InvalidRequest("invalid_operation", reason, name)


def _is_from_user(entry: t.Entry) -> bool:
    return entry["message"]["role"] == "user"


def _item(message: dict[str, Any]) -> TResponseInputItem:
    metadata = message.get("metadata") or {}
    if _KEY in metadata:
        item = metadata[_KEY]
        if _TEXT_KEY in metadata:
            item[metadata[_TEXT_KEY]] = _only_text(message["content"])
        return item
    # A message that was not added by the SDK, such as a summary.
    content = message["content"]
    if not isinstance(content, str):
        content = "\n".join(part.get("text", "") for part in content)
    return cast("TResponseInputItem", {"role": message["role"], "content": content})


def _message(item: TResponseInputItem) -> dict[str, Any]:
    """The item as a message. Its ``metadata`` contains the item, because the SDK compares items."""
    fields = cast("dict[str, Any]", item)
    if not isinstance(fields, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidRequest("invalid_message", "an item is a dict", "items")
    kind = fields.get("type", "message")
    role, parts = "assistant", [{"type": "openai_item", "kind": kind}]
    if kind == "message" and fields.get("role") in ("user", "assistant", "system", "developer"):
        role = "system" if fields["role"] == "developer" else fields["role"]
        parts = _parts(fields.get("content"))
    elif kind in ("function_call", "custom_tool_call"):
        text = fields.get("arguments", fields.get("input", ""))
        call = {
            "type": "tool_use",
            "id": str(fields.get("call_id")),
            "name": str(fields.get("name")),
        }
        parts = [{**call, "input": _arguments(text)}]
    elif kind in ("function_call_output", "custom_tool_call_output"):
        role = "tool"
        output = fields.get("output")
        content = output if isinstance(output, str) else _parts(output)
        parts = [
            {"type": "tool_result", "tool_use_id": str(fields.get("call_id")), "content": content}
        ]
    return {"role": role, "content": parts, "metadata": _metadata(fields, parts)}


def _metadata(item: dict[str, Any], parts: list[dict[str, Any]]) -> dict[str, Any]:
    """The item, with ``None`` in the place of the text that is the content of the message."""
    for field in _TEXT_FIELDS:
        text = item.get(field)
        if isinstance(text, str) and text and _only_text(parts) == text:
            return {_KEY: {**item, field: None}, _TEXT_KEY: field}
    return {_KEY: item}


def _only_text(content: str | list[dict[str, Any]]) -> str | None:
    """The text of a message or of a tool result, if it consists only of this text."""
    if isinstance(content, str):
        return content
    part = content[0] if len(content) == 1 else {}
    text = part.get("text") if part.get("type") == "text" else part.get("content")
    return text if isinstance(text, str) else None


def _parts(content: object) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else [{"type": "empty"}]
    parts: list[dict[str, Any]] = []
    for part in cast("list[Any]", content) if isinstance(content, list) else []:
        text = part.get("text") if isinstance(part, dict) else None
        kind = str(part.get("type")) if isinstance(part, dict) else "unknown"
        if isinstance(text, str):
            parts.append({"type": "text", "text": text})
        elif "image" in kind or "file" in kind or "audio" in kind:
            # The item in ``metadata`` contains the data.
            media = "image" if "image" in kind else "audio" if "audio" in kind else "file"
            parts.append({"type": media})
        else:
            parts.append({"type": "openai_part", "kind": kind})
    return parts or [{"type": "empty"}]


def _arguments(text: object) -> object:
    if not isinstance(text, str):
        return text
    try:
        value = json.loads(text)
        encode(value).encode()
    except (ValueError, RecursionError):
        return text  # the model wrote no JSON, or JSON with NaN or a lone surrogate
    return value
