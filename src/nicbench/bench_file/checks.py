"""Cross-checks of a bench file, before a host is touched: what no single section can know."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from pydantic import ValidationError

from nicbench.bench_file.endpoint_wiring import endpoint_problems
from nicbench.bench_file.frame_sizes import frame_size_problems
from nicbench.bench_file.models import BenchFile
from nicbench.bench_file.nodes import Node
from nicbench.bench_file.pattern_checks import pattern_problems
from nicbench.bench_file.problems import Problem, quote, suggest
from nicbench.bench_file.share_checks import share_problems
from nicbench.bench_file.tester_checks import tester_problems
from nicbench.bench_file.time_stamps import time_stamp_problems
from nicbench.bench_file.traffic_checks import traffic_problems
from nicbench.bench_file.wiring import endpoint_kind_problems, wiring_problems
from nicbench.bench_file.workload_checks import workload_problems
from nicbench.methods.base import Measures
from nicbench.registry import find
from nicbench.search.base import Search


def cross_check(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Every problem that shows only when the sections are seen together."""
    mixed = list(_tests_measure_alike(bench, root))
    if not mixed and bench.measures == "frames":
        mixed = list(endpoint_kind_problems(bench, root))
    yield from mixed
    for _, check in () if mixed else _CHECKS[bench.measures]:
        yield from check(bench, root)


def checked(measures: Measures) -> tuple[str, ...]:
    """What ``cross_check`` made sure of, a phrase each."""
    return tuple(phrase for phrase, _ in _CHECKS[measures])


_BY: Final[Mapping[Measures, str]] = MappingProxyType(
    {"frames": "frames of a tester", "rounds": "workloads between hosts"}
)
# As the keys of the calibration's trials begin (trials/ceiling.py), and the name of its stage.
_TAKEN_NAMES: Final = frozenset({"calibration", "cable", "ceiling"})


