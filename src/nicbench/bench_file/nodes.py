"""The tree a bench file is read into: plain values that remember where they stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from nicbench.bench_file.problems import Position


@dataclass(slots=True)
class Node:
    """A scalar, a list or a mapping. ``expanded`` counts the nodes it stands for once its aliases are followed."""

    position: Position
    value: Any = None
    items: list[Node] | None = None
    entries: dict[str, Node] | None = None
    key_positions: dict[str, Position] = field(default_factory=dict)
    expanded: int = 1

    def plain(self) -> Any:
        """Dicts, lists and scalars, as pydantic wants them."""
        if self.entries is not None:
            return {key: node.plain() for key, node in self.entries.items()}
        if self.items is not None:
            return [node.plain() for node in self.items]
        return self.value

    def child(self, step: str | int) -> Node | None:
        """The node one step below, None where there is no such step."""
        if self.entries is not None and isinstance(step, str):
            return self.entries.get(step)
        if self.items is not None and isinstance(step, int) and 0 <= step < len(self.items):
            return self.items[step]
        return None

    def find(self, path: Sequence[str | int]) -> Node:
        """The deepest node on ``path``; steps that are not in the file (a union's tag) are passed over."""
        node = self
        for step in path:
            node = node.child(step) or node
        return node

    def position_of(self, path: Sequence[str | int]) -> Position:
        """Where the value at ``path`` stands."""
        return self.find(path).position

    def position_of_key(self, path: Sequence[str | int]) -> Position:
        """Where the last key of ``path`` stands; its value's position where it is not a key."""
        parent = self.find(path[:-1])
        return parent.key_positions.get(str(path[-1]), self.find(path).position)
