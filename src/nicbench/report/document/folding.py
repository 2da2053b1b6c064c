"""Folds the sections of a page at their headings, so that a reader sees what there is and opens what he wants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from nicbench.report.document.blocks import Block, FoldedBlocks, Group, Heading


def fold(blocks: Iterable[Block], level: int = 2) -> Iterator[Block]:
    """Yields the blocks with each heading of ``level`` and all that follows it as one folded group.

    What stands before the first heading stays as it is, and so does what is folded by itself and holds such headings.
    """
    part: list[Block] = []
    for block in blocks:
        begins = _is_heading(block, level)
        apart = not begins and _holds_sections(block, level)
        if (begins or apart) and part:
            yield Group(tuple(part), "folded")
            part = []
        if apart:
            is_plain = isinstance(block, Group) and block.look == "" and _is_heading(block.blocks[0], level)
            yield replace(block, look="folded") if isinstance(block, Group) and is_plain else block
        elif begins or part:
            part.append(block)
        else:
            yield block
    if part:
        yield Group(tuple(part), "folded")


def _is_heading(block: Block, level: int) -> bool:
    return isinstance(block, Heading) and block.level == level


def _holds_sections(block: Block, level: int) -> bool:
    return isinstance(block, Group | FoldedBlocks) and any(_is_heading(each, level) for each in block.blocks)
