"""Drawings in the colours of paper: the page's variables, resolved as its style sheet has them in the light."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape

FONT = "Source Sans Pro"
_ROOT = re.compile(r":root\s*\{([^}]*)\}")
_VARIABLE = re.compile(r"--([\w-]+):\s*(#[0-9a-fA-F]{3,8})\s*[;}]")
_USED = re.compile(r"var\(\s*--([\w-]+)\s*(?:,\s*([^()]*))?\)")
_FAMILY = re.compile(r'font-family="[^"]*"')
_FOR_SCRIPTS = re.compile(r' (?:data-[a-z-]+|tabindex)="[^"]*"')
_LONGEST_LABEL = 1000
_TEXT = re.compile(r"(<t(?:ext|span|itle)\b[^>]*>(?:&\w+;|&#\w+;|[^<&]){300})[^<]+")
"""More than 300 characters; none of them is cut."""
_LABEL = re.compile(r'aria-label="([^"]*)"')
_TAG = re.compile(r"<svg\b[^>]*>")


def palette(style: str) -> dict[str, str]:
    """Name to colour, of the first ``:root`` of a style sheet: that of a light screen."""
    found = _ROOT.search(style)
    return dict(_VARIABLE.findall(found[1])) if found else {}


def resolved(svg: str, colours: Mapping[str, str]) -> str:
    """The drawing without variables, in our font, and able to stand alone in a file."""
    svg = _USED.sub(lambda used: colours.get(used[1]) or used[2] or colours.get("ink", "#000000"), svg)
    svg = svg.replace("currentColor", colours.get("ink", "#000000"))
    svg = _TEXT.sub(r"\1 …", _FOR_SCRIPTS.sub("", svg))
    svg = _FAMILY.sub(f'font-family="{FONT}, Helvetica, Arial, sans-serif"', svg)
    if "xmlns=" not in _TAG.match(svg)[0]:  # type: ignore[index]  # a drawing begins with its tag
        svg = svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return svg


def label_of(svg: str) -> str:
    """What the drawing shows, in the words that a screen reader says."""
    found = _LABEL.search(svg)
    return unescape(found[1])[:_LONGEST_LABEL] if found else ""
