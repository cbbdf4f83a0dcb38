"""LangChain messages as Recto messages, and back."""

from __future__ import annotations

from typing import Any, cast

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    HumanMessageChunk,
    SystemMessage,
    SystemMessageChunk,
    ToolMessage,
    ToolMessageChunk,
    message_to_dict,
    messages_from_dict,
)

KEY = "langchain"
"""The field of ``metadata`` with the fields of the LangChain message."""
EMPTY: dict[str, Any] = {"type": "empty"}
"""The part of a message without content, which frameworks produce."""

_KNOWN = frozenset(
    (
        AIMessage,
        AIMessageChunk,
        ChatMessage,
        FunctionMessage,
        HumanMessage,
        HumanMessageChunk,
        SystemMessage,
        SystemMessageChunk,
        ToolMessage,
        ToolMessageChunk,
    )
)


def are_messages(values: list[Any]) -> bool:
    """Whether all values are messages of LangChain's own classes. A message
    of a subclass would be restored as one of its base class.
    """
    return _KNOWN.issuperset(map(type, values))


def to_recto(message: BaseMessage, *, keep: bool = True) -> dict[str, Any]:
    """The message as a Recto message. With ``keep``, :func:`from_recto` restores it."""
    converted: dict[str, Any] = {"role": _role(message), "content": _content(message)}
    if message.id:
        converted["id"] = message.id
    if keep:
        dump = message_to_dict(message)
        if isinstance(message.content, str) and _text_of(converted["content"]) == message.content:
            del dump["data"]["content"]  # it is the text of the Recto message
        converted["metadata"] = {KEY: dump}
    return converted


def from_recto(message: dict[str, Any]) -> BaseMessage:
    """The LangChain message that :func:`to_recto` converted, or a new one."""
    dump = (message.get("metadata") or {}).get(KEY)
    if dump is None:
        return _new(message)
    data = dump["data"]
    if "content" not in data:
        dump = {**dump, "data": {**data, "content": _text_of(message["content"])}}
    return messages_from_dict([dump])[0]


def _role(message: BaseMessage) -> str:
    if isinstance(message, AIMessage):
        return "assistant"
    if isinstance(message, SystemMessage):
        return "system"
    if isinstance(message, (ToolMessage, FunctionMessage)):
        return "tool"
    return "user"


def _content(message: BaseMessage) -> str | list[dict[str, Any]]:
    if isinstance(message, ToolMessage):
        result: dict[str, Any] = {
            "type": "tool_result",
            "tool_use_id": message.tool_call_id,
            "content": message.content if isinstance(message.content, str) else _parts(message),
        }
        if message.status == "error":
            result["is_error"] = True
        return [result]
    calls: list[dict[str, Any]] = []
    if isinstance(message, AIMessage):
        for call in message.tool_calls:
            part = {"type": "tool_use", "id": call["id"] or "", "name": call["name"]}
            calls.append({**part, "input": call["args"]})
        for broken in message.invalid_tool_calls:
            part = {"type": "tool_use", "id": broken["id"] or "", "name": broken["name"] or ""}
            calls.append({**part, "input": broken["args"] or ""})
    if isinstance(message.content, str) and message.content and not calls:
        return message.content
    return [*_parts(message), *calls] or [EMPTY]


def _parts(message: BaseMessage) -> list[dict[str, Any]]:
    if isinstance(message.content, str):
        return [{"type": "text", "text": message.content}] if message.content else []
    parts: list[dict[str, Any]] = []
    for block in cast("list[Any]", message.content):
        if isinstance(block, str):
            parts.append({"type": "text", "text": block})
            continue
        kind = block.get("type")
        if kind == "text" and isinstance(block.get("text"), str):
            parts.append({"type": "text", "text": block["text"]})
        elif kind in ("thinking", "reasoning") and isinstance(block.get(kind), str):
            parts.append({"type": "thinking", "text": block[kind]})
        elif kind == "image_url":
            parts.append({**block, "type": "image"})
        elif kind in ("tool_use", "tool_call", "input_json_delta"):
            continue  # they are in `tool_calls`
        elif kind in ("image", "audio", "file"):
            parts.append(block)
        else:
            parts.append({"type": "langchain_block", "block": block})
    return parts


def _text_of(content: str | list[dict[str, Any]]) -> str:
    """The text of a message that :func:`to_recto` left out of the dump."""
    if isinstance(content, str):
        return content
    first = content[0]
    if first["type"] == "tool_result":
        return first["content"] if isinstance(first["content"], str) else ""
    return first["text"] if first["type"] == "text" else ""


def _new(message: dict[str, Any]) -> BaseMessage:
    """A message that was not made by LangChain, such as a summary or a placeholder."""
    content = message["content"]
    parts: list[dict[str, Any]]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    texts = [part["text"] for part in parts if part["type"] == "text"]
    text = "\n".join(texts)
    identity = message.get("id")
    for part in parts:
        if part["type"] == "tool_result":
            result = part.get("content") or ""
            if not isinstance(result, str):
                result = "\n".join(inner.get("text", "") for inner in result)
            status = "error" if part.get("is_error") else "success"
            return ToolMessage(
                content=result, tool_call_id=part["tool_use_id"], status=status, id=identity
            )
    if message["role"] == "assistant":
        calls = [
            {"id": part["id"], "name": part["name"], "args": part["input"]}
            for part in parts
            if part["type"] == "tool_use"
        ]
        return AIMessage(content=text, tool_calls=calls, id=identity)
    if message["role"] == "system":
        return SystemMessage(content=text, id=identity)
    return HumanMessage(content=text, id=identity)
