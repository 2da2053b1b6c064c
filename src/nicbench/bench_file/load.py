"""A bench file for `nicbench serve`: what clients send takes the place of its tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from nicbench.bench_file.checks import cross_check
from nicbench.bench_file.frame_sizes import Extremes, read_captures
from nicbench.bench_file.models import DEFAULT_TESTER, BenchFile, Choice, Document, TestHead, TestSpec
from nicbench.bench_file.optimised import read_optimise
from nicbench.bench_file.overlays import axes_of, merge_configurations
from nicbench.bench_file.port_checks import ON, resolve_on
from nicbench.bench_file.reader import LARGEST_FILE_BYTES, Node, WrongBenchFileError, merge_problems, read
from nicbench.bench_file.sections import Reading, Step
from nicbench.bench_file.wiring import clients_of_ports, count_ports
from nicbench.core.base import why_of
from nicbench.core.errors import Problem, UsageError, quote, suggest
from nicbench.core.machine import Hypervisor, HypervisorFiles, HypervisorTable
from nicbench.core.registry import find
from nicbench.core.shipped import example, example_names
from nicbench.core.turn import DEFAULT
from nicbench.hosts.base import Host
from nicbench.methods.base import Method
from nicbench.store.files import BENCH, JOURNAL
from nicbench.store.folder import is_run_folder
from nicbench.system.hypervisor import read_domain, read_esxcli
from nicbench.testbed.duts.base import Dut
from nicbench.testbed.labs.base import Lab
from nicbench.testbed.testers.base import TesterKind
from nicbench.tuning.items.base import Item
from nicbench.tuning.tune import ALL, PROFILES, TuningRequest, requests_of

_TESTS: Final = b"tests: [{name: transmissions, method: transmission}]"


def serve_instead(root: Node, path: str) -> None:
    """Puts what a session measures in the place of the file's tests. WrongBenchFileError where it compares several."""
    if root.entries is None:
        return
    if "configurations" in root.entries:
        step = "remove `configurations`: a session has one"
        position = root.position_of_key(("configurations",))
        raise WrongBenchFileError(path, [Problem(position, "`configurations` cannot be served", step)])
    served = read(_TESTS, path)
    assert served.entries is not None  # noqa: S101 - it is written above
    root.entries["tests"] = served.entries["tests"]
    root.key_positions.setdefault("tests", root.position)


def has_tests(bench: BenchFile) -> bool:
    """Whether the file that is served has tests, which are not made."""
    return "tests" in (read(bench.source.encode(), str(bench.path)).entries or {})


