"""A method: one way of measuring, one file. It sees a context, search, stats and units; no host, no engine.

There are two families: methods of frames, which a tester sends and counts, and methods of rounds, in which tools that
people trust move bytes between hosts.
"""

from __future__ import annotations

import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol

from nicbench.core.base import Frozen, WorkloadChoice
from nicbench.core.cpus import NumaNode
from nicbench.core.described import DescribedPlugin
from nicbench.core.endpoint import EndpointFacts, Mount
from nicbench.core.frame_size import Size
from nicbench.core.pattern import Pattern
from nicbench.core.registry import find, find_one
from nicbench.core.result import Bounded, Result, Value
from nicbench.core.round import JobSpec, Preparation, Round, RoundRequest
from nicbench.core.table import Column, ImportTable, ResultTable
from nicbench.core.traffic import Ability
from nicbench.core.trial import Latency, Trial, TrialRequest
from nicbench.methods._circumstances import describe_circumstances
from nicbench.search.base import Goal, Limits, Outcome, Search
from nicbench.stats.sample import Series

_OF_THIS_PROJECT = re.compile(r"(?<=\?) \(methods\.md [^)]*\)\.| \(methods\.md [^)]*\)|, search/\w+\.py")
"""Where a docstring points to notes that a reader of a report does not have."""

Measures = Literal["frames", "rounds"]
"""By frames that a tester sends, or by rounds of workloads (tools) between hosts."""
Values = dict[str, Value]
"""Of a result, by names that carry their unit."""


class SearchResult(Frozen):
    """What a search of the context came to: one outcome per goal, and what it cost.

    ``ceiling_frames_per_s`` is the least that the tester turned out to send; None where it never fell short.
    """

    outcomes: dict[str, Outcome]
    trial_ids: tuple[str, ...]
    traffic_s: float
    ceiling_frames_per_s: float | None = None


class Promise(Frozen):
    """What a result says of every later trial: up to this load at most this share of the offered frames is lost.

    ``name`` is that of the goal, ``value`` that of the rate among the result's values.
    """

    name: str
    value: str
    load_frames_per_s: float
    loss_ratio: float


class Objection(Frozen):
    """What the machines lack for a method, and what to do."""

    message: str
    next_step: str


class Misfit(Objection):
    """What of a test's options does not go with the hosts and ports of the bench file; ``option`` is its path."""

    option: tuple[str, ...]


class AnyContext(Protocol):
    """What every method may use. Behind it every trial or round is judged, repeated where needed, and journaled."""

    seed: int

    def results_of(self, test: str) -> tuple[Result, ...]:
        """Results of an earlier test of this bench file (latency at the throughput)."""

    def publish(self, result: Result) -> None:
        """Makes a result known as soon as it is complete."""


class Context(AnyContext, Protocol):
    """What a method of frames may use: trials, and searches that are made of them."""

    bidirectional: bool
    """Whether the traffic goes both ways at once."""
    ports: int
    """How many of the tester's ports take part in it."""
    pattern: Pattern
    """Which of them sends to which."""
    most_line_rates: float
    """The highest load that can be offered, in line rates of a port: above 1 where several send to one."""

    def sizes(self, written: Iterable[int | str]) -> tuple[Size, ...]:
        """The frame sizes of a test's options, with mixes in place of their names."""

    def line_rate_frames_per_s(self, size: Size) -> float:
        """Per port; of a mix by its mean size."""

    def known_rate_frames_per_s(self, trial_s: float) -> float | None:
        """The highest load of each way that the DUT passes without loss in a trial of so long; None where not known."""

    async def ceiling_frames_per_s(self, size: Size) -> float | None:
        """The tester's own ceiling per port at this frame size, calibrated without a DUT; None where unknown."""

    async def measure(self, point: dict[str, Any], request: TrialRequest) -> tuple[Trial, bool]:
        """One judged trial (repeated where invalid), and whether it had to be used although disturbed."""

    async def tester_latency(self, size: Size) -> Latency | None:
        """The tester's own latency at a low load without a DUT; None where it cannot be had."""

    async def search(
        self, search: Search, point: dict[str, Any], request: TrialRequest, goals: tuple[Goal, ...], limits: Limits
    ) -> SearchResult:
        """Runs a search whose every measurement is a trial like ``request`` at another load and duration."""


