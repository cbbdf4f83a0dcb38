"""JSON of requests and responses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, cast

from .errors import InvalidRequest

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def encode(value: object) -> str:
    """The value as JSON. Raises :class:`InvalidRequest` with the path of a value that is not JSON."""
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        path, reason = _fault(value, "", set()) or ("", str(error))
    raise InvalidRequest("invalid_json", f"{path or 'the request'} {reason}", path or None)


def not_text(value: object) -> InvalidRequest:
    """The error for a string with a lone surrogate, which UTF-8 cannot represent."""
    path, reason = _fault(value, "", set()) or ("", "has a character that UTF-8 cannot represent")
    return InvalidRequest("invalid_json", f"{path or 'the request'} {reason}", path or None)


def decode(text: str) -> Any:
    """The value of JSON text. An integer with more digits than Python converts becomes a ``Decimal``."""
    try:
        return json.loads(text)
    except ValueError:
        return json.loads(text, parse_int=_integer)


def _integer(digits: str) -> int | Decimal:
    try:
        return int(digits)
    except ValueError:
        return Decimal(digits)


def _fault(value: object, path: str, above: set[int]) -> tuple[str, str] | None:
    """The path of the first value that is not JSON, and the reason."""
    if value is None or isinstance(value, (bool, int)):
        return None
    if isinstance(value, str):
        return None if _is_text(value) else (path, "has a character that UTF-8 cannot represent")
    if isinstance(value, float):
        is_finite = value == value and value not in (float("inf"), float("-inf"))
        return None if is_finite else (path, f"is {value}, which is not JSON")
    if not isinstance(value, (dict, list, tuple)):
        return path, f"is a {type(value).__name__}, which is not JSON"
    if id(cast("object", value)) in above:
        return path, "contains itself"
    if len(above) > 500:
        return path, "is nested too deeply"
    above = above | {id(cast("object", value))}
    if isinstance(value, dict):
        return _fault_in_object(cast("Mapping[object, object]", value), path, above)
    for number, item in enumerate(cast("list[object]", value)):
        if fault := _fault(item, f"{path}[{number}]", above):
            return fault
    return None


def _fault_in_object(
    value: Mapping[object, object], path: str, above: set[int]
) -> tuple[str, str] | None:
    for key, item in value.items():
        if not isinstance(key, (str, int, float, bool)) and key is not None:
            return path, f"has a key of type {type(key).__name__}; keys are strings"
        if isinstance(key, str) and not _is_text(key):
            return path, "has a key with a character that UTF-8 cannot represent"
        if fault := _fault(item, f"{path}.{key}" if path else str(key), above):
            return fault
    return None


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
