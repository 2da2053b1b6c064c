"""What `validate` lets pass asks for something: each test of it has at least one trial or round.

Examples that need no hardware are changed at random, by a seed: a key is dropped, a number is another one, two values
change places, a list has one item or one of them twice, an option of another example is added. Each is refused with a
place and a reason, or the methods of each of its tests are run in a dry context, which ends them at the first trial or
round for which they ask.
"""

from __future__ import annotations

import copy
import io
import random
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from nicbench.bench_file import BenchFile, WrongBenchFileError, parse
from nicbench.cli.plan_table import plan_document
from nicbench.core.frame_size import Size, size_parameters
from nicbench.core.machine import NumaNode, PowerFacts
from nicbench.core.pattern import Pattern
from nicbench.core.result import Bounded, Result
from nicbench.core.round import EndpointFacts, Mount
from nicbench.core.units import line_rate_frames_per_s
from nicbench.stages.hosts import Presence

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
NUMBERS = (0, 1, 2, 3, 7, 64, 100, 1000, 65_536, -1, 0.5, 1e-9, 1e9)
LINK_BITS_PER_S = 1e9


class AskedError(Exception):
    """A method has asked for a trial or a round: that is all that is to be known."""


class DryContext:
    """Answers what is known before a run; the first sample for which it is asked ends the method."""

    def __init__(self, bench: BenchFile) -> None:
        self._bench = bench
        self.seed = bench.seed
        self.published: list[Result] = []

    def results_of(self, test: str) -> tuple[Result, ...]:
        spec = next(each for each in self._bench.tests if each.name == test)
        goals = spec.options.model_dump().get("search", {}).get("goals", {})
        rate = Bounded(value=1e4, lower=1e4, upper=None)
        values = {f"{goal.lower()}_frames_per_s": rate for goal in (*goals, "ndr", "pdr", "maximum_forwarding")}
        return tuple(
            Result(id=test, method=spec.method_kind, parameters=size_parameters(size), values=values)
            for size in self.sizes(spec.build().frame_sizes())
        )

    def sizes(self, written: Iterable[int | str]) -> tuple[Size, ...]:
        """Of frames: the mixes in place of their names."""
        named = ((one, self._bench.traffic.mix(one)) if isinstance(one, str) else (one, one) for one in written)
        return tuple(size for _, size in named if size is not None)

    def publish(self, result: Result) -> None:
        self.published.append(result)

    async def _ask(self, *_: Any, **__: Any) -> Any:
        raise AskedError

    async def _nothing(self, *_: Any, **__: Any) -> None:
        """There is nothing to do, or nothing is known."""


class DryFrames(DryContext):
    """Between ports of 1 Gb/s."""

    def __init__(self, bench: BenchFile) -> None:
        super().__init__(bench)
        self.pattern, self.ip = bench.traffic.pattern, bench.traffic.ip
        self.ports, self.sending_ports = 2, 1
        self.bidirectional = False
        self.power = PowerFacts()
        self.streams = tuple(stream.name for stream in bench.traffic.port_streams())
        self.most_line_rates = 2.0 if self.pattern is not Pattern.ONE_TO_ONE else 1.0

    def line_rate_frames_per_s(self, size: Size) -> float:
        return line_rate_frames_per_s(LINK_BITS_PER_S, size if isinstance(size, int) else size.frame_bytes)

    def known_rate_frames_per_s(self, trial_s: float) -> float | None:
        return 1e4

    ceiling_frames_per_s = tester_latency = DryContext._nothing
    measure = search = DryContext._ask


class DryRounds(DryContext):
    """The ports of the bench file's lab, on cards of which nothing is known, in a machine of two nodes."""

    nodes: tuple[NumaNode, ...] = ()
    own_folder = "nicbench-dry"

    def __init__(self, bench: BenchFile) -> None:
        super().__init__(bench)
        lab = bench.lab.plugin(bench.lab.options)
        of_ports = lab.clients_of_ports()
        self.servers = tuple(_end(port, lab.measured_host, None) for port in of_ports)
        self.clients = tuple(_end(name, name, port) for port, names in of_ports.items() for name in names)
        shares = int(bench.dut.options.model_dump().get("shares") or 0) if bench.dut.plugin.has_shares else 0
        self.mounts = tuple(_mount(number, self.clients[number % len(self.clients)]) for number in range(shares))

    def prepare(self, preparation: Any) -> None:
        """Nothing is prepared."""

    async def make_file(self, *_: Any, **__: Any) -> str:
        return "/dry"

    steer_interrupts = remove_file = DryContext._nothing
    play = DryContext._ask


def _end(name: str, host: str, port: str | None) -> EndpointFacts:
    return EndpointFacts(name=name, host=host, machine="lab", address="198.18.0.1", port=port, link_bits_per_s=1e9)


def _mount(number: int, client: EndpointFacts) -> Mount:
    return Mount(
        share=number + 1, kind="sftp", endpoint=client.name, directory="/dry", server_port=str(client.port),
        address="198.18.0.1", tcp_port=22, survives_restart=True,
    )  # fmt: skip


