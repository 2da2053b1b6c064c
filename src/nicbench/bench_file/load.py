"""From a path to a ``BenchFile``: read, validate, resolve the kinds, cross-check. Touches no host."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from nicbench.bench_file.checks import cross_check
from nicbench.bench_file.frame_sizes import Extremes
from nicbench.bench_file.guest_checks import ON, resolve_on
from nicbench.bench_file.models import DEFAULT_TESTER, BenchFile, Choice, Document, TestHead, TestSpec
from nicbench.bench_file.overlays import merge_configurations
from nicbench.bench_file.problems import Problem, WrongBenchFileError, merge_problems
from nicbench.bench_file.reader import LARGEST_FILE_BYTES, Node, read
from nicbench.bench_file.sections import Reading
from nicbench.bench_file.tuning import read_tuning
from nicbench.bench_file.wording import Step
from nicbench.core.errors import UsageError
from nicbench.core.registry import find
from nicbench.hosts.base import Host
from nicbench.methods.base import Method
from nicbench.testbed.duts.base import Dut
from nicbench.testbed.labs.base import Lab
from nicbench.testbed.testers.base import TesterKind

SEE_EXAMPLES = "give the path of a bench file; those in examples/ run as they are"


def load(path: Path) -> BenchFile:
    """The bench file at ``path``; WrongBenchFileError lists everything that is wrong with it."""
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST_FILE_BYTES + 1)  # one more than allowed: enough to see that it is too large
    except FileNotFoundError as error:
        raise UsageError("there is no such file", place=str(path), next_step=SEE_EXAMPLES) from error
    except IsADirectoryError as error:
        raise UsageError("is a folder, not a bench file", place=str(path), next_step=SEE_EXAMPLES) from error
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", place=str(path), next_step=SEE_EXAMPLES) from error
    return parse(content, path)


def parse(content: bytes, path: Path) -> BenchFile:
    """The bench file in ``content``; ``path`` is where it came from, for messages."""
    root = read(content, str(path))
    reading = Reading(root)
    trees = merge_configurations(root, reading)
    if reading.problems:
        raise WrongBenchFileError(str(path), reading.problems)
    outcomes: dict[str, BenchFile | list[Problem]] = {}
    for name, tree in trees.items():
        try:
            outcomes[name] = replace(_parse_configuration(tree, content, path), configuration=name)
        except WrongBenchFileError as error:
            outcomes[name] = list(error.problems)
    wrong = {name: problems for name, problems in outcomes.items() if isinstance(problems, list)}
    if wrong:
        raise WrongBenchFileError(str(path), merge_problems(wrong, of=len(trees)))
    configurations = tuple(bench for bench in outcomes.values() if isinstance(bench, BenchFile))
    return replace(configurations[0], compared=configurations) if len(configurations) > 1 else configurations[0]


def _parse_configuration(root: Node, content: bytes, path: Path) -> BenchFile:
    """The bench file of one configuration, whose overlay is merged into the tree already."""
    reading = Reading(root)
    document = reading.validate(Document, root.plain(), ())
    lab = (
        _choice(reading, ("lab",), "nicbench.testbed.labs", Lab, beside=(ON,)) if "lab" in _keys(reading, ()) else None
    )
    dut = _choice(reading, ("dut",), "nicbench.testbed.duts", Dut) if "dut" in _keys(reading, ()) else None
    tester = _tester(reading)
    lab, hosts = resolve_on(
        reading,
        lab,
        {
            name: _choice(reading, ("hosts", name), "nicbench.hosts.kinds", Host, beside=(ON,))
            for name in _keys(reading, ("hosts",))
        },
    )
    tuning = read_tuning(reading)
    tests = [_test(reading, index, in_a_lab=lab is not None) for index in _test_indices(reading)]
    if reading.problems or document is None or dut is None or tester is None:
        raise WrongBenchFileError(str(path), reading.problems)
    try:
        extremes = Extremes.of(document.traffic, lab)
        traffic = extremes.resolve_traffic(document.traffic)
    except ValidationError as error:
        why = error.errors()[0]["msg"].removeprefix("Value error, ")
        problem = Problem(
            root.position_of(("traffic", "mixes")), f"a sweep is impossible: {why}", "give both of its ends"
        )
        raise WrongBenchFileError(str(path), [problem]) from error
    bench = BenchFile(
        path=path,
        source=content.decode("utf-8-sig"),
        written=root.plain(),
        title=document.title,
        description=document.description,
        seed=document.seed,
        lab=lab,
        hosts=hosts,
        ports=document.ports,
        links=document.links,
        dut=dut,
        tester=tester,
        traffic=traffic,
        thresholds=document.thresholds.model_dump(exclude_unset=True),
        tests=tuple(extremes.resolve_test(test) for test in tests if test is not None),
        runs=document.runs.resolved,
        tuning=tuning,
        redact=document.redact,
        report=document.report,
        declared=document.declared,
        redfish=document.redfish,
        monitor=document.monitor,
    )
    if problems := list(cross_check(bench, root)):
        raise WrongBenchFileError(str(path), problems)
    return bench


def _keys(reading: Reading, path: tuple[Step, ...]) -> list[str]:
    """The keys at ``path`` whose values can be sections; none where there is no mapping, which the model reports."""
    node = reading.root
    for step in path:
        child = node.child(step)
        if child is None:
            return []
        node = child
    return [
        key for key, child in (node.entries or {}).items() if child.entries is not None or isinstance(child.value, str)
    ]


def _test_indices(reading: Reading) -> list[int]:
    tests = reading.root.child("tests")
    return [index for index, test in enumerate((tests.items if tests else None) or []) if test.entries is not None]


def _choice(
    reading: Reading,
    path: tuple[Step, ...],
    package: str,
    base: type[Any],
    default: str | None = None,
    beside: tuple[str, ...] = (),
) -> Choice | None:
    chosen = reading.choose(path, package, base, default=default, beside=beside)
    return None if chosen is None else Choice(kind=chosen[0].kind, options=chosen[1], plugin=chosen[0])


def _tester(reading: Reading) -> Choice | None:
    """The chosen tester, or our own engine where none is chosen; None after noting what is wrong."""
    if "tester" in _keys(reading, ()):
        return _choice(reading, ("tester",), "nicbench.testbed.testers", TesterKind, default=DEFAULT_TESTER)
    plugin = find("nicbench.testbed.testers", TesterKind)[DEFAULT_TESTER]
    return Choice(kind=DEFAULT_TESTER, options=plugin.Options(), plugin=plugin)


def _test(reading: Reading, index: int, *, in_a_lab: bool) -> TestSpec | None:
    path: tuple[Step, ...] = ("tests", index)
    own = {
        key: node.plain()
        for key, node in (reading.root.find(path).entries or {}).items()
        if key in TestHead.model_fields
    }
    head = reading.validate(TestHead, own, path)
    chosen = reading.choose(path, "nicbench.methods", Method, key="method", beside=TestHead.model_fields)
    if head is None or chosen is None:
        return None
    method, options = chosen
    options = method.in_a_lab(options) if in_a_lab else options
    return TestSpec(name=head.name, method_kind=method.kind, options=options, plugin=method)
