"""The fleet file: bench files, a matrix of values, and the machines that each run needs."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import product
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field
from ruamel.yaml import YAML

from nicbench.bench_file.load import parse_tree
from nicbench.bench_file.overlays import Overlay, apply_overlay
from nicbench.bench_file.reader import LARGEST_FILE_BYTES, Node, WrongBenchFileError, read
from nicbench.bench_file.sections import Reading
from nicbench.core.base import Distinct, Frozen
from nicbench.core.errors import Position, Problem, UsageError, WrongFileError, quote, suggest
from nicbench.core.frozen import frozen
from nicbench.core.quantity import Seconds
from nicbench.core.traffic import Name
from nicbench.stages.plan import list_planned

BENCH: Final = "bench"
"""The axis that every fleet has: the names of its bench files."""
MOST_RUNS: Final = 100_000
Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$")]
"""A value of a matrix, or a name of Slurm; it may be part of a feature and of a tag."""
Feature = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.+{}-]{1,64}$")]
"""The value of a feature, which may name axes: ``{card}``."""
_AXIS: Final = re.compile(r"\{([^{}]*)\}")
_NEXT: Final = "docs/many-runs.md has an example"


class FleetFile(Frozen):
    """A fleet file."""

    fleet: Literal[1]
    """The format of the file."""
    benches: Distinct[str]
    """Bench files, as paths from the folder of the fleet file. A host that is a role needs no `kind` and `address`."""
    matrix: dict[Name, Distinct[Word]] = Field(default_factory=dict, max_length=16)
    """Axes with their values. Each bench file runs with every combination."""
    exclude: tuple[dict[Name, Word], ...] = ()
    """Combinations to leave out, by some of their values; the axis `bench` has the names of the bench files."""
    overlays: dict[Name, dict[str, Overlay]] = Field(default_factory=dict)
    """What a value of an axis changes in the bench file, as in `configurations`; or, by role, what a node changes."""
    roles: dict[Name, dict[Name, Feature]] = Field(min_length=1, max_length=16)
    """The machines that each run needs, and the features that each must have."""
    joined_by: Name | None = None
    """The feature that must have one value on all of these machines, such as the cable between them."""
    repeat: int = Field(default=1, ge=1, le=1000)
    """How often each combination runs."""
    priority: Word | None = None
    """The quality of service (QOS) of Slurm."""
    partition: Word | None = None
    """The partition of Slurm; without it the default one."""
    account: Word | None = None
    """The account of Slurm; without it the default one."""
    time_limit: Seconds | None = Field(default=None, ge=60.0)
    """The limit of each run; without it one and a half times its plan, and two minutes."""


@frozen
class Cell:
    """One combination: a value for each axis, ``bench`` first."""

    values: Mapping[str, str]

    def __str__(self) -> str:
        return ", ".join(
            [self.values[BENCH], *(f"{key}={value}" for key, value in self.values.items() if key != BENCH)]
        )

    def features_of(self, role: Mapping[str, str]) -> frozenset[str]:
        """The features that a machine of the role must have, as Slurm has them: ``card=cx5``."""
        return frozenset(f"{name}={_AXIS.sub(self._value_of, value)}" for name, value in role.items())

    def _value_of(self, named: re.Match[str]) -> str:
        return self.values[named[1]]


@frozen
class Fleet:
    """A fleet file that was read: its content, its tree with positions, and where it stands."""

    file: FleetFile
    root: Node
    path: Path

    @property
    def benches(self) -> dict[str, Path]:
        """The bench files by their names, which are those of the files without the ending."""
        return {Path(bench).stem: self.path.parent / bench for bench in self.file.benches}

    def cells(self) -> list[Cell]:
        """Every combination that is not excluded, in the order of the file."""
        axes = {BENCH: tuple(self.benches), **self.file.matrix}
        combinations = (dict(zip(axes, values, strict=True)) for values in product(*axes.values()))
        return [
            Cell(values)
            for values in combinations
            if not any(excluded.items() <= values.items() for excluded in self.file.exclude)
        ]

    def overlays_of(self, cell: Cell) -> Iterator[Node]:
        """What the values of the cell change in its bench file, in the order of the matrix."""
        for axis, value in cell.values.items():
            if value in self.file.overlays.get(axis, {}):
                yield self.root.find(("overlays", axis, value))

    def overlays_of_nodes(self, role: str) -> dict[str, Node]:
        """What each node changes that has the role, by its name."""
        return {node: self.root.find(("overlays", role, node)) for node in self.file.overlays.get(role, {})}


def read_fleet(path: Path) -> Fleet:
    """Reads a fleet file. UsageError where it cannot be read, WrongFileError with everything that is wrong in it."""
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST_FILE_BYTES + 1)  # one more than allowed: enough to see that it is too large
    except OSError as error:
        why = "there is no such file" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
        raise UsageError(why, place=str(path), next_step=f"give the path of a fleet file; {_NEXT}") from error
    root = _stands_in(read(content, str(path)), str(path))
    reading = Reading(root)
    plain = root.plain()
    if not isinstance(plain, dict):
        problem = Problem(root.position, "a fleet file is keys and values", _NEXT)
        raise WrongFileError(str(path), [problem])
    file = reading.validate(FleetFile, plain, ())
    fleet = None if file is None else Fleet(file, root, path)
    problems = [*reading.problems, *(() if fleet is None else _check(fleet))]
    if fleet is None or problems:
        raise WrongFileError(str(path), problems)
    return fleet


def _stands_in(node: Node, path: str) -> Node:
    """The tree, each node of which says in which file it stands: parts of it are merged into bench files."""
    return Node(
        Position(*node.position[:2], path),
        value=node.value,
        items=None if node.items is None else [_stands_in(item, path) for item in node.items],
        entries=None if node.entries is None else {key: _stands_in(one, path) for key, one in node.entries.items()},
        key_positions={key: Position(*position[:2], path) for key, position in node.key_positions.items()},
        expanded=node.expanded,
    )


def _check(fleet: Fleet) -> Iterator[Problem]:
    """Yields what no model can see: names that do not fit each other."""
    file, root = fleet.file, fleet.root
    axes = {BENCH: tuple(fleet.benches), **file.matrix}
    if len(fleet.benches) < len(file.benches):
        yield Problem(root.position_of_key(("benches",)), "two bench files have one name", "rename one of them")
    for axis in file.matrix:
        at = root.position_of_key(("matrix", axis))
        if axis == BENCH:
            yield Problem(at, f"{quote(BENCH)} is the axis of the bench files", "give the axis another name")
        elif axis in file.roles:
            yield Problem(at, f"{quote(axis)} is an axis and a role", "give one of them another name")
        elif axis not in file.overlays and axis not in _named_in(file):
            step = f"name it in a role as `{{{axis}}}`, or say under `overlays` what its values change"
            yield Problem(at, f"the axis {quote(axis)} changes nothing", step)
    for number, excluded in enumerate(file.exclude):
        yield from _check_values(root, ("exclude", number), {axis: (value,) for axis, value in excluded.items()}, axes)
    yield from _check_values(root, ("overlays",), file.overlays, {**axes, **dict.fromkeys(file.roles, None)})
    yield from _check_roles(fleet, list(axes))
    if (runs := len(fleet.cells()) * file.repeat) > MOST_RUNS:
        yield Problem(root.position, f"these are {runs} runs", f"a fleet has at most {MOST_RUNS}: make several")
    elif not runs:
        yield Problem(root.position_of_key(("exclude",)), "every combination is excluded", "exclude fewer")


def _check_values(
    root: Node,
    path: tuple[str | int, ...],
    given: Mapping[str, Iterable[str]],
    axes: Mapping[str, Sequence[str] | None],
) -> Iterator[Problem]:
    """Yields axes that are not there and values that they do not have; an axis of None may have any."""
    for axis, values in given.items():
        known = axes.get(axis)
        if axis not in axes:
            at = root.position_of_key((*path, axis))
            yield Problem(at, f"no axis or role is called {quote(axis)}", suggest(axis, list(axes), "name"))
        for value in values:
            if known is not None and value not in known:
                at = root.position_of_key((*path, axis, value))
                yield Problem(at, f"the axis {quote(axis)} has no value {quote(value)}", suggest(value, known, "value"))


def _check_roles(fleet: Fleet, axes: list[str]) -> Iterator[Problem]:
    for role, features in fleet.file.roles.items():
        for feature, value in features.items():
            at = fleet.root.position_of(("roles", role, feature))
            if set(_AXIS.sub("", value)) & {"{", "}"}:
                yield Problem(at, f"{quote(value)} has a brace without its other one", "write `{AXIS}`")
            for name in _AXIS.findall(value):
                if name not in axes:
                    yield Problem(at, f"unknown axis {quote(name)}", suggest(name, axes, "name"))
    if fleet.file.joined_by is not None and len(fleet.file.roles) < 2:
        at = fleet.root.position_of_key(("joined_by",))
        yield Problem(at, "one machine alone is not joined to another", "add a role, or leave `joined_by` out")


def _named_in(file: FleetFile) -> set[str]:
    """The axes that roles name."""
    return {axis for role in file.roles.values() for value in role.values() for axis in _AXIS.findall(value)}


# Bench files of a fleet: one for each combination, and, once Slurm gave its machines, one with their addresses.

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

    A host with the address None stands for this machine. Options that a host has already (``user``, ``key``) stay.
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
