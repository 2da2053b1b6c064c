"""Text that Markdown takes as text: nothing of a run becomes a tag, a link, a heading or a column."""

from __future__ import annotations

import re

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~#$])")
_LEADING = re.compile(r"^(\s*)([-+=]|\d+[.)](?=\s|$)|:)", re.MULTILINE)
_BARE = re.compile(r"\b(https?|ftp)(:)(?=//)|\b(www)(\.)|(?<=\w)(@)(?=\w)")
_OF_TAGS = re.compile(r"[&<>|\\`*_\[\]~#$]")
_BACKTICKS = re.compile(r"`+")


def escaped(text: str) -> str:
    """As it is read, on whatever line it stands; a newline becomes a break of the line."""
    text = text.replace("\u200b", "").replace("&", "&amp;")
    text = _SPECIAL.sub(r"\\\1", text)
    text = _BARE.sub(_unlinked, text)
    text = _LEADING.sub(_unled, text)
    return "<br>".join(line.strip(" ") for line in text.split("\n"))


def _unlinked(found: re.Match[str]) -> str:
    """An address in a text is no link: GitHub would make one of it. An empty comment keeps its parts asunder."""
    scheme, colon, www, dot, at = found.groups()
    return f"{scheme or www or ''}<!-- -->{colon or dot or at}"


def _unled(found: re.Match[str]) -> str:
    space, mark = found.groups()
    return f"{space}{mark[:-1]}\\{mark[-1]}"


def code(text: str) -> str:
    """Within a line; of a pipe, which ends a cell even in code, its entity in a tag does as well."""
    text = " ".join(text.replace("\u200b", "").split())
    if not text:
        return ""
    if "|" in text or "\\" in text:
        plain = _OF_TAGS.sub(lambda found: f"&#{ord(found[0])};", text)
        return f"<code>{plain}</code>"
    fence = "`" * (max(map(len, _BACKTICKS.findall(text)), default=0) + 1)
    pad = " " if text[0] == "`" or text[-1] == "`" else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def fenced(text: str) -> str:
    """Lines as they are, behind a fence longer than any in them."""
    fence = "`" * max(3, max(map(len, _BACKTICKS.findall(text)), default=0) + 1)
    return f"{fence}text\n{text}\n{fence}"
