"""Bench files of a fleet: one for each combination, and, once Slurm gave its machines, one with their addresses."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Final

from ruamel.yaml import YAML

from nicbench.bench_file.load import parse_tree
from nicbench.bench_file.overlays import apply_overlay
from nicbench.bench_file.reader import Node, WrongBenchFileError, read
from nicbench.core.errors import UsageError
from nicbench.fleet.model import BENCH, Cell, Fleet
from nicbench.stages.time_plan import list_planned

_HOSTS: Final = "hosts"
_HYPERVISOR: Final = "hypervisor"


def tree_of(fleet: Fleet, cell: Cell) -> Node:
    """The bench file of a combination, before it is known on which machines it runs."""
    path = fleet.benches[cell.values[BENCH]]
    tree = reduce(apply_overlay, fleet.overlays_of(cell), read(_content_of(path), str(path)))
    files = tree.child(_HYPERVISOR)
    if files is None:
        return tree
    return replace(tree, entries={**(tree.entries or {}), _HYPERVISOR: _make_absolute(files, path.resolve().parent)})


def bind_tree(tree: Node, fleet: Fleet, addresses: Mapping[str, str | None], nodes: Mapping[str, str]) -> Node:
    """The bench file with its machines: hosts that are roles get an address, and what ``nodes`` change is merged in.

    A host whose address is None is this machine. Options that a host has already (``user``, ``key``) stay.
    """
    for role, node in nodes.items():
        overlay = fleet.overlays_of_nodes(role).get(node)
        tree = tree if overlay is None else apply_overlay(tree, overlay)
    hosts = tree.child(_HOSTS)
    if hosts is None or hosts.entries is None:
        return tree
    bound = {
        name: _bind_host(host, addresses[name]) if name in addresses else host for name, host in hosts.entries.items()
    }
    entries = {**(tree.entries or {}), _HOSTS: replace(hosts, entries=bound)}
    return replace(tree, entries=entries)


def _bind_host(host: Node, address: str | None) -> Node:
    def scalar(value: str) -> Node:
        return Node(host.position, value=value)

    if address is None:
        return Node(host.position, entries={"kind": scalar("local")}, key_positions={"kind": host.position})
    written = {key: node for key, node in (host.entries or {}).items() if key not in ("kind", "address")}
    entries = {"kind": scalar("ssh"), "address": scalar(address), **written}
    return replace(
        host,
        value=None,
        entries=entries,
        key_positions={**host.key_positions, "kind": host.position, "address": host.position},
    )


def check_cell(fleet: Fleet, cell: Cell, candidates: Mapping[str, Iterable[str]]) -> float:
    """Checks the bench file of a combination on all machines that may have its roles; gives the time of its plan in s.

    ``candidates`` are the names of these machines by role. WrongBenchFileError where it is not valid on one of them.
    """
    tree, path = tree_of(fleet, cell), fleet.benches[cell.values[BENCH]]
    content = _content_of(path)
    varied = {role: _with_an_overlay_each(fleet, role, names) for role, names in candidates.items()}
    first = {role: names[0] for role, names in varied.items()}
    others = [{**first, role: name} for role, names in varied.items() for name in names[1:]]
    addresses = {role: role for role in fleet.file.roles}
    try:
        checked = [parse_tree(bind_tree(tree, fleet, addresses, nodes), content, path) for nodes in (first, *others)]
    except WrongBenchFileError as error:
        problems = [replace(each, message=f"with {cell}: {each.message}") for each in error.problems]
        raise WrongBenchFileError(error.path, problems) from error
    return max(sum(seconds for _, seconds in list_planned(bench)) for bench in checked)


def write_tree(tree: Node) -> str:
    """The tree as YAML, which reads as the same tree."""
    yaml = YAML()
    yaml.width = 2**16  # no line of text is folded
    stream = io.StringIO()
    yaml.dump(tree.plain(), stream)
    return stream.getvalue()


def _with_an_overlay_each(fleet: Fleet, role: str, names: Iterable[str]) -> list[str]:
    """Of the machines those that differ in what they change, and one of those that change nothing."""
    overlays = fleet.overlays_of_nodes(role)
    names = list(names)
    plain = [name for name in names if name not in overlays]
    return [*(name for name in names if name in overlays), *plain[:1]] or [""]


def _content_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        why = "there is no such file" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
        step = "names under `benches` are relative to the folder of the fleet file"
        raise UsageError(why, place=str(path), next_step=step) from error


def _make_absolute(node: Node, folder: Path) -> Node:
    """Names of files, which are relative to the folder of the bench file."""
    if node.entries is not None:
        return replace(node, entries={key: _make_absolute(child, folder) for key, child in node.entries.items()})
    return replace(node, value=str(folder / node.value)) if isinstance(node.value, str) else node
