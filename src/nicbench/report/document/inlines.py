"""From what stands in a paragraph or a cell to runs of text of one look."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from nicbench.report.document.blocks import Drawing, Inline, Inlines, Text, Tone
from nicbench.report.document.palette import label_of, resolved
from nicbench.report.document.tree import SKIPPED, Element, Node

_SPACE = re.compile(r"[ \t\n\r\f]+")
_TONES: Mapping[str, Tone] = {
    "quiet": "quiet",
    "label": "quiet",
    "branch": "quiet",
    "caption": "quiet",
    "valid": "good",
    "disturbed": "warn",
    "imported": "warn",
    "incomplete": "bad",
    "missed": "missed",
}
_OF_LINES = frozenset(str.split("p div li ul ol tr table dl dt dd h1 h2 h3 h4 h5 h6 details summary"))
"""Blocks: where one stands among text, it has a line of its own."""


@dataclass(frozen=True, slots=True)
class Inliner:
    """Reads text in the colours of one page."""

    colours: Mapping[str, str]

    def inlines(self, nodes: Iterable[Node]) -> Inlines:
        """Runs with the white space of HTML collapsed, none at the ends."""
        return _tidy(self._runs(nodes, Text("")))

    def _runs(self, nodes: Iterable[Node], look: Text) -> Iterator[Inline]:
        for node in nodes:
            if isinstance(node, str):
                yield replace(look, text=_SPACE.sub(" ", node))
            elif node.tag == "br":
                yield replace(look, text="\n")
            elif node.tag == "wbr":
                yield replace(look, text="\u200b")
            elif node.tag == "svg":
                yield self.drawing(node)
            elif node.tag not in SKIPPED and not node.classes & LEFT_OUT:
                yield from self._element(node, look)

    def _element(self, node: Element, look: Text) -> Iterator[Inline]:
        inner = self._runs(node.children, _looked(node, look))
        if node.tag in _OF_LINES or (node.tag == "code" and "block" in node.classes):
            yield replace(look, text="\n")
            yield from inner
            yield replace(look, text="\n")
        else:
            yield from inner

    def drawing(self, node: Element) -> Drawing:
        """A drawing in the colours of paper."""
        svg = str(node.children[0])
        return Drawing(resolved(svg, self.colours), label_of(svg))


LEFT_OUT = frozenset({"narrow", "screen", "numbers"})
"""Classes of what stays on the screen."""


def tone_of(classes: frozenset[str]) -> Tone:
    """The loudest of an element's classes."""
    tones = {_TONES[name] for name in classes if name in _TONES}
    order: tuple[Tone, ...] = ("bad", "warn", "missed", "good", "quiet")
    return next((tone for tone in order if tone in tones), "")


def _looked(node: Element, look: Text) -> Text:
    classes = node.classes
    tone = tone_of(classes) or look.tone
    return replace(
        look,
        strong=look.strong or node.tag in ("b", "strong"),
        code=look.code or node.tag in ("code", "pre"),
        raised=look.raised or node.tag == "sup",
        small=look.small or node.tag == "small" or "caption" in classes,
        badge=look.badge or "badge" in classes,
        tone=tone,
        link=node.attributes.get("href") or look.link if node.tag == "a" else look.link,
    )


def _tidy(runs: Iterable[Inline]) -> Inlines:
    """Equal looks joined; one space between words over the runs' borders; no space or empty line at the ends."""
    joined: list[Inline] = []
    for run in runs:
        last = joined[-1] if joined else None
        if isinstance(run, Drawing):
            joined.append(run)
            continue
        text = run.text
        ends = last.text[-1:] if isinstance(last, Text) else ("" if last else "\n")
        if ends in (" ", "\n"):
            text = text.lstrip(" ")
        if text == "\n" and ends == "\n":
            continue  # a block after a block begins one line, not two
        if not text:
            continue
        if text[0] == "\n" and isinstance(last, Text):
            joined[-1] = last = replace(last, text=last.text.rstrip(" "))
        if isinstance(last, Text) and replace(last, text="") == replace(run, text=""):
            joined[-1] = replace(last, text=last.text + text)
        else:
            joined.append(replace(run, text=text))
    while joined and isinstance(last := joined[-1], Text):
        text = last.text.rstrip(" \n")
        if text:
            joined[-1] = replace(last, text=text)
            break
        joined.pop()
    return tuple(run for run in joined if not isinstance(run, Text) or run.text)
