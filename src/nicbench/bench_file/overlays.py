"""Configurations: overlays over the rest of a bench file, each giving a tree as if written out, and their differences.

As in RFC 7396, keys are merged, null removes a key, and any other value replaces the old one. Unlike there, a section
of another ``kind`` replaces the whole section, because the options of one kind mean nothing to another. Every node
keeps its position in the file, so that a problem of a merged tree is reported where it was written.

``bench_file/overlays.py`` merges each overlay into the tree of the whole file before anything is validated, so a
``BenchFile`` is one configuration, written out, and ``bench.configurations`` has all. ``axes`` are overlays too, of
which every combination is one; ``report/comparison.py`` lays their results out. A ``Turn`` (``core/turn.py``) is one
run of one configuration. It is part of the keys of trials and the ids of results, and ``stages/turns.py`` undoes what
a turn changed before the next begins. Where the number of runs grows until a mean is known, it asks ``stats/runs.py``
after each round; ``Method.main_values`` says for which values.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Any, Final

from pydantic import Field

from nicbench.bench_file.models import BenchFile
from nicbench.bench_file.reader import Node
from nicbench.bench_file.sections import Reading
from nicbench.core.base import Frozen
from nicbench.core.errors import Problem, quote, suggest
from nicbench.core.plan import Difference
from nicbench.core.traffic import Name
from nicbench.core.turn import DEFAULT, combination_name, combinations

KEY: Final = "configurations"
AXES: Final = "axes"
_MOST: Final = 64
_LONGEST_NAME: Final = 64
_KIND: Final = "kind"
_TUNING: Final = "tuning"


class Overlay(Frozen):
    """The keys that may differ between configurations; ``tests`` holds options by the test's name."""

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
    configurations: dict[Name, Overlay | None] = Field(min_length=1, max_length=_MOST)


AxisValue = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 .,/+()%-]{0,31}$")]
"""The name of an axis or a value as people write it: "2 ports", "100 Mb/s, full duplex"."""


class _Axes(Frozen):
    axes: dict[AxisValue, dict[AxisValue, Overlay | None]] = Field(min_length=1, max_length=3)


_WHY_SAME: Final = MappingProxyType(
    {
        "nicbench": "a file has one format",
        "title": "they share one report",
        "description": "they share one report",
        "seed": "the same seed gives all of them the same draws",
        "runs": "each configuration has as many runs as the others",
        "redact": "all share one run folder",
        "report": "they share one report",
        "hypervisor": "its files are read once; name each guest there",
        "thresholds": "all are judged by the same limits",
        "optimise": "a search makes its configurations itself",
        KEY: "configurations cannot be nested",
        AXES: "every combination is a configuration already",
    }
)
_WHY_SAME_IN_TESTS: Final = MappingProxyType(
    {
        "name": "results are laid side by side by the test's name",
        "method": "only what was measured in one way can be compared",
    }
)


def merge_configurations(root: Node, reading: Reading) -> dict[str, Node]:
    """The merged tree of each configuration by name; of a file without any, the file. Problems go to ``reading``."""
    if root.entries is not None and AXES in root.entries:
        return _combine_axes(root, reading)
    if root.entries is None or KEY not in root.entries:
        return {DEFAULT: root}
    reading.problems += check_overlays(root, root.find((KEY,)), (KEY,))
    if reading.problems or reading.validate(_Configurations, {KEY: root.entries[KEY].plain()}, ()) is None:
        return {}
    base = remove_key(root, KEY)
    return {name: apply_overlay(base, overlay) for name, overlay in (root.entries[KEY].entries or {}).items()}


def axes_of(root: Node) -> dict[str, tuple[str, ...]]:
    """The values of each axis by name; empty without axes."""
    axes = root.child(AXES)
    entries = axes.entries if axes is not None else None
    return {name: tuple(values.entries or ()) for name, values in (entries or {}).items()}


def _combine_axes(root: Node, reading: Reading) -> dict[str, Node]:
    """The merged tree of every combination: the overlays of its values one after another, in the order of the axes."""
    section, place = root.find((AXES,)), root.position_of_key((AXES,))
    if root.entries is not None and KEY in root.entries:
        message = f"a file has either `{AXES}` or `{KEY}`"
        reading.problems.append(Problem(place, message, f"write `{KEY}` as values of one more axis"))
    for axis, values in (section.entries or {}).items():
        reading.problems += check_overlays(root, values, (AXES, axis))
    if reading.problems or reading.validate(_Axes, {AXES: section.plain()}, ()) is None:
        return {}
    found = list(combinations(axes_of(root)))
    if len(found) > _MOST:
        message = f"the axes have {len(found)} combinations, and a file at most {_MOST} configurations"
        reading.problems.append(Problem(place, message, "take fewer values, or fewer axes"))
        return {}
    names = [combination_name(chosen) for chosen in found]
    for name in sorted({name for name in names if len(name) > _LONGEST_NAME or names.count(name) > 1}):
        why = f"is longer than {_LONGEST_NAME} characters" if names.count(name) < 2 else "is that of two combinations"
        step = "write other names of axes and values: signs and blanks become hyphens in the names of configurations"
        reading.problems.append(Problem(place, f"the name {quote(name)} {why}", step))
        return {}
    base = remove_key(root, AXES)
    trees = {}
    for chosen in found:
        tree = base
        for axis, value in chosen.items():
            tree = apply_overlay(tree, section.find((axis, value)))
        trees[combination_name(chosen)] = tree
    return trees


