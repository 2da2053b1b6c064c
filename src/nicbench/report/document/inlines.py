"""Makes runs of text: steering characters in foreign text are made visible, white space is collapsed, and only our own
line breaks remain.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, TypeAlias
from urllib.parse import quote

from nicbench.core.redaction import make_visible
from nicbench.core.result import Result
from nicbench.report.document.blocks import Drawing, Inline, Inlines, Text, Tone

Part: TypeAlias = str | Inline | Inlines | None
"""A part of a line; a string is plain text."""
BREAK: Final = Text("\n")
PLACE_TO_BREAK: Final = "\u200b"
_SPACE = re.compile(r"[ \t\n\r\f]+")
_UNTIDY = re.compile(r"[\t\n\r\f]|  |^ | $")
_AFTER = re.compile(r"(?<=[/._])(?=\w)")
_SEVERAL_RUNS = re.compile(r"(?P<median>.*\S) \((?P<runs>[^()]* to [^()]*|\d+ of \d+ runs)\)")
_TONES: Final[dict[str, Tone]] = {
    "valid": "good",
    "adjusted": "good",
    "disturbed": "warn",
    "incomplete": "bad",
    "imported": "quiet",
}


def inlines(*parts: Part) -> Inlines:
    """Returns the parts one after another, with white space as on a page: one space between words, none at the ends."""
    if len(parts) == 1 and isinstance(only := parts[0], str):
        text = make_visible(only)
        if not _UNTIDY.search(text):
            return (Text(text),) if text else ()
    return _tidy(_runs(parts))


def join_inlines(separator: str, items: Iterable[Part]) -> Inlines:
    """Returns the items with the separator between them."""
    parts: list[Part] = []
    for item in items:
        parts += [separator, item] if parts else [item]
    return inlines(*parts)


def lines(items: Iterable[Part]) -> Inlines:
    """Returns the items, each on a line of its own."""
    parts: list[Part] = []
    for item in items:
        parts += [BREAK, item] if parts else [item]
    return inlines(*parts)


def strong(text: str, tone: Tone = "") -> Text:
    """Returns bold text."""
    return Text(_collapse(text), strong=True, tone=tone)


def set_tone(text: str, tone: Tone, title: str = "") -> Text:
    """Returns text with the emphasis of a tone."""
    return Text(_collapse(text), tone=tone, title=make_visible(title))


def small(text: str) -> Text:
    """Returns small text, which stands beneath a number or beside a name."""
    return Text(_collapse(text), small=True, tone="quiet")


def badge(text: str, tone: Tone = "quiet") -> Text:
    """Returns a word in a frame."""
    return Text(_collapse(text), badge=True, tone=tone)


def code(text: str) -> Text:
    """Returns a command line or a name as it is typed."""
    return Text(_collapse(text), code=True)


def superscript(text: str) -> Text:
    """Returns a superscript, such as an exponent."""
    return Text(text, raised=True)


def link(text: str, target: str, title: str = "") -> Text:
    """Returns a link; ``target`` is ``#`` and the id of a heading, or an address."""
    return Text(_collapse(text), link=target, title=title)


def file_link(name: str) -> Text:
    """Returns the name of a file of the run folder as a link to it; a name that leads out of the folder is no link."""
    parts = name.split("/")
    leads_there = all(parts) and ".." not in parts and "\\" not in name
    return Text(_collapse(name), link=f"./{quote(name)}" if leads_there else None)


def breakable(text: str) -> Text:
    """Returns a long name that may be broken after its slashes, dots and underscores."""
    return Text(_AFTER.sub(PLACE_TO_BREAK, _collapse(text)))


def breakable_code(text: str) -> Text:
    """Returns a long name as code, which may be broken after its slashes, dots and underscores."""
    return replace(breakable(text), code=True)


def capitalise(text: str) -> str:
    """Returns the text with its first letter in upper case and the others unchanged."""
    return f"{text[:1].upper()}{text[1:]}"


def median_and_runs(text: str, *, is_main: bool = False) -> Inlines:
    """Returns the value of several runs as the median with the range of the runs beneath it; any other
    text unchanged.
    """
    found = _SEVERAL_RUNS.fullmatch(text)
    if found is None:
        return inlines(strong(text) if is_main else text)
    median = found["median"]
    return inlines(strong(median) if is_main else median, BREAK, small(found["runs"]))


def mark(result: Result) -> Inlines:
    """Returns what follows a value that is not simply valid: an asterisk, or a dagger for an erratum of its source."""
    if result.imported:
        return (link("†", "#errata", "erratum of the source"),) if result.imported.errata else ()
    verdict = result.verdict.value
    return () if verdict == "valid" else (set_tone("*", tone_of(verdict), verdict),)


def tone_of(verdict: str) -> Tone:
    """Returns the emphasis of a verdict."""
    return _TONES.get(verdict, "")


def _collapse(text: str) -> str:
    return _SPACE.sub(" ", make_visible(text))


def _runs(parts: Iterable[Part]) -> Iterable[Inline]:
    for part in parts:
        if isinstance(part, str):
            yield Text(_collapse(part))
        elif isinstance(part, Text | Drawing):
            yield part
        elif part is not None:
            yield from part


def _tidy(runs: Iterable[Inline]) -> Inlines:
    """Joins runs of equal style, collapses spaces across runs, and removes spaces and empty lines at the ends."""
    tidy: list[Inline] = []
    for run in runs:
        last = tidy[-1] if tidy else None
        if isinstance(run, Drawing):
            tidy.append(run)
            continue
        text = run.text
        ends = last.text[-1:] if isinstance(last, Text) else ("" if last else "\n")
        if ends in (" ", "\n"):
            text = text.lstrip(" ")
        if not text or (text == "\n" and ends == "\n"):
            continue
        if text[0] == "\n" and isinstance(last, Text):
            tidy[-1] = last = replace(last, text=last.text.rstrip(" "))
        if isinstance(last, Text) and _look(last) == _look(run):
            tidy[-1] = replace(last, text=last.text + text)
        else:
            tidy.append(run if text == run.text else replace(run, text=text))
    while tidy and isinstance(last := tidy[-1], Text):
        text = last.text.rstrip(" \n")
        if text:
            tidy[-1] = last if text == last.text else replace(last, text=text)
            break
        tidy.pop()
    return tuple(run for run in tidy if not isinstance(run, Text) or run.text)


def _look(run: Text) -> tuple[object, ...]:
    return run.strong, run.code, run.raised, run.small, run.badge, run.tone, run.link, run.title


def command(line: str) -> Text:
    """Returns a command line, which a page breaks only between its arguments."""
    return code(line)


def commands(texts: Sequence[str]) -> Inlines:
    """Returns several commands, each on a line of its own."""
    return lines(map(code, texts))
