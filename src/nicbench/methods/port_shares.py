"""Port shares: what each port gets when one, two, and at last all of them are loaded at once, and how fair that is.

For ports that share something: virtual functions of an adapter (SR-IOV), ports of a card, ways to one port of a switch.
Steps, for each frame size: each sending port alone, then two, three and at last all of them, from the first on, each
with the same load, in trials that are repeated. The share of a port is of all frames that came back; fairness is Jain's
index (DEC-TR-301) of the ports' rates, counted exactly in each trial, with the least and the greatest of the
repetitions. What a port gets with others divided by what it gets alone shows where they share a limit. Verified: every
frame by its signature and its payload.
"""

from __future__ import annotations

import statistics
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from nicbench.core.base import Distinct, Frozen
from nicbench.core.frame_size import FrameSizes, Size, mean_bytes, size_parameters
from nicbench.core.lists import grouped
from nicbench.core.pattern import Way, WayLoad, way_of_stream, ways_of
from nicbench.core.quantity import Repetitions
from nicbench.core.reading import Counts
from nicbench.core.result import Bounded, Result, ResultVerdict
from nicbench.core.table import Column, Plot, ResultTable
from nicbench.core.traffic import Ability
from nicbench.core.trial import Purpose, Trial
from nicbench.core.units import l2_bits_per_s
from nicbench.methods._loads import LINE_RATE, FullRate, TrialTimes, full_rate
from nicbench.methods._results import result_at
from nicbench.methods.base import FRAME, PORT, Context, FrameMethod, Objection, Values
from nicbench.stats.frames import fairness

TOGETHER, EACH = "together", "each"
_EXTENT, _MOST_PORTS = "extent", "most ports"
"""The value of the row of the most ports, for which runs are repeated."""
_PORTS = Column("ports_at_once", "Ports at once", form="whole")
_INDEX = Column("jain_index", "Jain's index", name="fairness of the ports (Jain)", is_main=True, better="higher")
_SUM = Column("sum_frames_per_s", "Sum of the ports", is_main=True, better="higher", adjective="fast")
_SHARE = Column("share_percent", "Share", unit="%", form="trimmed")
_PORTS_ASSUMED = 4


