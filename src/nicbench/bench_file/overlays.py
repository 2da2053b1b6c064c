"""Configurations: each is an overlay over the rest of the bench file, and gives a tree as if it had been written so.

As in RFC 7396, keys are merged, null takes a key away, and any other value replaces what it lies on; only a section of
another ``kind`` replaces the whole section, for the options of one kind mean nothing to another. Every node keeps its
place in the file, so that what is wrong with a merged tree is told where it was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from pydantic import Field

from nicbench.bench_file.nodes import Node
from nicbench.bench_file.problems import Problem, quote, suggest
from nicbench.bench_file.sections import Reading
from nicbench.model.base import Frozen
from nicbench.model.traffic import Name
from nicbench.model.turn import DEFAULT

KEY: Final = "configurations"
_KIND: Final = "kind"
_TUNING: Final = "tuning"


class Overlay(Frozen):
    """What may differ from one configuration to another; ``tests`` has their options by the test's name."""

    lab: Any = None
    hosts: Any = None
    ports: Any = None
    links: Any = None
    dut: Any = None
    tester: Any = None
    traffic: Any = None
    tuning: Any = None
    declared: Any = None
    redfish: Any = None
    tests: dict[Name, dict[str, Any]] | None = None


class _Configurations(Frozen):
    configurations: dict[Name, Overlay | None] = Field(min_length=1, max_length=64)


_THE_SAME: Final[Mapping[str, str]] = MappingProxyType(
    {
        "nicbench": "a file has one format",
        "title": "they share one report",
        "description": "they share one report",
        "seed": "the same seed gives all of them the same draws",
        "runs": "each configuration has as many runs as the others",
        "redact": "they share one run folder",
        "report": "they share one report",
        "thresholds": "all are judged by the same limits",
        KEY: "one cannot lie on another",
    }
)
_THE_SAME_IN_TESTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "name": "results are laid side by side by the test's name",
        "method": "only what was measured in one way can be compared",
    }
)


def merged_trees(root: Node, reading: Reading) -> dict[str, Node]:
    """The whole tree of each configuration, by name; of a file without any, itself. Problems go to ``reading``."""
    if root.entries is None or KEY not in root.entries:
        return {DEFAULT: root}
    reading.problems += _problems(root)
    if reading.problems or reading.validate(_Configurations, {KEY: root.entries[KEY].plain()}, ()) is None:
        return {}
    base = _without(root, KEY)
    return {name: _laid_over(base, overlay) for name, overlay in (root.entries[KEY].entries or {}).items()}


def _problems(root: Node) -> Iterator[Problem]:
    """What pydantic cannot tell so well."""
    section = root.find((KEY,))
    overlays = section.entries or {}
    if section.entries is not None and len(overlays) < 2:
        step = "add another, or write its settings into the file itself"
        yield Problem(root.position_of_key((KEY,)), "configurations are compared: two or more are needed", step)
    tests = root.child("tests")
    known = [str(of_test.value) for test in (tests.items if tests else None) or [] if (of_test := test.child("name"))]
    for name, overlay in overlays.items():
        if name == DEFAULT:
            message = f"{quote(DEFAULT)} is what the configuration of a file that compares none is called"
            yield Problem(section.key_positions[name], message, "give it another name")
        for key in overlay.entries or {}:
            if key in _THE_SAME:
                yield _cannot_differ(overlay, key, _THE_SAME[key])
        of_tests = overlay.child("tests")
        if of_tests is None or _is_null(of_tests):
            continue
        if of_tests.entries is None:
            step = "write `tests: {NAME: {...}}`, with the options that differ"
            yield Problem(of_tests.position, "the tests of a configuration are given by their names", step)
        for test, options in (of_tests.entries or {}).items():
            if test not in known:
                message = f"there is no test {quote(test)} whose options could differ"
                yield Problem(of_tests.key_positions[test], message, suggest(test, known, "test"))
            for key in options.entries or {}:
                if key in _THE_SAME_IN_TESTS:
                    yield _cannot_differ(options, key, _THE_SAME_IN_TESTS[key])


def _cannot_differ(node: Node, key: str, reason: str) -> Problem:
    message = f"{quote(key)} cannot differ between configurations: {reason}"
    return Problem(node.key_positions[key], message, f"write it once, outside of `{KEY}`")


def _laid_over(base: Node, overlay: Node) -> Node:
    """The file with one overlay; its tests by their names, which keep their order."""
    given = overlay.child("tests")
    tests = base.child("tests")
    merged = _merged(base, _without(overlay, "tests")) if overlay.entries else base
    if given is None or given.entries is None or tests is None or tests.items is None:
        return replace(merged, position=base.position)
    items = [
        _merged(test, given.entries[name]) if (name := _name(test)) in given.entries else test for test in tests.items
    ]
    entries = {**(merged.entries or {}), "tests": Node(tests.position, items=items)}
    return replace(merged, position=base.position, entries=entries)


def _merged(base: Node | None, over: Node, *, with_kinds: bool = True) -> Node:
    """``over`` laid on ``base``; a kind that stands alone (``dut: policer``) is a section without options.

    In `tuning` nothing has a kind: a value alone is an option there.
    """
    if (
        with_kinds
        and base is not None
        and base.entries is None
        and isinstance(base.value, str)
        and over.entries is not None
    ):
        base = Node(base.position, entries={_KIND: base}, key_positions={_KIND: base.position})
    if over.entries is None or base is None or base.entries is None or (with_kinds and _is_of_another_kind(base, over)):
        return _pruned(over)
    entries, positions = dict(base.entries), dict(base.key_positions)
    for key, child in over.entries.items():
        if _is_null(child):
            entries.pop(key, None)
        else:
            inner_kinds = with_kinds and key != _TUNING
            entries[key] = _merged(base.entries.get(key), child, with_kinds=inner_kinds)
            positions[key] = over.key_positions[key]
    return Node(over.position, entries=entries, key_positions=positions)


def _is_of_another_kind(base: Node, over: Node) -> bool:
    here, there = base.child(_KIND), over.child(_KIND)
    return there is not None and (here is None or here.value != there.value)


def _pruned(node: Node) -> Node:
    """Without what null takes away where nothing lies below."""
    if node.entries is None:
        return node
    kept = {key: _pruned(child) for key, child in node.entries.items() if not _is_null(child)}
    return replace(node, entries=kept)


def _is_null(node: Node) -> bool:
    return node.entries is None and node.items is None and node.value is None


def _without(node: Node, key: str) -> Node:
    return replace(node, entries={name: child for name, child in (node.entries or {}).items() if name != key})


def _name(test: Node) -> str:
    name = test.child("name")
    return "" if name is None else str(name.value)
