"""Checks of workloads: tools and shares exist, have the options that are given, and can do what is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from pydantic import ValidationError

from nicbench.bench_file.frame_sizes import check_frame_sizes, sizes_of
from nicbench.bench_file.models import BenchFile
from nicbench.bench_file.reader import Node
from nicbench.bench_file.sections import Reading, Step
from nicbench.bench_file.traffic_checks import check_pattern, check_time_stamps, check_traffic
from nicbench.bench_file.wiring import check_endpoints, check_frame_kinds, check_wiring
from nicbench.core.base import why_of
from nicbench.core.errors import Position, Problem, UsageError, quote, suggest
from nicbench.core.frame_size import STREAMS, Mix
from nicbench.core.frozen import frozen
from nicbench.core.registry import find
from nicbench.core.round import JobSpec
from nicbench.core.traffic import Ability, StreamSpec
from nicbench.methods.base import Measures
from nicbench.search.base import Search
from nicbench.testbed.shares.base import ShareKind
from nicbench.testbed.testers.base import TesterKind
from nicbench.workloads.base import Workload


def check_workloads(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields the problems of each tool of each test; of equal messages about one test only the first."""
    kinds = find("nicbench.workloads.tools", Workload)
    for index, test in enumerate(bench.tests):
        reported: set[str] = set()
        for choice, ask in test.build().job_specs():
            position = _position_of_tool(root, index, choice.kind)
            place = _section(root, index, choice.kind)
            if choice.kind in kinds and place is not None:
                reading = Reading(root)
                if reading.validate(kinds[choice.kind].Options, choice.options, place, further_keys=("kind",)) is None:
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


def _position_of_tool(root: Node, index: int, kind: str) -> Position:
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


_HEADER_KEYS: Final = ("vlan", "vxlan", "tunnels", "arrives", "udp_checksum", "raw", "raw_frame")


