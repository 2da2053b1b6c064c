"""``on: NAME``: the host of the bench file on which a lab, a namespace or a container is made, and that it can be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from nicbench.bench_file.models import Choice
from nicbench.bench_file.nodes import Node
from nicbench.bench_file.problems import Problem, quote, suggest
from nicbench.bench_file.sections import Reading
from nicbench.bench_file.wording import Step
from nicbench.hosts.base import Host
from nicbench.registry import find

ON: Final = "on"
_LAB: Final = ("lab",)


def standing(
    reading: Reading, lab: Choice | None, hosts: Mapping[str, Choice | None]
) -> tuple[Choice | None, dict[str, Choice]]:
    """The lab and the hosts with what each is made on; what is wrong with that goes to ``reading``."""
    placed = {name: replace(host, on=_name(reading, ("hosts", name))) for name, host in hosts.items() if host}
    lab = replace(lab, on=_name(reading, _LAB)) if lab is not None else None
    known = _known(reading.root)
    problems = [
        *(problem for name in placed for problem in _host_problems(reading.root, name, placed, known)),
        *(_lab_problems(reading.root, lab, placed, known) if lab is not None else ()),
    ]
    reading.problems += problems
    return lab, placed


def _name(reading: Reading, path: tuple[Step, ...]) -> str | None:
    node = reading.root.find(path).child(ON)
    if node is not None and not isinstance(node.value, str):
        message = f"`on` must be the name of a host, not {quote(node.plain())}"
        reading.problems.append(Problem(node.position, message, "write `on: NAME`, of a host under `hosts`"))
        return None
    return None if node is None else str(node.value)


def _known(root: Node) -> list[str]:
    """Every name under ``hosts``, also of those with problems of their own."""
    return list(root.find(("hosts",)).entries or {}) if root.child("hosts") is not None else []


def _host_problems(root: Node, name: str, hosts: Mapping[str, Choice], known: list[str]) -> Iterator[Problem]:
    host, path = hosts[name], ("hosts", name)
    if host.on is None:
        return
    plugin: type[Host] = host.plugin
    key = root.position_of_key((*path, ON))
    if plugin.stands_on is None:
        step = f"remove `on`; it is for {_kinds(lambda each: each.stands_on is not None)}, and for labs"
        yield Problem(key, f"a host of the kind {quote(host.kind)} is made on no other one", step)
    elif root.find(path).child("inner") is not None:
        message = f"{quote(name)} has both `on` and `inner`, and is made on one host"
        yield Problem(root.position_of_key((*path, "inner")), message, "keep `on`")
    elif host.on not in known:
        yield _missing(root, path, host.on, known)
    elif chain := _loop(hosts, name):
        yield Problem(
            root.position_of((*path, ON)), f"hosts stand on each other: {chain}", "let one stand on a machine"
        )
    elif host.on in hosts:
        there = hosts[host.on]
        if there.plugin.stands_on is not None and there.kind not in plugin.stands_on:
            machines = _kinds(lambda each: each.stands_on is None or each.kind in (plugin.stands_on or ()))
            message = f"a {host.kind} cannot be made on {quote(host.on)}, which is a {there.kind}"
            yield Problem(root.position_of((*path, ON)), message, f"name a host of the kind {machines}")


def _lab_problems(root: Node, lab: Choice, hosts: Mapping[str, Choice], known: list[str]) -> Iterator[Problem]:
    if lab.on is None:
        return
    if not lab.plugin.touches_machine:
        message = f"the {lab.kind} lab is made on no machine"
        yield Problem(root.position_of_key((*_LAB, ON)), message, "remove `on`")
    elif lab.on not in known:
        yield _missing(root, _LAB, lab.on, known)
    elif lab.on in hosts:
        there = hosts[lab.on]
        if there.plugin.stands_on is not None:
            machines = _kinds(lambda each: each.stands_on is None)
            message = f"a lab is made on a whole machine, and {quote(lab.on)} is a {there.kind}"
            yield Problem(root.position_of((*_LAB, ON)), message, f"name a host of the kind {machines}")
        for name in known:
            if name != lab.on:
                message = f"the lab is made on {quote(lab.on)}, so the host {quote(name)} has no meaning"
                yield Problem(root.position_of_key(("hosts", name)), message, f"remove {quote(name)}, or `lab`")


def _missing(root: Node, path: tuple[Step, ...], name: str, known: list[str]) -> Problem:
    step = suggest(name, known, "host") if known else f"name it under `hosts`: `{name}: {{kind: ssh, address: ...}}`"
    return Problem(root.position_of((*path, ON)), f"there is no host {quote(name)}", step)


def _loop(hosts: Mapping[str, Choice], first: str) -> str | None:
    """``a on b on a`` where that is so."""
    chain = [first]
    while (host := hosts.get(chain[-1])) is not None and host.on is not None:
        chain.append(host.on)
        if chain.count(host.on) > 1:
            return " on ".join(map(quote, chain))
    return None


def _kinds(wanted: Any) -> str:
    return ", ".join(quote(kind) for kind, each in find("nicbench.hosts", Host).items() if wanted(each))
