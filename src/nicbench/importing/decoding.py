"""A file's bytes as text: UTF-8 with or without its mark, UTF-16 as testers on Windows write it, or what is named."""

from __future__ import annotations

import codecs
import stat
from pathlib import Path
from typing import Final

from nicbench.errors import UsageError
from nicbench.problems import Position, Problem, WrongFileError

MOST_BYTES: Final = 8 * 2**20
_MARKS: Final = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def read_bytes(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """The content of a regular file of at most so many bytes; UsageError where it is none."""
    try:
        with path.open("rb") as stream:
            if not stat.S_ISREG(path.stat().st_mode):
                raise UsageError("is not a regular file", place=str(path), next_step="name a CSV of results")
            content = stream.read(most_bytes + 1)
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror or error}", place=str(path)) from error
    if len(content) > most_bytes:
        raise UsageError(
            f"is larger than {most_bytes // 2**20} MiB", place=str(path), next_step="import a part of it at a time"
        )
    return content


def decode(content: bytes, path: str, encoding: str | None = None) -> str:
    """The text; WrongFileError with the place of what does not fit the encoding."""
    known = encoding or next((name for mark, name in _MARKS if content.startswith(mark)), None) or _unmarked(content)
    try:
        codec = codecs.lookup(known)
        text = content.decode(codec.name)
    except LookupError as error:
        raise UsageError(f"{known!r} is no encoding", next_step="for example --encoding cp1252") from error
    except UnicodeError as error:
        at = error.start if isinstance(error, UnicodeDecodeError) else 0
        line_start = content.rfind(b"\n", 0, at) + 1
        position = Position(content.count(b"\n", 0, at) + 1, len(content[line_start:at].decode(known, "replace")) + 1)
        hint = "name the file's own encoding, for example --encoding cp1252"
        raise WrongFileError(path, [Problem(position, f"this is not {known} text", hint)]) from error
    text = text.removeprefix("\ufeff")
    if "\x00" in text:
        before = text[: text.index("\x00")]
        position = Position(before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)
        raise WrongFileError(path, [Problem(position, "this is no text: it holds a NUL", "is it a CSV?")])
    return text


def _unmarked(content: bytes) -> str:
    """ASCII in UTF-16 has every other byte zero, also where the mark was left out."""
    first = content[:512]
    if len(first) >= 4 and len(content) % 2 == 0:
        if not any(first[1::2]):
            return "utf-16-le"
        if not any(first[0::2]):
            return "utf-16-be"
    return "utf-8"
