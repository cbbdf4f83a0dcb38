"""Pydantic AI: a capability that bounds what the model reads, and a store for conversations.

``RectoContext`` changes only the request of each model call. The history of the run keeps every message.
``RectoConversationStore`` keeps conversations in a Recto store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ._extras import missing

try:
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import (
        ModelMessage,
        ModelRequest,
        RetryPromptPart,
        SystemPromptPart,
        TextPart,
        ThinkingPart,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.tools import RunContext
except ModuleNotFoundError as error:
    raise missing(error, "pydantic-ai") from None

from ._fit import Fitted, fit
from ._growing import GrowingLists, checked_target
from ._pydantic_store import RectoConversationStore
from .errors import BudgetTooSmall

__all__ = ["RectoContext", "RectoConversationStore", "fit_messages", "message_of"]


@dataclass
class RectoContext(AbstractCapability[Any]):
    """Keeps the messages of each model request within a token budget.

    A list with more than ``budget`` tokens is cut down to ``target`` (default: 60 % of the budget). The
    next requests of the run consist of the remaining messages and the new ones, until these are over the
    budget again. So the front of the request stays the same between two cuts, and the prompt cache of the
    provider stays valid. Messages with a system prompt stay. ``on_report`` receives the result for each
    model request. Its ``tokens_before`` does not include messages that earlier cuts dropped.
    """

    budget: int
    target: int | None = None
    counter: str | None = None
    on_report: Callable[[Fitted[ModelMessage]], None] | None = None
    _lists: GrowingLists[ModelMessage] = field(
        default_factory=GrowingLists, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        self.target = checked_target(self.budget, self.target, ("budget", "target"), self.counter)

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        fitted = await asyncio.to_thread(self._lists.fit, request_context.messages, self._fit)
        if self.on_report is not None:
            self.on_report(fitted)
        return replace(request_context, messages=fitted.messages)

    def _fit(self, messages: list[ModelMessage]) -> Fitted[ModelMessage]:
        return fit_messages(messages, self.budget, target=self.target, counter=self.counter)


def fit_messages(
    messages: Sequence[ModelMessage],
    budget: int,
    *,
    target: int | None = None,
    counter: str | None = None,
) -> Fitted[ModelMessage]:
    """The newest messages that fit a token budget, with those that have a system prompt.

    A list with more than ``budget`` tokens is cut down to ``target`` (default: 60 % of the budget). A tool
    call stays with its returns. If the newest message or tool exchange does not fit in ``target`` together
    with the messages that have a system prompt, the result consists of only these.
    """
    converted = [message_of(message) for message in messages]
    keep = [at for at, message in enumerate(messages) if _has_system_prompt(message)]
    target = budget * 6 // 10 if target is None else target
    try:
        fitted = fit(converted, budget, target_tokens=target, keep=keep, counter=counter)
    except BudgetTooSmall as error:
        fitted = fit(converted, error.needed or budget, keep=keep, counter=counter)
    return Fitted(
        [messages[at] for at in fitted.positions if at is not None],
        fitted.positions,
        fitted.dropped,
        fitted.tokens_before,
        fitted.tokens,
        fitted.repairs,
    )


def _has_system_prompt(message: ModelMessage) -> bool:
    return any(isinstance(part, SystemPromptPart) for part in message.parts)


def message_of(message: ModelMessage) -> dict[str, Any]:
    """The message as one Recto message, so that positions are the same."""
    is_request = isinstance(message, ModelRequest)
    parts: list[dict[str, Any]] = []
    for part in message.parts:
        parts.extend(_parts(part))
    if not is_request:
        role = "assistant"
    elif any(part["type"] == "tool_result" for part in parts):
        role = "tool"
    else:
        role = "user"
    return {"role": role, "content": parts or [{"type": "empty"}]}


def _parts(part: Any) -> list[dict[str, Any]]:
    if isinstance(part, ToolCallPart):
        call = {"type": "tool_use", "id": part.tool_call_id, "name": part.tool_name}
        return [{**call, "input": part.args_as_json_str()}]
    if isinstance(part, ToolReturnPart):
        content = part.model_response_str()
        return [{"type": "tool_result", "tool_use_id": part.tool_call_id, "content": content}]
    if isinstance(part, RetryPromptPart):
        text = part.model_response()
        if part.tool_name is None:
            return _texts(text)
        return [{"type": "tool_result", "tool_use_id": part.tool_call_id, "content": text}]
    if isinstance(part, UserPromptPart) and not isinstance(part.content, str):
        return [one for item in part.content for one in _user_content(item)]
    if isinstance(part, (SystemPromptPart, UserPromptPart, TextPart)):
        return _texts(str(part.content))
    if isinstance(part, ThinkingPart):
        return [{"type": "thinking", "text": part.content}] if part.content else []
    return [{"type": "pydantic_ai_part", "kind": str(getattr(part, "part_kind", "unknown"))}]


def _user_content(item: Any) -> list[dict[str, Any]]:
    if isinstance(item, str):
        return _texts(item)
    text = getattr(item, "text", None)
    # Any other item, such as an image, is counted as one file. Its bytes are not counted.
    return _texts(text) if isinstance(text, str) else [{"type": "file"}]


def _texts(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}] if text else []
