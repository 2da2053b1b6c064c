"""The password in what a management controller answers: a controller that sends it back gets it into no file of ours.

Every request bears it, so whoever speaks as the controller knows it. What is recognised: the password, and it or
``user:password`` in base64 (RFC 4648, wherever it begins in what was encoded), in hexadecimal, and percent-encoded.
"""

from __future__ import annotations

import base64
import json
from typing import Any, Final
from urllib.parse import quote

REDACTED: Final = "(redacted)"
_SHORTEST = 4
"""Shorter ones are found as whole values alone: anywhere else they would be parts of ordinary words."""


def forms_of(user: str, password: str) -> tuple[str, ...]:
    """How the password may be written, the longest first."""
    found = {password, quote(password, safe="")}
    for secret in (password.encode(), f"{user}:{password}".encode()):
        found |= {secret.hex(), secret.hex().upper()}
        for offset in range(3):
            found |= {_encode(secret, offset), _encode(secret, offset).translate(_URL_SAFE)}
    return tuple(sorted((form for form in found if form), key=len, reverse=True))


_URL_SAFE: Final = str.maketrans("+/", "-_")


def _encode(secret: bytes, offset: int) -> str:
    """What base64 makes of it behind ``offset`` other bytes: only the letters that depend on the secret alone."""
    text = base64.b64encode(bytes(offset) + secret).decode()
    whole = text.rstrip("=")
    return whole[(0, 2, 3)[offset] : len(whole) - (whole != text)]


def without(text: str, forms: tuple[str, ...]) -> str:
    """The same document without any of them, in names too. What is no JSON is given back as text without them."""
    try:
        return json.dumps(_without(json.loads(text), forms))
    except (ValueError, RecursionError):
        return _replace(text, forms)


def _without(content: Any, forms: tuple[str, ...]) -> Any:
    if isinstance(content, dict):
        return {_replace(name, forms): _without(value, forms) for name, value in content.items()}
    if isinstance(content, list):
        return [_without(value, forms) for value in content]
    if isinstance(content, str):
        return _replace(content, forms)
    is_number = isinstance(content, int | float) and not isinstance(content, bool)
    return REDACTED if is_number and str(content) in forms else content


def _replace(text: str, forms: tuple[str, ...]) -> str:
    # Letters that cannot be seen are dropped later: they must not hide it until then.
    seen = "".join(letter for letter in text if letter.isprintable())
    if not any(form in seen for form in forms):
        return text
    if seen in forms:
        return REDACTED
    for form in forms:
        if len(form) >= _SHORTEST:
            seen = seen.replace(form, REDACTED)
    return seen