def check_methods(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields tests of a method that is measured only for clients."""
    for index, test in enumerate(bench.tests):
        if test.plugin.of_sessions:
            message = f"{quote(test.method_kind)} is measured for clients of `nicbench serve`, not by a test"
            step = f"remove the test, or `nicbench serve {bench.path}`"
            yield Problem(root.position_of(("tests", index, "method")), message, step)


_HYPERVISOR: Final = "hypervisor"
_LARGEST_BYTES: Final = 2**20


def read_hypervisors(bench: BenchFile, root: Node) -> BenchFile:
    """The bench file, of every configuration, with what its hypervisors are set to.

    WrongBenchFileError names each file that cannot be read, or does not come from a hypervisor.
    """
    problems: list[Problem] = []
    found = {name: _read(bench.path.parent, name, files, root, problems) for name, files in bench.hypervisor.items()}
    if problems:
        raise WrongBenchFileError(str(bench.path), problems)
    return keep_hypervisors(bench, found)


def keep_hypervisors(bench: BenchFile, found: dict[str, Hypervisor]) -> BenchFile:
    """The bench file, of every configuration, with these tables, as a run has read them before."""
    compared = tuple(replace(each, hypervisors=found) for each in bench.compared)
    return replace(bench, hypervisors=found, compared=compared)


def _read(folder: Path, whose: str, files: HypervisorFiles, root: Node, problems: list[Problem]) -> Hypervisor:
    tables: list[HypervisorTable] = []
    for said, name in files.named.items():
        place = (_HYPERVISOR, whose, "libvirt") if files.libvirt is not None else (_HYPERVISOR, whose, "esxi", said)
        try:
            with (folder / name).open("rb") as stream:
                content = stream.read(_LARGEST_BYTES + 1)
            if len(content) > _LARGEST_BYTES:
                raise ValueError(f"is larger than {_LARGEST_BYTES // 2**10} KiB, so it is no such file")
            tables += read_domain(content) if files.libvirt is not None else [read_esxcli(content, said)]
        except OSError as error:
            step = f"names are relative to the bench file's folder, {folder.resolve()}"
            problems.append(Problem(root.position_of(place), f"{name} cannot be read: {error.strerror}", step))
        except ValueError as error:
            what, _, step = str(error).partition("; ")
            problems.append(Problem(root.position_of(place), f"{name} {what}", step or None))
    kind = "libvirt" if files.libvirt is not None else "ESXi"
    return Hypervisor(kind=kind, files=tuple(files.named.values()), tables=tuple(tables))


TUNING: Final = "tuning"
PROFILE: Final = "profile"
_ROLES: Final = (ALL, "tester", "dut", "clients")
_MOST_IN_A_LIST: Final = 64


def read_tuning(reading: Reading) -> tuple[TuningRequest, ...]:
    """Every tuning request of the section, in the order of the file; problems go to ``reading``."""
    section = reading.root.child(TUNING)
    if section is None or (section.entries is None and section.value is None and section.items is None):
        return ()
    if section.entries is None:
        step = "write `tuning: {dut: {ITEM: ...}}`, or `tuning: {profile: NAME}`"
        reading.problems.append(Problem(section.position, "`tuning` must be keys and values", step))
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
            message = f"unknown host {quote(key)}"
            step = suggest(key, [*known, PROFILE], "host")
            reading.problems.append(Problem(section.key_positions[key], message, step))
    return tuple(wishes)


def _read_host(reading: Reading, role: str, node: Node) -> Iterator[TuningRequest]:
    if node.entries is None:
        step = f"write `{role}: {{ITEM: ...}}`"
        reading.problems.append(
            Problem(node.position, f"{quote(f'tuning.{role}')} must be keys and values: tuning items by name", step)
        )
        return
    kinds = find("nicbench.tuning.items", Item)
    for key, child in node.entries.items():
        if key == PROFILE:
            yield from _read_profile(reading, role, child)
        elif key in kinds:
            yield from _read_item(reading, role, kinds[key], child)
        else:
            message = f"unknown tuning item {quote(key)}"
            step = suggest(key, [*kinds, PROFILE], "item")
            reading.problems.append(Problem(node.key_positions[key], message, step))


def _read_item(reading: Reading, role: str, item: type[Item], node: Node) -> Iterator[TuningRequest]:
    """Yields one request for a value or a mapping; for a list of mappings one each, for different interfaces."""
    path: tuple[Step, ...] = (TUNING, role, item.kind)
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
        reading.problems.append(Problem(node.position, f"{quote(item.kind)} must be keys and values", step))
        return
    options = reading.validate(item.Options, content, path)
    if options is not None:
        yield TuningRequest(role=role, item=item, options=options)


def _read_profile(reading: Reading, role: str, node: Node) -> tuple[TuningRequest, ...]:
    name = node.value
    if not isinstance(name, str) or name not in PROFILES:
        message = f"unknown tuning profile {quote(node.plain())}"
        reading.problems.append(Problem(node.position, message, suggest(str(name), list(PROFILES), "profile")))
        return ()
    return requests_of(name, role)


SEE_EXAMPLES = "give the path of a bench file; `nicbench init` writes one, `nicbench demo` runs one"


def _instead_of(missing: Path) -> str:
    """The next step where a bench file is missing: the example of its name, which an installation keeps elsewhere."""
    if missing.stem not in example_names():
        return SEE_EXAMPLES
    where = example(missing.stem)
    return f"`nicbench demo {missing.stem}` runs the example of this name, and `cp {where} .` copies it to be changed"


def load(path: Path, *, with_files: bool = True, serves: bool = False) -> BenchFile:
    """The bench file at ``path``; WrongBenchFileError lists everything that is wrong with it.

    Without ``with_files`` those that it names, captures and what hypervisors are set to, are not read: a run folder has
    none of them.
    ``serves``: clients say what is sent, so that it needs no tests, and those that it has are not made.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST_FILE_BYTES + 1)  # one more than allowed: enough to see that it is too large
    except FileNotFoundError as error:
        raise UsageError("there is no such file", place=str(path), next_step=_instead_of(path)) from error
    except IsADirectoryError as error:
        is_run = is_run_folder(path) and (path / JOURNAL).exists()  # a bench file alone may lie where the user works
        what = "is the folder of a run, not a bench file" if is_run else "is a folder, not a bench file"
        step = f"`nicbench resume {path}` goes on with it, `nicbench run {path / BENCH}` repeats it"
        raise UsageError(what, place=str(path), next_step=step if is_run else SEE_EXAMPLES) from error
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", place=str(path), next_step=SEE_EXAMPLES) from error
    bench = parse(content, path, serves=serves, with_files=with_files)
    return read_hypervisors(bench, read(content, str(path))) if with_files and bench.hypervisor else bench


