"""A method: one way of measuring, one file. A method uses the context, search, stats and units, but no host or engine.

There are two families: of frames, which a tester sends and counts, and of rounds, in which tools move bytes.
"""

from __future__ import annotations

import functools
import json
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, Protocol

from nicbench.core.base import Frozen, WorkloadChoice
from nicbench.core.described import DescribedPlugin
from nicbench.core.frame_size import Size, label_of
from nicbench.core.machine import NumaNode, PowerFacts, PowerWish
from nicbench.core.pattern import Pattern
from nicbench.core.registry import find
from nicbench.core.result import Bounded, Result, Value
from nicbench.core.round import EndpointFacts, JobSpec, Mount, Preparation, Round, RoundRequest
from nicbench.core.table import Column, ImportTable, ResultTable
from nicbench.core.traffic import Ability
from nicbench.core.trial import Latency, Trial, TrialRequest
from nicbench.core.units import format_digits
from nicbench.search.base import Ended, Goal, Limits, Outcome, Search
from nicbench.stats.sample import Series

# The parameters of a result as the beginning of a sentence: "with 64-byte frames at 50 % of the PDR".


_TOLD: Final = frozenset({"part", "run", "frame_bytes", "mix", "size", "load_percent", "load_of"})
"""Parameters that are worded separately, or that only tell results of several kinds apart."""


def describe_circumstances(parameters: Mapping[str, Any]) -> str:
    """Describes the circumstances in the order frames, load, the rest by name; "" without circumstances."""
    said = [text for text in (_describe_frames(parameters), _describe_load(parameters)) if text]
    rest = [_words_of(name, value) for name, value in parameters.items() if name not in _TOLD and value is not None]
    return ", ".join((*([" ".join(said)] if said else []), *rest))


def _describe_frames(parameters: Mapping[str, Any]) -> str:
    label = label_of(dict(parameters))
    if label is None:
        return ""
    return f"with {label}-byte frames" if label.replace(".", "").isdigit() else f"with {label} frames"


def _describe_load(parameters: Mapping[str, Any]) -> str:
    percent, of = parameters.get("load_percent"), parameters.get("load_of")
    if not isinstance(percent, int | float):
        return ""
    article = "" if str(of)[:1].isdigit() else "the "
    return f"at {percent:g} % of {article}{of}" if of else f"at a load of {percent:g} %"


def _words_of(name: str, value: Any) -> str:
    if name == "mode":
        return str(value)
    if name == "ports":
        return f"{value} {'port' if value == 1 else 'ports'}"
    words = name.removesuffix("_percent").replace("_", " ")
    told = format_digits(value, 6) if isinstance(value, float) else _text_of(value)
    return f"{words} {told}{' %' if name.endswith('_percent') else ''}"


def _text_of(value: Any) -> str:
    """Returns a value as text: lists and mappings, which only results of others have, as JSON."""
    return str(value) if isinstance(value, str | int) else json.dumps(value, default=str)


_OF_THIS_PROJECT = re.compile(r"(?<=\?) \(methods\.md [^)]*\)\.| \(methods\.md [^)]*\)|, search/\w+\.py")
"""Matches references in a docstring to notes that a reader of a report does not have."""

Measures = Literal["frames", "rounds"]
"""How a method measures: by frames that a tester sends, or by rounds of workloads (tools) between hosts."""
Values = dict[str, Value]
"""The values of a result, by names that carry their unit."""


GiveWay = Callable[[], Awaitable[None]]
"""Lets every other part of a test have its turn."""


class SearchResult(Frozen):
    """The outcomes of a search by goal, its cost, and the highest load that the tester sent."""

    outcomes: dict[str, Outcome]
    trial_ids: tuple[str, ...]
    traffic_s: float
    took_s: float
    most_sent_frames_per_s: float
    sent_share: float = 1.0
    """The share that the tester sent of any load; loads are those that were sent."""

    @property
    def is_stopped(self) -> bool:
        """Whether the run was interrupted."""
        return any(outcome.ended is Ended.STOPPED for outcome in self.outcomes.values())