async def find_empty_tests(bench: BenchFile) -> list[str]:
    """Names of tests that end without a trial or a round, though there was no objection to them."""
    found = []
    for each in bench.configurations:
        context = DryFrames(each) if each.measures == "frames" else DryRounds(each)
        for test in each.tests:
            method = test.build()
            assert method.points() > 0
            assert method.estimate_s() > 0.0
            if method.objection(context) is not None:
                continue  # told before the first test, with its reason
            try:
                results = await method.run(context)
            except AskedError:
                continue
            if not results:  # a result without a trial gives its reason in place of a value
                found.append(f"{each.configuration}: {test.name}")
    return found


def mutate(text: str, chance: random.Random) -> str:
    """One to three changes."""
    yaml = YAML(typ="safe", pure=True)
    tree = yaml.load(text)
    for _ in range(chance.randint(1, 3)):
        places = list(_places(tree))
        holder, key = chance.choice(places)
        value = holder[key]
        other, other_key = chance.choice(places)
        match chance.choice(("drop", "number", "swap", "one", "twice", "borrow")):
            case "drop" if isinstance(holder, dict) or len(holder) > 1:
                del holder[key]
            case "number" if isinstance(value, int | float | str):
                holder[key] = chance.choice(NUMBERS) if not isinstance(value, str) else _change(value, chance)
            case "swap" if isinstance(value, str | int | float) and isinstance(other[other_key], str | int | float):
                holder[key], other[other_key] = other[other_key], value
            case "one" if isinstance(value, list) and value:
                holder[key] = [chance.choice(value)]
            case "twice" if isinstance(value, list) and value:
                value.append(value[0])
            case "borrow":
                _borrow(tree, chance)
    written = io.StringIO()
    yaml.dump(tree, written)
    return written.getvalue()


@cache
def _options() -> tuple[tuple[Any, Any, Any], ...]:
    """Of every example: kind of a lab or method of a test, the name of an option that it is given, and its value."""
    found = []
    for path in EXAMPLES:
        example = YAML(typ="safe", pure=True).load(path.read_text())
        for giver in (example.get("lab"), *example["tests"]):
            if isinstance(giver, dict):
                found += [(giver.get("method", giver.get("kind")), key, value) for key, value in giver.items()]
    return tuple(found)


def _borrow(tree: Any, chance: random.Random) -> None:
    """Gives a test or the lab an option that another example gives to its kind."""
    tests = tree.get("tests")
    wanted = [tree.get("lab"), *(tests if isinstance(tests, list) else [])]
    taker = chance.choice([each for each in wanted if isinstance(each, dict)] or [{}])
    kind = taker.get("method", taker.get("kind"))
    offered = [option for giver, *option in _options() if giver == kind]
    if offered:
        key, value = chance.choice(offered)
        taker[key] = copy.deepcopy(value)


def _change(value: str, chance: random.Random) -> str:
    """A quantity gets another number, its unit stays; other text stays."""
    number, space, unit = value.partition(" ")
    return f"{chance.choice(NUMBERS):g}{space}{unit}" if number.replace(".", "").isdigit() else value


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    keys = list(tree) if isinstance(tree, dict) else list(range(len(tree))) if isinstance(tree, list) else []
    for key in keys:
        yield tree, key
        yield from _places(tree[key])


async def _keep_promises(path: Path, text: str) -> bool:
    """Whether it is valid, and then all that it promises is there."""
    try:
        bench = parse(text.encode(), path)
    except WrongBenchFileError:
        return False  # with places and reasons: test_fuzz.py
    if bench.lab is None:
        return False  # a change away from the lab: its machines are not known here
    plan_document(bench, Presence())
    assert await find_empty_tests(bench) == [], text
    return True


WITHOUT_HARDWARE = [path for path in EXAMPLES if "\nlab:" in path.read_text()]


@pytest.mark.parametrize("path", WITHOUT_HARDWARE, ids=lambda path: path.stem)
async def test_each_example_keeps_its_promises(path: Path) -> None:
    assert await _keep_promises(path, path.read_text())


ONE_PORT = """\
nicbench: 1
title: One port
lab: {kind: clients, ports: 1}
dut: {kind: server}
tests:
  - {name: streams, method: stream, at_once: AT_ONCE, duration: 1 s}
"""


@pytest.mark.parametrize(("at_once", "is_valid"), [("[all]", False), ("[port]", True), ("[port, all]", True)])
async def test_all_ports_at_once_are_two_or_more(at_once: str, is_valid: bool) -> None:
    text = ONE_PORT.replace("AT_ONCE", at_once)
    assert await _keep_promises(Path("b.yaml"), text) is is_valid
    assert await _keep_promises(Path("b.yaml"), text.replace("ports: 1", "ports: 2"))


async def _check(seeds: Iterable[int]) -> None:
    valid = 0
    for seed in seeds:
        chance = random.Random(seed)
        path = chance.choice(WITHOUT_HARDWARE)
        valid += await _keep_promises(path, mutate(path.read_text(), chance))
    assert valid  # or the changes are too rough to say anything


async def test_a_changed_example_is_refused_or_keeps_its_promises() -> None:
    await _check(range(30))


@pytest.mark.acceptance
async def test_many_changed_examples_are_refused_or_keep_their_promises() -> None:
    await _check(range(30, 530))
