"""Names of conversations that are made of the ids of an application."""

from __future__ import annotations

import hashlib
import re

from .errors import InvalidRequest

_MAX_BYTES = 120
"""The largest size of an escaped id. A name has at most 512 bytes."""
_MAX_PREFIX_BYTES = 250
_ESCAPED = re.compile(r"[\x00-\x1f\x7f-\x9f%/]")
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
"""The form of the ids of conversations. No conversation has such a name."""


def checked_prefix(prefix: object) -> str:
    """The prefix of names that an adapter was given."""
    if not isinstance(prefix, str):
        reason = f"must be a text, not {type(prefix).__name__}"
    elif len(prefix.encode("utf-8", "surrogatepass")) > _MAX_PREFIX_BYTES:
        reason = f"has more than {_MAX_PREFIX_BYTES} bytes"
    elif not prefix.isprintable():
        reason = "has a control character"
    else:
        return prefix
    raise InvalidRequest("invalid_operation", f"prefix {reason}", "prefix")


def conversation_name(prefix: str, identity: str) -> str:
    """The name of the conversation with an id. Different ids have different names."""
    name = prefix + name_part(identity)
    # These names have another meaning, and are refused.
    return prefix + _hash(identity) if name in ("", "@") or _ID.fullmatch(name) else name


def name_part(text: str) -> str:
    """A text as a part of a name: without ``/`` and control characters, and not too long.

    Any text is valid. Different texts have different parts: an escaped text has no ``%%``. The part of a
    text that is long or has half of a surrogate pair is a hash. The Node package makes the same names.
    """
    escaped = _ESCAPED.sub(_percent, text)
    try:
        return escaped if len(escaped.encode()) <= _MAX_BYTES else _hash(text)
    except UnicodeEncodeError:
        return _hash(text)


def _percent(char: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in char[0].encode())


def _hash(text: str) -> str:
    return f"%%{hashlib.sha256(text.encode('utf-16-le', 'surrogatepass')).hexdigest()}"
