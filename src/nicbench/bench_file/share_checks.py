"""The shares of a DUT that serves files: that their kind exists, has the options that are given, and fits the lab."""

from __future__ import annotations

from collections.abc import Iterator

from nicbench.bench_file.models import BenchFile
from nicbench.bench_file.nodes import Node
from nicbench.bench_file.problems import Problem, quote
from nicbench.bench_file.sections import Reading
from nicbench.shares.base import ShareKind

_SHARE = ("dut", "share")


def share_problems(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Nothing of a DUT without shares."""
    if "share" not in type(bench.dut.options).model_fields:
        return
    reading = Reading(root)
    reading.choose(_SHARE, "nicbench.shares", ShareKind)
    yield from reading.problems
    reached_by = None if bench.lab is None else bench.lab.options.model_dump().get("reached_by")
    if reached_by not in (None, "namespace"):
        message = (
            f"what is mounted in a namespace that is reached by {quote(reached_by)} is not there for every command"
        )
        yield Problem(root.position_of(("lab", "reached_by")), message, "remove `reached_by`, or take real machines")