def check_tester(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields every test, and every part of the traffic, that the tester cannot do."""
    tester, kind = bench.tester_kind(), quote(bench.tester.kind)
    for need in _needs(bench):
        if need.ability in tester.cannot:
            message = f"{need.subject} needs {need.ability.value}, and the tester {kind} cannot: "
            step = f"{need.next_step}, or {_suggest_testers(need.ability, tester)}"
            yield Problem(need.position(root), message + tester.cannot[need.ability], step)


def explain_objection(bench: BenchFile) -> str | None:
    """Why the tester of a configuration, with the driver that it has there, is not what is needed; None where it is."""
    tester = bench.tester_kind()
    for need in _needs(bench):
        if need.ability in tester.cannot:
            needed = f"{need.subject} needs {need.ability.value}, and {tester.cannot[need.ability]}"
            return needed.replace("`", "")
    return None


@frozen
class _Need:
    """Something that a tester must be able to do: for what, where that is written, and what helps in its place."""

    ability: Ability
    subject: str
    next_step: str
    position: Callable[[Node], Position]


def _needs(bench: BenchFile) -> Iterator[_Need]:
    """Yields all that the tests, the traffic and the DUT need of a tester."""
    for index, test in enumerate(bench.tests):
        subject = f"the test {quote(test.name)} ({test.method_kind})"
        for ability in (*sorted(test.build().abilities(), key=list(Ability).index), *_abilities_of_sizes(bench, index)):
            path = ("tests", index, "frame_bytes" if ability in {Ability.MIX, Ability.CARRIED_MIX} else "method")
            yield _Need(ability, subject, "remove the test", partial(Node.position_of, path=path))
    for ability, own, key in _abilities_of_traffic(bench):
        step = "write `learning: {flows: few}`" if ability is Ability.LEARNING else "change the traffic"
        yield _Need(ability, "this traffic", step, partial(_position, own=own, key=key))
    if _needs_neighbours(bench):
        step = f"give the DUT static neighbours in place of {' and '.join(f'`{name}`' for name in _NEIGHBOURS)}"
        at_dut = partial(Node.position_of_key, path=("dut",))
        yield _Need(Ability.NEIGHBOURS, "this DUT", step, at_dut)


def _suggest_testers(ability: Ability, tester: TesterKind) -> str:
    """A next step that names another driver, where that is what the tester lacks, or the testers with this ability."""
    if ability not in type(tester).cannot:
        return f"leave `driver: {tester.driver}` out"
    able = [
        kind for kind, tester in find("nicbench.testbed.testers", TesterKind).items() if ability not in tester.cannot
    ]
    return f"choose a tester that can: {', '.join(f'`tester: {{kind: {kind}}}`' for kind in able)}"


def _abilities_of_sizes(bench: BenchFile, index: int) -> list[Ability]:
    """The abilities that a test's frame sizes need; sizes of several streams are counted with the traffic."""
    needed: dict[Ability, None] = {}
    streams = bench.traffic.port_streams()
    for size in bench.tests[index].build().frame_sizes():
        if size == STREAMS:
            mixed = [each for each in streams if len(sizes_of(each.frame_bytes or 0, bench.traffic)) > 1]
        elif isinstance(size, str) and isinstance(bench.traffic.mix(size), Mix):
            needed[Ability.MIX], mixed = None, list(streams)
        else:
            continue
        if any(stream.vxlan or stream.tunnels or stream.arrives for stream in mixed):
            needed[Ability.CARRIED_MIX] = None
    return list(needed)


def _abilities_of_traffic(bench: BenchFile) -> Iterator[tuple[Ability, tuple[Step, ...], str]]:
    """Yields each with the stream, or the traffic, that needs it, and the key there."""
    traffic = bench.traffic
    if traffic.ip == 6:
        yield Ability.IPV6, ("traffic",), "ip"
    if not traffic.pattern.is_pairs:
        yield Ability.MANY_WAYS, ("traffic",), "pattern"
    if traffic.broadcasts:
        yield Ability.COPIES, ("traffic",), "broadcasts"
    if traffic.streams:
        yield Ability.STREAMS, ("traffic",), "streams"
    if traffic.learning.flows == "all" and traffic.learning.model_fields_set:  # where nothing is said, any will do
        yield Ability.LEARNING, ("traffic",), "learning"
    for index, stream in enumerate(traffic.port_streams()):
        own: tuple[Step, ...] = ("traffic", "streams", index) if traffic.streams else ("traffic",)
        for ability, key in _abilities_of_stream(stream):
            yield ability, own, key


def _abilities_of_stream(stream: StreamSpec) -> Iterator[tuple[Ability, str]]:
    if stream.protocol != "udp":
        yield Ability.HEADERS, "protocol"
    yield from ((Ability.HEADERS, key) for key in _HEADER_KEYS if getattr(stream, key))
    if stream.pcap:
        yield Ability.FILE, "pcap"
    elif not stream.signature:
        yield Ability.FILE, "signature"
    if stream.fields.given_fields():
        yield Ability.FIELDS, "fields"
    yield from ((Ability.STREAM_BURSTS, key) for key in ("burst_frames", "frames") if getattr(stream, key))


_NEIGHBOURS: Final = ("tester", "answer_for_flows", "neighbour_age")
"""Options of DUTs that ask for the tester."""


def _needs_neighbours(bench: BenchFile) -> bool:
    """Whether the DUT asks for its neighbours by ARP or neighbour discovery, which the tester must answer."""
    options = bench.dut.options
    return any(getattr(options, name, None) for name in _NEIGHBOURS)


def _position(root: Node, own: tuple[Step, ...], key: str) -> Position:
    """The position of the key in the stream, or in the traffic that the stream takes its defaults from."""
    has_own = root.child("traffic") is not None and root.find(own).child(key) is not None
    return root.position_of((*own, key) if has_own else ("traffic", key))


def cross_check(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields every problem that shows only when several sections are looked at together."""
    mixed = list(_check_measures(bench, root))
    if not mixed and bench.measures == "frames":
        mixed = list(check_frame_kinds(bench, root))
    yield from mixed
    for _, check in () if mixed else _CHECKS[bench.measures]:
        yield from check(bench, root)


def describe_checks(measures: Measures) -> tuple[str, ...]:
    """One phrase for each check that ``cross_check`` made, for the output of ``nicbench validate``."""
    return tuple(phrase for phrase, _ in _CHECKS[measures])


_MEASURES_IN_WORDS: Final = MappingProxyType(
    {"frames": "with frames of the tester", "rounds": "with workloads between hosts"}
)
# The keys of calibration trials begin with these names (measure/ceiling.py), and so is the stage called.
_RESERVED_NAMES: Final = frozenset({"calibration", "cable", "ceiling"})


def _check_measures(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """All tests of a bench file measure alike: a tester's frames and the tools' bytes would share the links."""
    for index, test in enumerate(bench.tests):
        if test.plugin.measures != bench.measures:
            message = (
                f"the method {quote(test.method_kind)} measures {_MEASURES_IN_WORDS[test.plugin.measures]}, and "
                f"{quote(bench.tests[0].method_kind)} above it {_MEASURES_IN_WORDS[bench.measures]}"
            )
            step = "put them into separate bench files"
            yield Problem(root.position_of(("tests", index, "method")), message, step)


def _check_test_names(bench: BenchFile, root: Node) -> Iterator[Problem]:
    seen = set()
    for index, test in enumerate(bench.tests):
        if test.name in seen:
            position = root.position_of(("tests", index, "name"))
            yield Problem(position, f"there are two tests named {quote(test.name)}", "give each test its own name")
        seen.add(test.name)
        if test.name in _RESERVED_NAMES:
            position = root.position_of(("tests", index, "name"))
            message = f"{quote(test.name)} is reserved for the tester's own trials"
            yield Problem(position, message, "give the test another name")


def _check_test_order(bench: BenchFile, root: Node) -> Iterator[Problem]:
    for index, test in enumerate(bench.tests):
        needed = test.build().needs()
        earlier = {other.name: other for other in bench.tests[:index]}
        if needed is None:
            continue
        position = root.position_of(("tests", index, "at"))
        if needed not in earlier:
            later = any(other.name == needed for other in bench.tests[index:])
            what = "is not above this one" if later else "does not exist"
            step = "move it above this test" if later else _missing_test_step(needed, list(earlier))
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


def _missing_test_step(needed: str, earlier: list[str]) -> str:
    """What to do where a test builds on one that is not there: one of those above it, or a new one."""
    add = f"add a `throughput` test before it: `- {{name: {needed}, method: throughput}}`"
    return f"{suggest(needed, earlier, 'earlier test')} Or {add}" if earlier else add


def _check_rates(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """A test that measures at the rate found by an earlier test names a goal of that test's search."""
    tests = {test.name: test for test in bench.tests}
    for index, test in enumerate(bench.tests):
        wanted: Any = getattr(test.options, "of", None)
        earlier = tests.get(test.build().needs() or "")
        goals: Any = getattr(getattr(earlier and earlier.options, "search", None), "goals", None)
        if isinstance(wanted, str) and goals and wanted not in goals:
            position = root.position_of(("tests", index, "of"))
            message = f"{quote(earlier.name if earlier else None)} finds no rate named {quote(wanted)}"
            yield Problem(position, message, suggest(wanted, list(goals), "rate"))


def _check_searches(bench: BenchFile, root: Node) -> Iterator[Problem]:
    kinds = find("nicbench.search", Search)
    for index, test in enumerate(bench.tests):
        choice: Any = getattr(test.options, "search", None)
        path = ("tests", index, "search")
        if choice is None:
            continue
        if choice.kind not in kinds:
            message = f"unknown search {quote(choice.kind)}"
            yield Problem(root.position_of((*path, "kind")), message, suggest(choice.kind, list(kinds), "kind"))
            continue
        try:
            choice.build()
        except ValidationError as error:
            why = why_of(error.errors()[0])
            yield Problem(root.position_of(path), f"the search cannot be made: {why}", None)


def _check_tuned_hosts(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """A simulated lab has no host to be tuned, and a tester with own ports no DUT host.

    A host without a port may be tuned: it is the hypervisor of a guest, for example.
    """
    if not bench.tuning:
        return
    position = root.position_of_key(("tuning",))
    if bench.lab is not None and not bench.lab.plugin.touches_machine:
        yield Problem(position, f"the {bench.lab.kind} lab has no machine to be tuned", "remove `tuning`")
        return
    taking_part = {port.host for port in bench.ports.values()}
    if bench.measures == "rounds":
        tunable = {"all", "dut", "clients", *bench.hosts}
    else:
        tunable = {"all", "tester", *bench.hosts}
        tunable |= {"dut"} if bench.lab is not None or len(taking_part) > 1 else set()
    for role in dict.fromkeys(wish.role for wish in bench.tuning):
        if role not in tunable:
            place = root.position_of_key(("tuning", role))
            message = f"the host {quote(role)} is not part of the tests, so it cannot be tuned"
            yield Problem(place, message, suggest(role, sorted(tunable), "host"))


def _check_controllers(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """A management controller belongs to a host, by its name or its role; a lab is one machine with one controller."""
    known = (
        ({"tester", "dut"} if bench.measures == "frames" else {"dut"})
        | {port.host for port in bench.ports.values()}
        | set(bench.hosts)
    )
    for name in bench.redfish:
        if name not in known:
            message = f"`redfish` names an unknown host {quote(name)}"
            yield Problem(root.position_of_key(("redfish", name)), message, suggest(name, sorted(known), "host"))
    if bench.lab is not None and len(bench.redfish) > 1:
        message = "a lab is made on one machine, and has one management controller"
        yield Problem(root.position_of_key(("redfish",)), message, "name it once, under `tester`")


def _check_power(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """A lab without a machine has no meters, unless it says what it draws."""
    if bench.lab is None or bench.lab.plugin.touches_machine or bench.lab.options.model_dump().get("power"):
        return
    for number, test in enumerate(bench.tests):
        if test.build().power_wish() is not None:
            message = f"the {bench.lab.kind} lab does not say what its machine draws"
            yield Problem(root.position_of(("tests", number, "method")), message, "write `power: {}` under `lab`")


_Checks = tuple[tuple[str, Callable[[BenchFile, Node], Iterator[Problem]]], ...]
_COMMON_CHECKS: Final = (
    ("test names are unique", _check_test_names),
    ("every test that builds on another comes after it", _check_test_order),
    ("every host that is tuned takes part", _check_tuned_hosts),
    ("every management controller belongs to a host", _check_controllers),
)
_FRAME_CHECKS: Final = (
    ("every rate that a load refers to is one that an earlier test searches for", _check_rates),
    ("nicbench knows every search", _check_searches),
    ("every header field belongs to a header of its frames", check_traffic),
    ("every frame holds its signature and fits the links", check_frame_sizes),
    ("hosts, ports and links fit together, or a lab makes them", check_wiring),
    ("there are ports for every direction of the traffic, and the DUT has them", check_pattern),
    ("the tester can do what the tests and the traffic need", check_tester),
    ("every port can take the time stamps that the tests ask for, as far as its kind tells", check_time_stamps),
    ("a simulated machine has a power meter where a test asks for one", _check_power),
)
_ROUND_CHECKS: Final = (
    ("hosts, ports and links fit together, or a lab makes them", check_endpoints),
    ("nicbench knows the kind of every share", check_shares),
    ("nicbench knows every tool, and each can do what the tests ask of it", check_workloads),
)
_CHECKS: Final = MappingProxyType(
    {"frames": (*_COMMON_CHECKS, *_FRAME_CHECKS), "rounds": (*_COMMON_CHECKS, *_ROUND_CHECKS)}
)
