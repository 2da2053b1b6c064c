"""``optimise``: settings whose best combination is searched for, as overlays by setting and value, and the goal.

Every trial of the search is a run of an ordinary bench file, made here from the tree of the whole: without `optimise`,
with the overlays of the chosen values merged in. So is the run that confirms the best combination, which compares two
configurations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from io import StringIO
from typing import Any, Final

from pydantic import Field
from ruamel.yaml import YAML

from nicbench.bench_file.overlays import AXES, KEY, AxisValue, Overlay, apply_overlay, check_overlays, remove_key
from nicbench.bench_file.reader import Node
from nicbench.bench_file.sections import Reading
from nicbench.core.base import Frozen
from nicbench.core.errors import Problem, quote
from nicbench.core.traffic import Name

OPTIMISE: Final = "optimise"
WRITTEN: Final = "as-written"
BEST: Final = "best"
"""The configurations of the run that confirms."""
_MOST_COMBINATIONS: Final = 1_000_000

Choice = dict[str, str]
"""The value of each setting by name."""


class Goal(Frozen):
    """What is to become as good as it can: one main value of a test at one point."""

    test: Name | None = None
    """The test; by default the first."""
    value: str | None = None
    """The value, such as `latency_p99_9_ns`; by default the first main value."""
    at: dict[str, Any] = Field(default_factory=dict)
    """Parameters of the point where the test has several: `{frame_bytes: 64, load_percent: 50}`."""


class Optimise(Frozen):
    """The section ``optimise``."""

    goal: Goal = Goal()
    """What is to become as good as it can."""
    over: dict[AxisValue, dict[AxisValue, Overlay | None]] = Field(min_length=1, max_length=12)
    """Settings, each with two or more values, which are overlays. The best combination is compared with that of the
    first values. Write values that are alike next to each other.
    """
    trials: int = Field(default=30, ge=4, le=1000)
    """How many runs the search makes."""
    runs: int = Field(default=6, ge=6, le=100)
    """How many further runs of both the best combination and the first values are compared."""

    @property
    def space(self) -> dict[str, tuple[str, ...]]:
        """The values of each setting by name."""
        return {name: tuple(values) for name, values in self.over.items()}

    @property
    def first(self) -> Choice:
        """The combination of the first values."""
        return {name: next(iter(values)) for name, values in self.over.items()}


def read_optimise(root: Node, reading: Reading) -> tuple[Optimise | None, dict[str, Node]]:
    """Returns the section, and the tree of the first values; then one for each other value, to be checked as well.

    Without the section the trees are empty. Problems go to ``reading``.
    """
    section = root.child(OPTIMISE)
    if section is None:
        return None, {}
    reading.problems += _check(root, section)
    wishes = None if reading.problems else reading.validate(Optimise, section.plain(), (OPTIMISE,))
    if wishes is None:
        return None, {}
    choices = {WRITTEN: wishes.first} | {
        f"{name}-{value}": {**wishes.first, name: value}
        for name, values in wishes.space.items()
        for value in values[1:]
    }
    return wishes, {name: tree_of(root, choice) for name, choice in choices.items()}


def _check(root: Node, section: Node) -> Iterator[Problem]:
    for other in (KEY, AXES, "runs"):
        if root.child(other) is not None:
            message = f"a file has either `{OPTIMISE}` or {quote(other)}"
            yield Problem(root.position_of_key((other,)), message, f"remove {quote(other)}: the search makes them")
    combinations = 1
    for name, values in (section.find(("over",)).entries or {}).items():
        yield from check_overlays(root, values, (OPTIMISE, "over", name))
        combinations *= max(1, len(values.entries or {}))
    if combinations > _MOST_COMBINATIONS:
        message = f"{combinations:,} combinations are more than a search can look at"
        yield Problem(root.position_of_key((OPTIMISE,)), message, f"take values away, to {_MOST_COMBINATIONS:,}")


def tree_of(root: Node, choice: Mapping[str, str]) -> Node:
    """Returns the tree of one combination: the overlays of its values one after another."""
    over = root.find((OPTIMISE, "over"))
    tree = remove_key(root, OPTIMISE)
    for name, value in choice.items():
        tree = apply_overlay(tree, over.find((name, value)))
    return tree


def write_trial(root: Node, choice: Mapping[str, str]) -> str:
    """Writes the bench file of one combination."""
    return _to_yaml(tree_of(root, choice).plain())


def write_confirmation(root: Node, wishes: Optimise, best: Mapping[str, str]) -> str:
    """Writes the bench file that compares the best combination with the first values, in turns."""
    over = root.find((OPTIMISE, "over"))
    overlay: dict[str, Any] = {}
    for name, value in best.items():
        if value != wishes.first[name]:
            overlay = _join(overlay, over.find((name, value)).plain() or {})
    tree = tree_of(root, {name: value for name, value in wishes.first.items() if value == best[name]})
    first: dict[str, Any] = {}
    for name, value in wishes.first.items():
        if value != best[name]:
            first = _join(first, over.find((name, value)).plain() or {})
    return _to_yaml({**tree.plain(), "runs": wishes.runs, KEY: {WRITTEN: first or None, BEST: overlay or None}})


def _join(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an overlay that does what two do one after the other; its nulls still remove keys."""
    joined = dict(one)
    for key, value in other.items():
        known = joined.get(key)
        joined[key] = _join(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return joined


def _to_yaml(content: Mapping[str, Any]) -> str:
    writer, text = YAML(typ="safe"), StringIO()
    writer.default_flow_style = False
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]  # keys keep the order of the file
    writer.dump(content, text)
    return text.getvalue()