class Promise(Frozen):
    """A promise for every later trial: up to this load at most this share of the offered frames is lost. ``name`` is
    that of the goal, ``value`` that of the rate among the result's values.
    """

    name: str
    value: str
    load_frames_per_s: float
    loss_ratio: float


class Objection(Frozen):
    """What the machines lack for a method, and how to fix it."""

    message: str
    next_step: str


class Misfit(Objection):
    """An option of a test that does not fit other parts of the bench file; ``option`` is its path."""

    option: tuple[str | int, ...]


class AnyContext(Protocol):
    """What every method may use. The context judges, repeats where needed, and journals every trial or round."""

    seed: int

    def results_of(self, test: str) -> tuple[Result, ...]:
        """Returns the results of an earlier test of this bench file (latency at the throughput)."""

    def publish(self, result: Result) -> None:
        """Publishes a complete result."""


class Context(AnyContext, Protocol):
    """What a method of frames may use: trials, and searches that consist of trials."""

    bidirectional: bool
    """Whether the traffic goes both ways at once."""
    ports: int
    """The number of the tester's ports that take part in the test."""
    pattern: Pattern
    """Which of the ports sends to which."""
    ip: int
    """The IP version of the traffic."""
    streams: tuple[str, ...]
    """The names of the streams of a port."""
    sending_ports: int
    """How many ports' line rates all streams fill together: 2 for both directions, 1 for many ports to one."""
    most_line_rates: float
    """The highest load, in line rates of a port: above 1 where several send to one."""
    dut_links: tuple[str, ...]
    """The names of the DUT's ports whose links a test may take down."""
    power: PowerFacts
    """The meters that say what the machines draw; none where no test asks for them (``Method.power_wish``)."""

    def sizes(self, written: Iterable[int | str]) -> tuple[Size, ...]:
        """Returns the frame sizes of a test's options, with mixes in place of their names."""

    def line_rate_frames_per_s(self, size: Size) -> float:
        """Returns the line rate per port; for a mix, by its mean size."""

    def known_rate_frames_per_s(self, trial_s: float) -> float | None:
        """Returns the highest load of each way that the DUT is known to pass in ``trial_s``; None: unknown."""

    async def ceiling_frames_per_s(self, size: Size) -> float | None:
        """Returns the tester's ceiling per port at this frame size, calibrated without a DUT; None where unknown."""

    async def measure(self, point: dict[str, Any], request: TrialRequest) -> tuple[Trial, bool]:
        """Makes one judged trial (repeated where invalid), and says whether it had to be used although disturbed."""

    async def tester_latency(self, size: Size) -> Latency | None:
        """Returns the tester's own latency at a low load without a DUT; None where it cannot be measured."""

    async def search(
        self,
        search: Search,
        point: dict[str, Any],
        request: TrialRequest,
        goals: tuple[Goal, ...],
        limits: Limits,
        give_way: GiveWay | None = None,
    ) -> SearchResult:
        """Runs a search in which every measurement is a trial like ``request`` with another load and duration; after
        each it gives way to the other parts of the test.
        """


class RoundContext(AnyContext, Protocol):
    """What a method of workloads may use: rounds, and preparations for them."""

    servers: tuple[EndpointFacts, ...]
    """The ports of the measured host."""
    clients: tuple[EndpointFacts, ...]
    """The ports of the other hosts; each is connected to one of the servers."""
    nodes: tuple[NumaNode, ...]
    """The NUMA nodes of the measured machine; empty where its kernel does not report them."""
    mounts: tuple[Mount, ...]
    """The mounts of the shares of a DUT that serves files, in the order of their numbers; empty for other DUTs."""
    own_folder: str
    """The name of a folder that no other run uses."""

    def prepare(self, preparation: Preparation) -> None:
        """Requests a preparation before the next round that is not in a journal already. If it fails, the run ends."""

    async def steer_interrupts(self, endpoint: str, cpus: tuple[int, ...] | None) -> None:
        """Assigns the interrupts of a port's queues to these CPUs; None restores the original assignment."""

    async def play(self, point: dict[str, Any], request: RoundRequest) -> tuple[Round, bool]:
        """Plays one judged round (repeated where invalid), and says whether it had to be used although wrong."""

    async def make_file(self, endpoint: str, folder: str, purpose: str, size_bytes: int, *, filled: bool) -> str:
        """Makes a file on this host, ``filled`` with its bytes or with room for them, and returns its path."""

    async def remove_file(self, endpoint: str, path: str) -> None:
        """Removes a file that ``make_file`` made; otherwise it is removed at the end of the run."""