def parse(content: bytes, path: Path, *, serves: bool = False, with_files: bool = False) -> BenchFile:
    """The bench file in ``content``; ``path`` is where it came from, for messages. ``serves``: as in ``load``.

    ``with_files``: captures on this machine are read.
    """
    root = read(content, str(path))
    if serves:
        serve_instead(root, str(path))
    return parse_tree(root, content, path, serves=serves, with_files=with_files)


def parse_tree(root: Node, content: bytes, path: Path, *, serves: bool = False, with_files: bool = False) -> BenchFile:
    """The bench file of a tree, which ``content`` has as text; problems stand where its nodes say that they do."""
    reading = Reading(root)
    wishes, trees = read_optimise(root, reading)
    trees = trees or merge_configurations(root, reading)
    if reading.problems:
        raise WrongBenchFileError(str(path), reading.problems)
    outcomes: dict[str, BenchFile | list[Problem]] = {}
    for name, tree in trees.items():
        try:
            parsed = _parse_configuration(tree, content, path, serves=serves, with_files=with_files)
            outcomes[name] = replace(parsed, configuration=name)
        except WrongBenchFileError as error:
            outcomes[name] = list(error.problems)
    wrong = {name: problems for name, problems in outcomes.items() if isinstance(problems, list)}
    if wrong:
        raise WrongBenchFileError(str(path), merge_problems(wrong, of=len(trees)))
    configurations = tuple(bench for bench in outcomes.values() if isinstance(bench, BenchFile))
    if wishes is not None:  # the others were checked alone
        return replace(configurations[0], configuration=DEFAULT, optimise=wishes)
    if len(configurations) < 2:
        return configurations[0]
    return replace(configurations[0], compared=configurations, axes=axes_of(root))


def _parse_configuration(root: Node, content: bytes, path: Path, *, serves: bool, with_files: bool) -> BenchFile:
    """The bench file of one configuration, whose overlay is merged into the tree already."""
    reading = Reading(root)
    document = reading.validate(Document, root.plain(), ())
    lab = (
        _choice(reading, ("lab",), "nicbench.testbed.labs", Lab, further_keys=(ON,))
        if "lab" in _keys(reading, ())
        else None
    )
    dut = _choice(reading, ("dut",), "nicbench.testbed.duts", Dut) if "dut" in _keys(reading, ()) else None
    tester = _tester(reading)
    lab, hosts = resolve_on(
        reading,
        lab,
        {
            name: _choice(reading, ("hosts", name), "nicbench.hosts.kinds", Host, further_keys=(ON,))
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
        why = why_of(error.errors()[0])
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
        hypervisor=document.hypervisor,
        monitor=document.monitor,
    )
    problems: list[Problem] = []
    if with_files and bench.measures == "frames" and not serves:
        bench = read_captures(bench, root, problems)
    if problems := [*problems, *cross_check(bench, root), *(() if serves else check_methods(bench, root))]:
        raise WrongBenchFileError(str(path), problems)
    if bench.measures == "rounds":
        ports, clients = count_ports(bench), tuple(len(each) for each in clients_of_ports(bench).values())
        bench = replace(bench, tests=tuple(replace(test, ports=ports, clients=clients) for test in bench.tests))
    return bench


def _keys(reading: Reading, path: tuple[Step, ...]) -> list[str]:
    """The keys at ``path`` whose values can be sections; empty unless it is a mapping, which the model reports."""
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
    further_keys: tuple[str, ...] = (),
) -> Choice | None:
    chosen = reading.choose(path, package, base, default=default, further_keys=further_keys)
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
    chosen = reading.choose(path, "nicbench.methods", Method, key="method", further_keys=TestHead.model_fields)
    if head is None or chosen is None:
        return None
    method, options = chosen
    options = method.lab_options(options) if in_a_lab else options
    return TestSpec(name=head.name, method_kind=method.kind, options=options, plugin=method)
