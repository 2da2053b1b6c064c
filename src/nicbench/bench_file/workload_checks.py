"""Checks of workloads: tools and shares exist, have the options that are given, and can do what is asked."""

from __future__ import annotations

from collections.abc import Iterator

from nicbench.bench_file.models import BenchFile
from nicbench.bench_file.problems import Position, Problem, quote, suggest
from nicbench.bench_file.reader import Node
from nicbench.bench_file.sections import Reading, Step
from nicbench.core.errors import UsageError
from nicbench.core.registry import find
from nicbench.core.round import JobSpec
from nicbench.testbed.shares.base import ShareKind
from nicbench.workloads.base import Workload


def check_workloads(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields the problems of each tool of each test; of equal messages about one test only the first."""
    kinds = find("nicbench.workloads.tools", Workload)
    for index, test in enumerate(bench.tests):
        reported: set[str] = set()
        for choice, ask in test.build().job_specs():
            position = _position(root, index, choice.kind)
            place = _section(root, index, choice.kind)
            if choice.kind in kinds and place is not None:
                reading = Reading(root)
                if reading.validate(kinds[choice.kind].Options, choice.options, place, beside=("kind",)) is None:
                    fresh = [problem for problem in reading.problems if problem.message not in reported]
                    reported.update(problem.message for problem in fresh)
                    yield from fresh
                    continue
            if choice.kind not in kinds:
                message = f"unknown workload {quote(choice.kind)}"
                found = Problem(position, message, suggest(choice.kind, list(kinds), "kind"))
            else:
                try:
                    why = kinds[choice.kind](choice.options).refusal(ask)
                except UsageError as error:
                    found = Problem(position, error.message, error.next_step or "see docs/workloads.md")
                else:
                    if why is None:
                        continue
                    able = [kind for kind, tool in kinds.items() if _can(tool, ask)]
                    step = f"choose another tool: {', '.join(able)}" if able else "no tool that nicbench knows can"
                    found = Problem(
                        position, f"{quote(choice.kind)} cannot do what {quote(test.name)} asks: {why}", step
                    )
            if found.message not in reported:
                reported.add(found.message)
                yield found


def _can(tool: type[Workload], ask: JobSpec) -> bool:
    try:
        return tool({}).refusal(ask) is None
    except UsageError:
        return False


def _position(root: Node, index: int, kind: str) -> Position:
    """Where the test names this tool; of a tool that is the method's own choice the position of the method."""
    test = root.find(("tests", index))
    for path in (("workload",), ("workloads",), ("load", "workload")):
        node = test.child(path[0])
        node = node.child(path[1]) if node is not None and len(path) > 1 else node
        if node is not None and kind in _names(node):
            return node.position
    return root.position_of(("tests", index, "method"))


def _names(node: Node) -> tuple[object, ...]:
    """The kinds that a node names: one tool, or a list of tools."""
    if node.items is not None:
        return tuple(name for item in node.items for name in _names(item))
    named = node.child("kind")
    return (node.value if named is None else named.value,)


def _section(root: Node, index: int, kind: str) -> tuple[Step, ...] | None:
    """The path of a tool's options in a test; None where the tool is named by its kind alone."""
    open_paths: list[tuple[Step, ...]] = [("tests", index)]
    while open_paths:
        path = open_paths.pop()
        node = root.find(path)
        named = node.child("kind")
        if named is not None and named.value == kind and len(path) > 2:
            return path
        open_paths += [(*path, key) for key in node.entries or {}]
        open_paths += [(*path, number) for number in range(len(node.items or ()))]
    return None


# The shares of a DUT that serves files: their kind exists, takes the given options, and fits the lab.


_SHARE = ("dut", "share")


def check_shares(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields what is wrong with the section ``dut.share``; nothing for a DUT that serves no files."""
    if "share" not in type(bench.dut.options).model_fields:
        return
    reading = Reading(root)
    reading.choose(_SHARE, "nicbench.testbed.shares", ShareKind)
    yield from reading.problems
    reached_by = None if bench.lab is None else bench.lab.options.model_dump().get("reached_by")
    if reached_by not in (None, "namespace"):
        message = f"a mount in a namespace that is reached by {quote(reached_by)} does not exist for every command"
        yield Problem(root.position_of(("lab", "reached_by")), message, "remove `reached_by`, or use real machines")