FRAME = Column("size", "Frame", unit="bytes", form="text")
PORT = Column("port", "Port", form="text")
TRIALS = Column("trials", "Trials", form="whole")


class Method(DescribedPlugin, ABC):
    """Base of all methods; its subclasses are ``FrameMethod`` and ``RoundMethod``."""

    kind: ClassVar[str]
    question: ClassVar[str] = ""
    """The question that the method answers, with ``{subject}`` for what is measured; a report begins with it."""
    steps: ClassVar[str] = ""
    """Standard, steps, and what is verified; empty for a method whose module's docstring says it."""
    Options: ClassVar[type[Frozen]]
    measures: ClassVar[Measures]
    times_one_way: ClassVar[bool] = False
    """Whether its latencies are one-way, from time stamps in the frames themselves."""
    of_sessions: ClassVar[bool] = False
    """Whether `nicbench serve` makes its results; a bench file cannot ask for it."""
    sees_faults: ClassVar[bool] = False
    """Whether its values show what a DUT with known faults does to frames."""
    gives_points: bool = False
    """Whether it gives at most one result for each of its ``points``."""

    def __init__(self, name: str, options: Frozen) -> None:
        self.name = name
        self.options = options

    @abstractmethod
    def points(self) -> int:
        """Returns the number of measurement points, for progress."""

    @abstractmethod
    def estimate_s(self) -> float:
        """Returns an upper estimate of the time in seconds, repeats excluded."""

    def expected_s(self) -> float:
        """Returns the time that it usually takes in seconds, from which the time left is computed."""
        return self.estimate_s()

    async def run(self, context: Any) -> tuple[Result, ...]:
        """Measures all results, publishes each at once, and returns them."""
        results = []
        async for result in self.results(context):
            context.publish(result)
            results.append(result)
        return tuple(results)

    def results(self, context: Any) -> AsyncIterator[Result]:
        """Yields each result once it has been measured."""
        raise NotImplementedError

    def needs(self) -> str | None:
        """Returns the name of the earlier test whose results it needs, if any."""
        return None

    def deviations(self) -> tuple[str, ...]:
        """Returns where its options fall short of the RFC it follows, in words for the report."""
        return ()

    def objection(self, context: Any) -> Objection | None:
        """Returns why this testbed does not suit the method; every test is asked before the first begins."""
        return None

    def promises(self, result: Result) -> tuple[Promise, ...]:
        """Returns what a result promises for later trials, which contradict it where they lose more."""
        return ()

    @classmethod
    def lab_options(cls, options: Frozen) -> Frozen:
        """Returns the options with the defaults of a lab that nicbench sets up, where these differ."""
        return options

    @classmethod
    def question_of(cls, options: Mapping[str, Any]) -> str:
        """Returns the question that a test with these options answers, with ``{subject}`` as in ``question``."""
        return cls.question

    @classmethod
    def procedure(cls, options: Mapping[str, Any] | None = None) -> str:
        """Returns steps, standard, and what is verified, adapted to ``options``."""
        words = " ".join((cls.steps or sys.modules[cls.__module__].__doc__ or "").split())
        return _OF_THIS_PROJECT.sub("", words).replace("``", "")

    @classmethod
    def check(cls) -> None:
        """Builds the method's tables, so that a column with a wrong unit stops start-up, not the report of a run."""
        cls.tables()
        cls.imports()

    @classmethod
    def table(cls) -> ResultTable | None:
        """Returns the method's section of the report, and its table at the end of a run."""
        return None

    @classmethod
    def tables(cls) -> tuple[ResultTable, ...]:
        """Returns the method's sections; where there are several, each table names its ``part``."""
        table = cls.table()
        return () if table is None else (table,)

    @classmethod
    def table_values(cls, result: Result, trials: Mapping[str, Trial]) -> Values:
        """Returns values for the tables in addition to those of a result; ``trials`` are those of the run, by id."""
        return {}

    @classmethod
    def table_for(cls, table: ResultTable, results: Sequence[Result], options: Mapping[str, Any]) -> ResultTable:
        """Returns the table adapted to these results, whose ``options`` are those of their test."""
        return table

    @classmethod
    def options_of_import(cls, goals: Mapping[str, float]) -> dict[str, Any]:
        """Returns the options of an imported test, as far as its source gives them: the loss ratios of ``goals``."""
        return {}

    @classmethod
    def imports(cls) -> ImportTable | None:
        """Returns the columns of results that the method can import; None where there is nothing to import."""
        return None

    @classmethod
    def from_import(cls, parameters: dict[str, Any], values: Values) -> tuple[dict[str, Any], Values]:
        """Returns parameters and values of an imported row, with additions that follow from several columns."""
        return parameters, values

    @classmethod
    def main_values(cls, result: Result) -> tuple[str, ...]:
        """Returns the names of the values that decide how often runs are repeated (``runs: {until: 5 %}``): the bold
        ones of the table, in rows that sum up others where there are such, or else the first number of the result.
        """
        part = result.parameters.get("part")
        table = next((cls.table_for(one, (result,), {}) for one in tables_of(cls) if one.part == part), None)
        if table is not None and table.sums is not None:
            column, word = table.sums
            if word not in (result.values.get(column), result.parameters.get(column)):
                return ()
        bold = tuple(dict.fromkeys(column.value for column in table.columns if column.is_main)) if table else ()
        numbers = (name for name, value in result.values.items() if isinstance(value, Bounded | int | float))
        return bold or tuple(numbers)[:1]

    @classmethod
    def column_of(cls, result: Result, name: str) -> Column | None:
        """Returns the column of a value: its format, and which way it is better; None where no table has it."""
        tables = sorted(tables_of(cls), key=lambda table: table.part != result.parameters.get("part"))
        every = (column for table in tables for column in cls.table_for(table, (result,), {}).columns)
        column = next((column for column in every if column.value == name), None)
        return column if column is None or column.name is None else column.replace(head=column.name)

    @classmethod
    def describe_circumstances(cls, parameters: Mapping[str, Any]) -> str:
        """Describes the circumstances of a result for the start of a sentence: "with 64-byte frames"; "" for none."""
        return describe_circumstances(parameters)

    @classmethod
    def series_within_run(cls, results: tuple[Result, ...]) -> tuple[Series, ...]:
        """Returns values in the order of time within a run, to detect drift, where the method measures in intervals."""
        return ()

    @classmethod
    def add_run_results(cls, results: tuple[Result, ...]) -> tuple[Result, ...]:
        """Returns the results with additions that combine several of them, such as the sum over a run's instances."""
        return results

    @classmethod
    def restate_values(cls, values: Values) -> Values:
        """Returns the values of a result over several runs, with texts rebuilt from the medians of their numbers."""
        return values

    @classmethod
    def select_for_terminal(cls, results: tuple[Result, ...]) -> tuple[Result, ...]:
        """Returns the results of one section that the terminal shows; the report shows all of them."""
        return results

    def frame_sizes(self) -> tuple[int | str, ...]:
        """Returns every frame size, or name of a mix, to be sent, so that validation can refuse what cannot be sent."""
        return ()

    def power_wish(self) -> PowerWish | None:
        """Returns by which meters its trials read what the machines draw, which are then found before the run."""
        return None

    def abilities(self) -> frozenset[Ability]:
        """Returns what the method needs of the tester beyond frames sent at a load and counted."""
        return frozenset()