def _tests_measure_alike(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """A tester's frames and the tools' bytes go over the same links: one bench file has one or the other."""
    for index, test in enumerate(bench.tests):
        if test.plugin.measures != bench.measures:
            message = (
                f"the method {quote(test.method_kind)} measures by {_BY[test.plugin.measures]}, and "
                f"{quote(bench.tests[0].method_kind)} above it by {_BY[bench.measures]}"
            )
            step = "put the two into bench files of their own"
            yield Problem(root.position_of(("tests", index, "method")), message, step)


def _test_names_are_unique(bench: BenchFile, root: Node) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, test in enumerate(bench.tests):
        if test.name in seen:
            position = root.position_of(("tests", index, "name"))
            yield Problem(position, f"two tests are called {quote(test.name)}", "give each test a name of its own")
        seen.add(test.name)
        if test.name in _TAKEN_NAMES:
            position = root.position_of(("tests", index, "name"))
            message = f"{quote(test.name)} is what trials of the tester by itself are called"
            yield Problem(position, message, "give the test another name")


def _needed_tests_come_earlier(bench: BenchFile, root: Node) -> Iterator[Problem]:
    for index, test in enumerate(bench.tests):
        needed = test.build().needs()
        earlier = {other.name: other for other in bench.tests[:index]}
        if needed is None:
            continue
        position = root.position_of(("tests", index, "at"))
        if needed not in earlier:
            later = any(other.name == needed for other in bench.tests[index:])
            what = "is not above this one" if later else "does not exist"
            step = "move it above this test" if later else suggest(needed, list(earlier), "earlier test")
            yield Problem(position, f"the test {quote(needed)} {what}; {quote(test.name)} works on its results", step)
            continue
        measured = earlier[needed].build().frame_sizes()
        missing = [size for size in test.build().frame_sizes() if size not in measured]
        if missing:
            sizes = ", ".join(f"{size} bytes" if isinstance(size, int) else quote(size) for size in missing)
            position = root.position_of(("tests", index, "frame_bytes"))
            yield Problem(
                position, f"{quote(needed)} does not measure frames of {sizes}", f"add them to {quote(needed)}"
            )


def _rates_exist(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """A latency is measured at a rate that the earlier test looks for."""
    tests = {test.name: test for test in bench.tests}
    for index, test in enumerate(bench.tests):
        wanted: Any = getattr(test.options, "of", None)
        earlier = tests.get(test.build().needs() or "")
        goals: Any = getattr(getattr(earlier and earlier.options, "search", None), "goals", None)
        if isinstance(wanted, str) and goals and wanted not in goals:
            position = root.position_of(("tests", index, "of"))
            message = f"{quote(earlier.name if earlier else None)} looks for no rate called {quote(wanted)}"
            yield Problem(position, message, suggest(wanted, list(goals), "rate"))


def _searches_exist(bench: BenchFile, root: Node) -> Iterator[Problem]:
    kinds = find("nicbench.search", Search)
    for index, test in enumerate(bench.tests):
        choice: Any = getattr(test.options, "search", None)
        path = ("tests", index, "search")
        if choice is None:
            continue
        if choice.kind not in kinds:
            message = f"there is no search of the kind {quote(choice.kind)}"
            yield Problem(root.position_of((*path, "kind")), message, suggest(choice.kind, list(kinds), "kind"))
            continue
        try:
            choice.build()
        except ValidationError as error:
            why = error.errors()[0]["msg"].removeprefix("Value error, ")
            yield Problem(root.position_of(path), f"the search cannot be made: {why}", None)


def _what_is_tuned_is_there(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """A simulated lab has no machine, a tester with ports of its own no DUT of ours."""
    if not bench.tuning:
        return
    position = root.position_of_key(("tuning",))
    if bench.lab is not None and not bench.lab.plugin.touches_machine:
        yield Problem(position, f"the {bench.lab.kind} lab has no machine to be tuned", "remove `tuning`")
        return
    taking_part = {port.host for port in bench.ports.values()}
    if bench.measures == "rounds":
        tunable = {"all", "dut", "clients", *taking_part}
    else:
        tunable = {"all", "tester", *taking_part}
        tunable |= {"dut"} if bench.lab is not None or len(taking_part) > 1 else set()
    for role in dict.fromkeys(wish.role for wish in bench.tuning):
        if role not in tunable:
            place = root.position_of_key(("tuning", role))
            message = f"nothing of the test is on the host {quote(role)}, so it cannot be tuned"
            yield Problem(place, message, suggest(role, sorted(tunable), "host"))


def _controllers_have_machines(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """In a lab every role is on this machine, which has one controller; real hosts may be called by role or name."""
    known = (
        ({"tester", "dut"} if bench.measures == "frames" else {"dut"})
        | {port.host for port in bench.ports.values()}
        | set(bench.hosts)
    )
    for name in bench.redfish:
        if name not in known:
            message = f"there is no host {quote(name)} that could have a management controller"
            yield Problem(root.position_of_key(("redfish", name)), message, suggest(name, sorted(known), "host"))
    if bench.lab is not None and len(bench.redfish) > 1:
        message = "a lab is made on one machine, and has one management controller"
        yield Problem(root.position_of_key(("redfish",)), message, "name it once, under `tester`")


_Checks = tuple[tuple[str, Callable[[BenchFile, Node], Iterator[Problem]]], ...]
_OF_ALL: Final[_Checks] = (
    ("test names are unique", _test_names_are_unique),
    ("every test that builds on another comes after it", _needed_tests_come_earlier),
    ("every host that is tuned takes part", _what_is_tuned_is_there),
    ("every management controller belongs to a host", _controllers_have_machines),
)
_OF_FRAMES: Final[_Checks] = (
    ("every rate that is referred to is looked for", _rates_exist),
    ("every search exists", _searches_exist),
    ("every header field belongs to a header of its frames", traffic_problems),
    ("every frame holds its signature and fits the links", frame_size_problems),
    ("hosts, ports and links fit together, or a lab makes them", wiring_problems),
    ("there are ports for every way of the traffic, and the DUT has them", pattern_problems),
    ("the tester can do what the tests and the traffic need", tester_problems),
    ("no port lacks the time stamps that are asked for, as far as its kind tells", time_stamp_problems),
)
_OF_ROUNDS: Final[_Checks] = (
    ("hosts, ports and links fit together, or a lab makes them", endpoint_problems),
    ("shares are of a kind that exists", share_problems),
    ("every tool exists and can do what the tests ask of it", workload_problems),
)
_CHECKS: Final[Mapping[Measures, _Checks]] = MappingProxyType(
    {"frames": (*_OF_ALL, *_OF_FRAMES), "rounds": (*_OF_ALL, *_OF_ROUNDS)}
)
