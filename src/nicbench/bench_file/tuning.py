"""Reads the section ``tuning``: the items of each host, validated by their own ``Options``, and profiles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nicbench.bench_file.problems import Problem, quote, suggest
from nicbench.bench_file.reader import Node
from nicbench.bench_file.sections import Reading
from nicbench.bench_file.wording import Step
from nicbench.core.registry import find
from nicbench.tuning.items.base import Item
from nicbench.tuning.profiles import PROFILES, requests_of
from nicbench.tuning.requests import ALL, TuningRequest

KEY: Final = "tuning"
PROFILE: Final = "profile"
_ROLES: Final = (ALL, "tester", "dut", "clients")
_MOST_IN_A_LIST: Final = 64


def read_tuning(reading: Reading) -> tuple[TuningRequest, ...]:
    """Every tuning request of the section, in the order of the file; problems go to ``reading``."""
    section = reading.root.child(KEY)
    if section is None or (section.entries is None and section.value is None and section.items is None):
        return ()
    if section.entries is None:
        step = "write `tuning: {dut: {ITEM: ...}}`, or `tuning: {profile: NAME}`"
        reading.problems.append(Problem(section.position, "the section `tuning` has keys and values", step))
        return ()
    hosts = reading.root.child("hosts")
    known = [*_ROLES, *(name for name in (hosts.entries or {} if hosts else {}) if name not in _ROLES)]
    wishes: list[TuningRequest] = []
    for key, node in section.entries.items():
        if key == PROFILE:
            wishes += _read_profile(reading, ALL, node)
        elif key in known:
            wishes += _read_host(reading, key, node)
        else:
            message = f"there is no host {quote(key)} to tune"
            step = suggest(key, [*known, PROFILE], "host")
            reading.problems.append(Problem(section.key_positions[key], message, step))
    return tuple(wishes)


def _read_host(reading: Reading, role: str, node: Node) -> Iterator[TuningRequest]:
    if node.entries is None:
        step = f"write `{role}: {{ITEM: ...}}`"
        reading.problems.append(Problem(node.position, f"{quote(f'tuning.{role}')} has items by their names", step))
        return
    kinds = find("nicbench.tuning.items", Item)
    for key, child in node.entries.items():
        if key == PROFILE:
            yield from _read_profile(reading, role, child)
        elif key in kinds:
            yield from _read_item(reading, role, kinds[key], child)
        else:
            message = f"there is no tuning item {quote(key)}"
            step = suggest(key, [*kinds, PROFILE], "item")
            reading.problems.append(Problem(node.key_positions[key], message, step))


def _read_item(reading: Reading, role: str, item: type[Item], node: Node) -> Iterator[TuningRequest]:
    """Yields one request for a value or a mapping; for a list of mappings one each, for different interfaces."""
    path: tuple[Step, ...] = (KEY, role, item.kind)
    is_list = node.items is not None and all(one.entries is not None for one in node.items) and bool(node.items)
    if not is_list:
        yield from _read_options(reading, role, item, node, path)
        return
    items = node.items or []
    if len(items) > _MOST_IN_A_LIST:
        message = f"{quote(item.kind)} is given {len(items)} times"
        reading.problems.append(Problem(node.position, message, f"write at most {_MOST_IN_A_LIST}"))
        return
    for number, one in enumerate(items):
        yield from _read_options(reading, role, item, one, (*path, number))


def _read_options(
    reading: Reading, role: str, item: type[Item], node: Node, path: tuple[Step, ...]
) -> Iterator[TuningRequest]:
    is_whole = item.alone is not None and list(item.Options.model_fields) == [item.alone]
    if node.entries is not None and not is_whole:
        content = node.plain()
    elif item.alone is not None:
        content = {item.alone: node.plain()}
    elif node.value is None and node.items is None:
        content = {}
    else:
        step = f"write `{item.kind}: {{OPTION: ...}}`, with its options: {', '.join(item.Options.model_fields)}"
        reading.problems.append(Problem(node.position, f"{quote(item.kind)} has keys and values", step))
        return
    options = reading.validate(item.Options, content, path)
    if options is not None:
        yield TuningRequest(role=role, item=item, options=options)


def _read_profile(reading: Reading, role: str, node: Node) -> tuple[TuningRequest, ...]:
    name = node.value
    if not isinstance(name, str) or name not in PROFILES:
        message = f"there is no tuning profile {quote(node.plain())}"
        reading.problems.append(Problem(node.position, message, suggest(str(name), list(PROFILES), "profile")))
        return ()
    return requests_of(name, role)
