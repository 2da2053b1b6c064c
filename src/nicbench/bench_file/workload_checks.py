"""The tools of a bench file: that they exist, have the options that are given, and can do what is asked of them."""

from __future__ import annotations

from collections.abc import Iterator

from nicbench.bench_file.models import BenchFile
from nicbench.bench_file.nodes import Node
from nicbench.bench_file.problems import Position, Problem, quote, suggest
from nicbench.bench_file.sections import Reading
from nicbench.bench_file.wording import Step
from nicbench.errors import UsageError
from nicbench.model.round import Ask
from nicbench.registry import find
from nicbench.workloads.base import Workload


def workload_problems(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """One problem for each tool of each test."""
    kinds = find("nicbench.workloads.tools", Workload)
    for index, test in enumerate(bench.tests):
        told: set[str] = set()
        for choice, ask in test.build().asks():
            position = _position(root, index, choice.kind)
            place = _section(root, index, choice.kind)
            if choice.kind in kinds and place is not None:
                reading = Reading(root)
                if reading.validate(kinds[choice.kind].Options, choice.options, place, beside=("kind",)) is None:
                    fresh = [problem for problem in reading.problems if problem.message not in told]
                    told.update(problem.message for problem in fresh)
                    yield from fresh
                    continue
            if choice.kind not in kinds:
                message = f"there is no workload of the kind {quote(choice.kind)}"
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
            if found.message not in told:
                told.add(found.message)
                yield found


def _can(tool: type[Workload], ask: Ask) -> bool:
    try:
        return tool({}).refusal(ask) is None
    except UsageError:
        return False


def _position(root: Node, index: int, kind: str) -> Position:
    """Where this tool is named; a tool that is the method's own choice has the method's place."""
    test = root.find(("tests", index))
    for path in (("workload",), ("workloads",), ("load", "workload")):
        node = test.child(path[0])
        node = node.child(path[1]) if node is not None and len(path) > 1 else node
        if node is not None and kind in _names(node):
            return node.position
    return root.position_of(("tests", index, "method"))


def _names(node: Node) -> tuple[object, ...]:
    """The kinds of a tool or of a list of tools."""
    if node.items is not None:
        return tuple(name for item in node.items for name in _names(item))
    named = node.child("kind")
    return (node.value if named is None else named.value,)


def _section(root: Node, index: int, kind: str) -> tuple[Step, ...] | None:
    """Where the options of a tool stand in a test; None where it is named by its kind alone."""
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
