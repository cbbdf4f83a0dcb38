"""JSON of requests and responses."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from json import encoder as _encoder
from math import isfinite
from typing import Any, cast

from .errors import InvalidRequest

_MAX_DEPTH = 100
"""Levels of a value whose fault is searched for. The engine accepts fewer levels."""
_MAX_JSON_DEPTH = 40
"""Levels of a value that :func:`as_json` keeps. The engine accepts 64, with those around the value."""
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _make_write() -> Callable[[object], str]:
    """A function that writes JSON, and raises for a value that is not JSON.

    ``JSONEncoder.encode`` creates its native encoder in every call, which takes longer than to write a
    short request. Here it is created once. A value that contains itself raises ``RecursionError``.
    """
    make: Any = getattr(_encoder, "c_make_encoder", None)
    text: Any = getattr(_encoder, "encode_basestring", None)
    try:
        chunks = make(None, _ENCODER.default, text, None, ":", ",", False, False, False)
        if "".join(chunks({"a": [1, "é"]}, 0)) != '{"a":[1,"é"]}':
            return _ENCODER.encode
    except TypeError:  # another implementation of Python
        return _ENCODER.encode
    return lambda value: "".join(chunks(value, 0))


_write = _make_write()
_DECODER = json.JSONDecoder()


def encode(value: object) -> str:
    """The value as JSON. Raises :class:`InvalidRequest` with the path of a value that is not JSON."""
    try:
        return _write(value)
    except (TypeError, ValueError, RecursionError) as error:
        path, reason = _fault(value, "", set()) or ("", str(error))
    raise InvalidRequest("invalid_json", f"{path or 'the request'} {reason}", path or None)


def plain(value: object) -> Any:
    """The value as it is read from its JSON. Raises :class:`InvalidRequest` if it is not JSON."""
    text = encode(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise not_text(value) from None
    return decode(text)


def as_json(value: object, depth: int = 0) -> Any:
    """The value, with text in the place of what is not JSON: ``[DataFrame]`` for such an object."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, float) and isfinite(value):
        return value
    if isinstance(value, Mapping) and depth < _MAX_JSON_DEPTH:
        items = cast("Mapping[object, object]", value).items()
        return {as_json(str(key)): as_json(item, depth + 1) for key, item in items}
    if isinstance(value, (list, tuple)) and depth < _MAX_JSON_DEPTH:
        return [as_json(item, depth + 1) for item in cast("list[object]", value)]
    return f"[{type(cast('object', value)).__name__}]"


def not_text(value: object) -> InvalidRequest:
    """The error for a string with a lone surrogate, which UTF-8 cannot represent."""
    path, reason = _fault(value, "", set()) or ("", "has a character that UTF-8 cannot represent")
    return InvalidRequest("invalid_json", f"{path or 'the request'} {reason}", path or None)


def decode(text: str) -> Any:
    """The value of JSON text. An integer with more digits than Python converts becomes a ``Decimal``."""
    try:
        return _DECODER.raw_decode(text)[0]  # the native module writes no spaces
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
    if len(above) >= _MAX_DEPTH:
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