class PortShares(FrameMethod):
    """The share of each port while the others are loaded."""

    gives_points = False
    kind = "port-shares"
    chooses_ways = True
    question = "How fairly does {subject} serve its ports when more and more of them are loaded at once?"

    class Options(Frozen):
        """Options of the bench file. Ports are the sending ones of the traffic's pattern."""

        frame_bytes: FrameSizes = (64, 1518)
        """Frame sizes, and mixes by name."""
        rate: FullRate = LINE_RATE
        """What each port sends."""
        at_once: Distinct[Annotated[int, Field(ge=1)]] | None = None
        """How many ports send at once; without it every number from 1 to all."""
        repetitions: Repetitions = 3
        """Trials of each number of ports."""
        trial: TrialTimes = TrialTimes()
        """Times of a trial."""

    options: Options

    def points(self) -> int:
        """Returns the number of trials for four sending ports, or more where more are named: how many send is known
        once the testbed is set up. One port at a time takes a trial for each.
        """
        ports = max(_PORTS_ASSUMED, *(self.options.at_once or (1,)))
        groups = sum(ports if number == 1 else 1 for number in self.options.at_once or range(1, ports + 1))
        return len(self.options.frame_bytes) * self.options.repetitions * groups

    def abilities(self) -> frozenset[Ability]:
        return frozenset({Ability.WAY_LOADS})

    def deviations(self) -> tuple[str, ...]:
        return self.options.trial.deviations()

    def objection(self, context: Any) -> Objection | None:
        senders = len(_senders(context))
        if senders < 2:
            return Objection(
                message=f"one port sends, with the pattern {context.pattern.value} and {context.ports} ports, and has "
                "all of its share",
                next_step="give lab and DUT more `ports`, or another `pattern` under `traffic`",
            )
        beyond = [number for number in self.options.at_once or () if not 1 <= number <= senders]
        if beyond:
            return Objection(
                message=f"`at_once` names {beyond[0]} ports, and {senders} send",
                next_step=f"write numbers from 1 to {senders}",
            )
        return None

    async def results(self, context: Context) -> AsyncIterator[Result]:
        senders = _senders(context)
        for size in context.sizes(self.options.frame_bytes):
            full = await full_rate(context, size, self.options.rate)
            if full.is_sent_nothing or not full.carries(100.0):
                result = self._without_figure(size, full.why_not_more)
                yield result
                continue
            alone = {}
            for number in sorted(self.options.at_once or range(1, len(senders) + 1)):
                groups = [[port] for port in senders] if number == 1 else [list(senders)[:number]]
                made = [
                    _Group(ports, await self._trials(context, size, ports, full.rate_frames_per_s)) for ports in groups
                ]
                if number == 1:
                    alone = {port: group.means[port] for group in made for port in group.ports}
                for result in (self._together(context, size, number, made), *self._each(size, number, made, alone)):
                    yield result

    async def _trials(
        self, context: Context, size: Size, ports: Sequence[int], rate: float
    ) -> tuple[tuple[Trial, bool], ...]:
        of_ports = _senders(context)
        loads = tuple(
            WayLoad(transmit=transmit, receive=receive, load_frames_per_s=rate / len(of_ports[port]))
            for port in ports
            for transmit, receive in of_ports[port]
        )
        request = self.options.trial.request(size, rate, Purpose.LOSS).replace(ways=loads)
        point = {**size_parameters(size), "ports_at_once": len(ports), "first_port": ports[0]}
        return tuple(
            [
                await context.measure({**point, "repetition": repetition}, request)
                for repetition in range(1, self.options.repetitions + 1)
            ]
        )

    def _together(self, context: Context, size: Size, number: int, groups: Sequence[_Group]) -> Result:
        rates = [each for group in groups for each in group.rates]
        means = {port: rate for group in groups for port, rate in group.means.items()}
        total, least, most = sum(means.values()) / len(groups), min(means.values()), max(means.values())
        indexes = [index for each in rates if (index := fairness(list(each.values()))) is not None]
        trials = [trial for group in groups for trial, _ in group.trials]
        values: Values = {
            _SUM.value: _bounded([sum(each.values()) for each in rates]),
            "sum_l2_bits_per_s": l2_bits_per_s(total, mean_bytes(size)),
            "offered_frames_per_s": statistics.fmean(_offered(trial) for trial in trials),
            "loss_percent": _loss_percent(trials),
            _INDEX.value: _bounded(indexes),
            "index": f"{statistics.fmean(indexes):.3f}" if indexes else None,
            "least_share_percent": 100.0 * least / total if total and number > 1 else None,
            "greatest_share_percent": 100.0 * most / total if total and number > 1 else None,
            "most_to_least": most / least if least else None,
            _EXTENT: _MOST_PORTS if number == max(self.options.at_once or (len(_senders(context)),)) else None,
            "least_port": groups[0].name_of(min(means, key=lambda port: means[port])) if most > least else None,
        }
        return self._result(size, groups, values, TOGETHER, number)

    def _each(self, size: Size, number: int, groups: Sequence[_Group], alone: Mapping[int, float]) -> Iterator[Result]:
        for group in groups:
            total = sum(group.means.values())
            for port, rate in group.means.items():
                own = alone.get(port)
                values: Values = {
                    "rate_frames_per_s": rate,
                    "share_percent": 100.0 * rate / total if total else None,
                    "fair_share_percent": 100.0 / number,
                    "loss_percent": _loss_percent([trial for trial, _ in group.trials], port),
                    "of_alone_percent": 100.0 * rate / own if own else None,
                }
                yield self._result(size, [group], values, EACH, number, port=group.name_of(port))

    def _result(
        self, size: Size, groups: Sequence[_Group], values: Values, part: str, number: int, **more: str
    ) -> Result:
        trials = [each for group in groups for each in group.trials]
        disturbed = [trial for trial, was_disturbed in trials if was_disturbed]
        return result_at(
            self,
            size,
            values,
            ResultVerdict.DISTURBED if disturbed else ResultVerdict.VALID,
            trials=[trial.id for trial, _ in trials],
            disturbances=[finding.text for trial in disturbed for finding in trial.verdict.findings],
            parameters={"part": part, "ports_at_once": number, **more},
            point="/".join((part, str(number), *more.values())),
            scope="sum of the ports" if part == TOGETHER else "at each port",
        )

    def _without_figure(self, size: Size, why: str) -> Result:
        values: Values = {_INDEX.value: Bounded(value=None, reason_null=why), "why": why}
        parameters = {"part": TOGETHER, "ports_at_once": 1}
        return result_at(
            self, size, values, ResultVerdict.INCOMPLETE, disturbances=(why,), parameters=parameters, point=TOGETHER
        )

    @classmethod
    def tables(cls) -> tuple[ResultTable, ...]:
        return (_together_table(), _each_table())

    @classmethod
    def main_values(cls, result: Result) -> tuple[str, ...]:
        """Returns the sum and the fairness of the most ports."""
        return (_SUM.value, _INDEX.value) if result.values.get(_EXTENT) == _MOST_PORTS else ()

    @classmethod
    def select_for_terminal(cls, results: tuple[Result, ...]) -> tuple[Result, ...]:
        """Returns the rows of several ports, the most ports first, of which the answer is."""
        if any(result.parameters.get("part") == EACH for result in results):
            return results
        several = [result for result in results if _ports_at_once(result) > 1]
        return tuple(sorted(several, key=_ports_at_once, reverse=True)) or results