class RoundContext(AnyContext, Protocol):
    """What a method of workloads may use: rounds, and what has to be made ready for them."""

    servers: tuple[EndpointFacts, ...]
    """The ports of the host that is measured."""
    clients: tuple[EndpointFacts, ...]
    """The ports of the others; each leads to one of the servers."""
    nodes: tuple[NumaNode, ...]
    """NUMA nodes of the machine that is measured; none where its kernel does not tell."""
    mounts: tuple[Mount, ...]
    """Shares of a DUT that serves files, each on a client, in the order of their numbers; of other DUTs none."""
    own_folder: str
    """The name of a folder that no other run has."""

    def prepare(self, preparation: Preparation) -> None:
        """Made before the next round that is really played: not where all of them are in the journal of a resumed run.

        The run ends where it cannot be made.
        """

    async def steer_interrupts(self, endpoint: str, cpus: tuple[int, ...] | None) -> None:
        """Gives the interrupts of a port's queues to these CPUs; None: to those that had them before."""

    async def play(self, point: dict[str, Any], request: RoundRequest) -> tuple[Round, bool]:
        """One judged round (repeated where invalid), and whether it had to be used although something was wrong."""

    async def make_file(self, endpoint: str, folder: str, purpose: str, size_bytes: int, *, filled: bool) -> str:
        """The path of a file on this endpoint's host, ``filled`` with so many bytes or with room for them."""

    async def remove_file(self, endpoint: str, path: str) -> None:
        """Removes a file that ``make_file`` made; at the end of the run that is done anyway."""


class Method(DescribedPlugin, ABC):
    """What all methods have: subclasses are a ``FrameMethod`` or a ``RoundMethod``."""

    kind: ClassVar[str]
    question: ClassVar[str] = ""
    """What it answers, with ``{subject}`` for what is measured; a report begins with it."""
    Options: ClassVar[type[Frozen]]
    measures: ClassVar[Measures]
    times_one_way: ClassVar[bool] = False
    """Whether its latencies are one way, of frames that bear the time at which they were sent."""
    sees_faults: ClassVar[bool] = False
    """Whether its values are what a DUT with known faults does to frames, so that both can stand side by side."""

    def __init__(self, name: str, options: Frozen) -> None:
        self.name = name
        self.options = options

    @abstractmethod
    def points(self) -> int:
        """How many measurement points there are, for progress."""

    @abstractmethod
    def estimate_s(self) -> float:
        """Upper estimate of the time in seconds, repeats excluded."""

    def needs(self) -> str | None:
        """The name of the earlier test whose results it works on, if any."""
        return None

    @property
    def adjusts(self) -> bool:
        """Whether it makes use of trials during which others used the DUT's core too, by the share that they had."""
        return False

    def deviations(self) -> tuple[str, ...]:
        """Where its options fall short of the RFC it follows, in words for the report."""
        return ()

    def objection(self, context: Any) -> Objection | None:
        """Why this testbed does not suit it; asked of every test, with its context, before the first of them begins."""
        return None

    def promises(self, result: Result) -> tuple[Promise, ...]:
        """What a result of it says of later trials, which contradict it where they lose more."""
        return ()

    @classmethod
    def lab_options(cls, options: Frozen) -> Frozen:
        """The options with the defaults of a lab made on the spot, where those differ from a laboratory's."""
        return options

    @classmethod
    def procedure(cls) -> str:
        """What is done in which steps, after which standard, and what is verified: the words of its own file."""
        words = " ".join((sys.modules[cls.__module__].__doc__ or "").split())
        return _OF_THIS_PROJECT.sub("", words).replace("``", "")

    @classmethod
    def check(cls) -> None:
        """Builds its tables, so that a column with a wrong unit stops start-up and not the report of a long run."""
        cls.tables()
        cls.imports()

    @classmethod
    def table(cls) -> ResultTable | None:
        """Its section of the report, and its table at the end of a run."""
        return None

    @classmethod
    def tables(cls) -> tuple[ResultTable, ...]:
        """Its sections, where results of several kinds come from it: each table says of which ``part`` it is."""
        table = cls.table()
        return () if table is None else (table,)

    @classmethod
    def table_values(cls, result: Result, trials: Mapping[str, Trial]) -> Values:
        """What its tables show beside the values of a result; ``trials`` are those of the run, by their id."""
        return {}

    @classmethod
    def table_for(cls, table: ResultTable, results: Sequence[Result], options: Mapping[str, Any]) -> ResultTable:
        """The table of these results, where columns or words depend on them; ``options`` are those of their test."""
        return table

    @classmethod
    def options_of_import(cls, goals: Mapping[str, float]) -> dict[str, Any]:
        """The options of an imported test, as far as its source tells them: the loss ratios of ``goals``."""
        return {}

    @classmethod
    def imports(cls) -> ImportTable | None:
        """What it takes of results that somebody else measured; None where there is nothing to import."""
        return None

    @classmethod
    def from_import(cls, parameters: dict[str, Any], values: Values) -> tuple[dict[str, Any], Values]:
        """A result's parameters and values of an imported row, with what none of its columns says alone."""
        return parameters, values

    @classmethod
    def main_values(cls, result: Result) -> tuple[str, ...]:
        """The values of a result of its own that runs are repeated for (``runs: {until: 5 %}``).

        Those that its table prints bold, of a row that sums up others where there are such rows; where none is bold,
        the first number of the result. Names that a result does not have are passed over.
        """
        part = result.parameters.get("part")
        table = next((cls.table_for(one, (result,), {}) for one in cls.tables() if one.part == part), None)
        if table is not None and table.sums is not None:
            column, word = table.sums
            if word not in (result.values.get(column), result.parameters.get(column)):
                return ()
        main = [column.value for column in table.columns if column.is_main] if table is not None else []
        bold = tuple(dict.fromkeys(main))
        numbers = (name for name, value in result.values.items() if isinstance(value, Bounded | int | float))
        return bold or tuple(numbers)[:1]

    @classmethod
    def column_of(cls, result: Result, name: str) -> Column | None:
        """How a value of a result of its own is written, and which way it is better; None where no table has it."""
        tables = sorted(cls.tables(), key=lambda table: table.part != result.parameters.get("part"))
        every = (column for table in tables for column in cls.table_for(table, (result,), {}).columns)
        column = next((column for column in every if column.value == name), None)
        return column if column is None or column.name is None else column.model_copy(update={"head": column.name})

    @classmethod
    def describe_circumstances(cls, parameters: Mapping[str, Any]) -> str:
        """In which a result came about, to begin a sentence: "with 64-byte frames"; "" of one that stands alone."""
        return describe_circumstances(parameters)

    @classmethod
    def series_within_run(cls, results: tuple[Result, ...]) -> tuple[Series, ...]:
        """Values in the order of time within a run, where it measures in intervals: what may drift while it goes on."""
        return ()

    @classmethod
    def add_run_results(cls, results: tuple[Result, ...]) -> tuple[Result, ...]:
        """Results of its own with those that are made of several of them, as the sum over instances of a run."""
        return results

    @classmethod
    def restate_values(cls, values: Values) -> Values:
        """The values of a result over several runs, with words that are made of numbers made of their medians."""
        return values

    @classmethod
    def select_for_terminal(cls, results: tuple[Result, ...]) -> tuple[Result, ...]:
        """Of the results of one section, those that the terminal shows; the report has all of them."""
        return results

    def frame_sizes(self) -> tuple[int | str, ...]:
        """Every frame size it will send, or the name of a mix, so that validation can refuse what cannot be sent."""
        return ()

    def abilities(self) -> frozenset[Ability]:
        """What it needs of the tester beyond frames sent at a load and counted."""
        return frozenset()