def check_overlays(root: Node, section: Node, path: tuple[str, ...]) -> Iterator[Problem]:
    """Yields what the models would report less clearly: one configuration, unknown tests, keys that cannot differ."""
    overlays = section.entries or {}
    if section.entries is not None and len(overlays) < 2:
        what = "a comparison needs two or more configurations" if path == (KEY,) else "an axis needs two or more values"
        step = "add another, or write its settings into the file itself"
        yield Problem(root.position_of_key(path), what, step)
    tests = root.child("tests")
    known = [str(of_test.value) for test in (tests.items if tests else None) or [] if (of_test := test.child("name"))]
    for name, overlay in overlays.items():
        if name == DEFAULT:
            message = f"{quote(DEFAULT)} is the name of the configuration of a file without `{KEY}`"
            yield Problem(section.key_positions[name], message, "give it another name")
        for key in overlay.entries or {}:
            if key in _WHY_SAME:
                yield _report_same_key(overlay, key, _WHY_SAME[key])
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
                if key in _WHY_SAME_IN_TESTS:
                    yield _report_same_key(options, key, _WHY_SAME_IN_TESTS[key])


def _report_same_key(node: Node, key: str, reason: str) -> Problem:
    message = f"{quote(key)} cannot differ between configurations: {reason}"
    return Problem(node.key_positions[key], message, "write it once, outside of the overlays")


def apply_overlay(base: Node, overlay: Node) -> Node:
    """The file's tree with one overlay; tests are matched by name and keep their order."""
    given = overlay.child("tests")
    tests = base.child("tests")
    merged = _merge(base, remove_key(overlay, "tests")) if overlay.entries else base
    if given is None or given.entries is None or tests is None or tests.items is None:
        return replace(merged, position=base.position)
    items = [
        _merge(test, given.entries[name]) if (name := _name(test)) in given.entries else test for test in tests.items
    ]
    entries = {**(merged.entries or {}), "tests": Node(tests.position, items=items)}
    return replace(merged, position=base.position, entries=entries)


def _merge(base: Node | None, over: Node, *, with_kinds: bool = True) -> Node:
    """``base`` with ``over`` merged into it; a kind that stands alone (``dut: policer``) is a section without options.

    Below `tuning` ``with_kinds`` is false: no section has a kind there, and a value alone is an option.
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
        return _drop_nulls(over)
    entries, positions = dict(base.entries), dict(base.key_positions)
    for key, child in over.entries.items():
        if _is_null(child):
            entries.pop(key, None)
        else:
            inner_kinds = with_kinds and key != _TUNING
            entries[key] = _merge(base.entries.get(key), child, with_kinds=inner_kinds)
            positions[key] = over.key_positions[key]
    return Node(over.position, entries=entries, key_positions=positions)


def _is_of_another_kind(base: Node, over: Node) -> bool:
    here, there = base.child(_KIND), over.child(_KIND)
    return there is not None and (here is None or here.value != there.value)


def _drop_nulls(node: Node) -> Node:
    """The overlay without its nulls, where the base has nothing that they could remove."""
    if node.entries is None:
        return node
    entries = {key: _drop_nulls(child) for key, child in node.entries.items() if not _is_null(child)}
    return replace(node, entries=entries)


def _is_null(node: Node) -> bool:
    return node.entries is None and node.items is None and node.value is None


def remove_key(node: Node, key: str) -> Node:
    """Returns a mapping without one of its keys."""
    return replace(node, entries={name: child for name, child in (node.entries or {}).items() if name != key})


def _name(test: Node) -> str:
    name = test.child("name")
    return "" if name is None else str(name.value)


# What differs between the configurations of a bench file: each setting that is not the same in all of them.


_Path = tuple[str, ...]
_NOT_GIVEN = object()


def list_differences(bench: BenchFile) -> tuple[Difference, ...]:
    """One row for each setting that differs between configurations; a configuration without the setting has None."""
    written = {each.configuration: _key_tests_by_name(each.written) for each in bench.configurations}
    paths = dict.fromkeys(path for content in written.values() for path in _leaf_paths(content))
    rows = []
    for path in paths:
        values = {name: _value_at(content, path) for name, content in written.items()}
        texts = {name: None if value is _NOT_GIVEN else _to_text(value) for name, value in values.items()}
        if len(set(texts.values())) > 1:
            rows.append(Difference(setting=".".join(path), values=texts))
    return tuple(rows)


def _key_tests_by_name(written: Mapping[str, Any]) -> dict[str, Any]:
    """The content with its tests as a mapping by name, so that settings of a test have the same path everywhere."""
    sections = {key: _to_section(value) if key in ("lab", "dut", "tester") else value for key, value in written.items()}
    hosts = {name: _to_section(host) for name, host in written.get("hosts", {}).items()}
    tests = {test["name"]: {key: value for key, value in test.items() if key != "name"} for test in written["tests"]}
    return {**sections, "hosts": hosts, "tests": tests}


def _to_section(value: Any) -> Any:
    """A section as a mapping; a kind that stands alone (``dut: policer``) becomes one."""
    return {"kind": value} if isinstance(value, str) else value


def _leaf_paths(content: Any, path: _Path = ()) -> Iterator[_Path]:
    if isinstance(content, dict) and content:
        for key, value in content.items():
            yield from _leaf_paths(value, (*path, key))
    else:
        yield path


def _value_at(content: Any, path: _Path) -> Any:
    for step in path:
        if not isinstance(content, dict) or step not in content:
            return _NOT_GIVEN
        content = content[step]
    return content


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