def _ports_at_once(result: Result) -> int:
    return int(result.parameters.get(_PORTS.value, 1))


class _Group:
    """The trials in which some ports were loaded at once, and what came back of the frames of each in them."""

    def __init__(self, ports: Sequence[int], trials: Sequence[tuple[Trial, bool]]) -> None:
        self.ports, self.trials = tuple(ports), tuple(trials)
        self.rates = tuple(_rates(trial, ports) for trial, _ in trials)

    @property
    def means(self) -> dict[int, float]:
        """Returns the mean rate of each port over the repetitions."""
        return {port: statistics.fmean(each[port] for each in self.rates) for port in self.ports}

    def name_of(self, port: int) -> str:
        """Returns the tester's name of a port."""
        ports = self.trials[0][0].reading.ports
        return ports[port].name if port < len(ports) else f"port {port}"


def _senders(context: Any) -> dict[int, list[Way]]:
    """Returns the ways of each port that sends; the first half alone of ports that send both ways."""
    ways = ways_of(context.pattern, context.ports).forward
    found = grouped((way[0], way) for way in ways)
    return found


def _rates(trial: Trial, senders: Sequence[int]) -> dict[int, float]:
    """Returns what came back of the frames of each port, in frames per second."""
    seconds = trial.reading.offering_ns / 1e9
    return {port: _counts_of(trial, port).received / seconds for port in senders}


def _counts_of(trial: Trial, port: int) -> Counts:
    of_port = (
        stream.counts
        for stream in trial.reading.streams
        if (way := way_of_stream(stream.name)) is not None and way[0] == port
    )
    return Counts.sum_of(of_port)


def _offered(trial: Trial) -> float:
    return trial.reading.counts.offered * 1e9 / trial.reading.offering_ns


def _loss_percent(trials: Sequence[Trial], port: int | None = None) -> float | None:
    every = [trial.reading.counts if port is None else _counts_of(trial, port) for trial in trials]
    offered = sum(counts.offered for counts in every)
    return 100.0 * sum(counts.failed for counts in every) / offered if offered else None


def _bounded(values: Sequence[float]) -> Bounded:
    """Returns the mean with the least and the greatest; without a value where nothing came back."""
    if not values:
        return Bounded(value=None, reason_null="no frame came back")
    return Bounded(value=statistics.fmean(values), lower=min(values), upper=max(values), n=len(values))


def _together_table() -> ResultTable:
    return ResultTable(
        part=TOGETHER,
        title="Ports at once",
        caption=(
            "All ports that send have the same load. Jain's index is 1 where all got the same and 1/n where one of n "
            "got all; its interval is the least and the greatest of the repetitions, each counted exactly. Of one port "
            "at once every port was measured: its sum is their mean."
        ),
        columns=(
            *(FRAME, _PORTS),
            Column("offered_frames_per_s", "Offered"),
            _SUM,
            Column("sum_l2_bits_per_s", "Sum (layer 2)"),
            Column("loss_percent", "Loss", unit="%", form="of_frames"),
            _INDEX,
            Column("jain_index", "Interval", aspect="interval"),
            Column("least_share_percent", "Least share", unit="%", form="trimmed"),
            Column("greatest_share_percent", "Greatest share", unit="%", form="trimmed"),
            Column("most_to_least", "Greatest by least"),
            Column("least_port", "Least served", form="text"),
        ),
        sentences=(
            (
                "serves {ports_at_once} ports at once with Jain's index {index}: {sum_frames_per_s} of {size} "
                "frames in sum"
            ),
        ),
        notes=(("why", "Limit"),),
        plots=(
            Plot(
                x=_PORTS,
                y=(_SUM,),
                lines=(FRAME,),
                caption="What all ports get together, by how many are loaded at once.",
            ),
        ),
        has_basis=False,
    )


def _each_table() -> ResultTable:
    return ResultTable(
        part=EACH,
        title="Share of each port",
        caption="Of the frames that came back, those of each port; and its rate by what it gets when no other sends.",
        columns=(
            *(FRAME, _PORTS, PORT),
            Column("rate_frames_per_s", "Rate"),
            _SHARE,
            Column("fair_share_percent", "Fair share", unit="%", form="trimmed"),
            Column("loss_percent", "Loss", unit="%", form="of_frames"),
            Column("of_alone_percent", "Of its rate alone", unit="%", form="trimmed", is_optional=True),
        ),
        plots=(Plot(x=_PORTS, y=(_SHARE,), lines=(PORT,), each=FRAME, caption="The share of each port."),),
        has_basis=False,
    )