@functools.cache
def tables_of(method: type[Method]) -> tuple[ResultTable, ...]:
    """Returns the sections of a method, which are those of every result of it."""
    return method.tables()


class FrameMethod(Method):
    """Base of methods that send frames by a tester. Subclasses define ``kind``, frozen ``Options`` and ``results``."""

    measures = "frames"
    gives_points = True
    needs_ceiling: ClassVar[bool] = True
    needs_tester_latency: ClassVar[bool] = False
    """Whether the tester's ceiling, and its own latency, are measured at its frame sizes before the first test."""
    chooses_ways: ClassVar[bool] = False
    """Whether its trials load other ways than all of the pattern alike."""
    takes_broadcasts: ClassVar[bool] = False
    """Whether a share of its load may be broadcasts (``Traffic.broadcasts``)."""

    def frame_sizes(self) -> tuple[int | str, ...]:
        """Returns the option ``frame_bytes``; a method without it says what it sends."""
        return tuple(self.options.frame_bytes)  # type: ignore[attr-defined]

    def points(self) -> int:
        return len(self.frame_sizes())

    def estimate_s(self) -> float:
        """Returns the time of one trial at each point, by the option ``trial``."""
        return float(self.options.trial.estimate_s(self.points()))  # type: ignore[attr-defined]

    async def results(self, context: Context) -> AsyncIterator[Result]:
        """Measures each frame size; a method with another order has its own."""
        for size in context.sizes(self.frame_sizes()):
            yield await self.measure_size(context, size)

    async def measure_size(self, context: Context, size: Size) -> Result:
        """Returns the result at one frame size."""
        raise NotImplementedError

    @classmethod
    def check(cls) -> None:
        super().check()
        if (cls.run, cls.results, cls.measure_size) == (Method.run, FrameMethod.results, FrameMethod.measure_size):
            raise ValueError("it has neither `measure_size` nor `results`")

    def find_stream_misfits(self, streams: Sequence[str]) -> Iterator[Misfit]:
        """Yields a misfit for each option that names a stream which is not among those of the traffic."""
        yield from ()