class FrameMethod(Method):
    """Measures by frames of a tester. Subclasses define ``kind``, frozen ``Options`` and ``run``."""

    measures = "frames"

    @abstractmethod
    def frame_sizes(self) -> tuple[int | str, ...]: ...

    @abstractmethod
    async def run(self, context: Context) -> tuple[Result, ...]:
        """Measures; results are also published one by one."""


class RoundMethod(Method):
    """Measures by rounds of workloads between hosts. Subclasses define ``kind``, frozen ``Options`` and ``run``."""

    measures = "rounds"
    through_dut: ClassVar[bool] = False
    """Whether clients talk to one another, through a DUT that forwards between its ports."""
    runs_servers: ClassVar[bool] = True
    """Whether its tools have processes on the measured host, which could be placed there."""
    fewest_ports: ClassVar[int] = 1
    """How many ports of the measured host it needs."""

    @abstractmethod
    def job_specs(self) -> tuple[tuple[WorkloadChoice, JobSpec], ...]:
        """What is asked of which workload: one of each kind of job, so that validation refuses what a tool cannot."""

    def find_misfits(self, clients: Mapping[str, Sequence[str]], hosts: Sequence[str]) -> Iterator[Misfit]:
        """What names no host, or asks more of a port than it has, found before a machine is touched.

        ``clients`` are those of each port of the measured host, ``hosts`` all that there are, by their names.
        """
        yield from ()

    def find_bond_misfits(self, links: Mapping[str, int | None]) -> Iterator[Misfit]:
        """What asks for a link of a bond that is not there. ``links``: how many the bond of each port of the measured
        host has; None of a port that is no bond of nicbench's.
        """
        yield from ()

    def share_count(self) -> int:
        """How many shares of a DUT that serves files it needs."""
        return 0

    @abstractmethod
    async def run(self, context: RoundContext) -> tuple[Result, ...]:
        """Measures; results are also published one by one."""


def main_values(result: Result) -> tuple[str, ...]:
    """What the method of a result says of it; of a method that is not known, nothing."""
    method = find_one("nicbench.methods", Method, result.method)
    return () if method is None else method.main_values(result)


def restate_over_runs(results: Iterable[Result]) -> tuple[Result, ...]:
    """Results over several runs, with what their methods make of the medians."""
    methods = find("nicbench.methods", Method)
    return tuple(
        result.model_copy(update={"values": methods[result.method].restate_values(result.values)})
        if result.method in methods
        else result
        for result in results
    )