class RoundMethod(Method):
    """Base of methods that play rounds of workloads. Subclasses define ``kind``, frozen ``Options`` and ``results``."""

    measures = "rounds"
    through_dut: ClassVar[bool] = False
    """Whether clients talk to each other, through a DUT that forwards between its ports."""
    runs_servers: ClassVar[bool] = True
    """Whether its tools have processes on the measured host, which can be placed on its CPUs."""
    fewest_ports: ClassVar[int] = 1
    """The number of ports of the measured host that the method needs."""
    planned_ports: int = 4
    planned_clients: tuple[int, ...] = ()
    """The number of ports of the measured host, and of the clients of each, for plans; a bench file sets its own."""

    @abstractmethod
    def job_specs(self) -> tuple[tuple[WorkloadChoice, JobSpec], ...]:
        """Returns one example of each kind of job with its workload, so that validation refuses what a tool cannot."""

    def not_measured(self) -> tuple[str, ...]:
        """Returns what a run will leave out of what is asked, and why, as far as the bench file tells."""
        return ()

    def clients_at_once(self, clients: int) -> int:
        """Returns the maximum number of a port's clients that run at once; one that runs twice counts as two."""
        return clients

    def find_misfits(self, clients: Mapping[str, Sequence[str]], hosts: Sequence[str]) -> Iterator[Misfit]:
        """Yields unknown hosts, and demands that no port meets. ``clients``: of each port of the measured host."""
        yield from ()

    def find_bond_misfits(self, links: Mapping[str, int | None]) -> Iterator[Misfit]:
        """Yields links of bonds that do not exist. ``links``: how many a port's bond has; None: no bond of ours."""
        yield from ()

    def share_count(self) -> int:
        """Returns the number of shares that the method needs of a DUT that serves files."""
        return 0


def main_values(result: Result) -> tuple[str, ...]:
    """Returns the main values of a result according to its method; empty for an unknown method."""
    method = find("nicbench.methods", Method).get(result.method)
    return () if method is None else method.main_values(result)
