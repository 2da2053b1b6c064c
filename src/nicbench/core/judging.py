"""Samples and their verdicts: the thresholds that make a sample invalid, and how often it is repeated.

A verdict never considers ``lost``: it must not depend on what the DUT did to the frames.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal

from pydantic import Field

from nicbench.core.base import Frozen, optional
from nicbench.core.plan import ThresholdRow

# The rules by which samples are judged and repeated: thresholds that make a sample invalid, and limits on repeats.
#
# The report prints them. Thresholds are shares and durations, never zero. Their defaults suit virtual machines that
# lose a core to the hypervisor now and then; a bench file may override each.


def _threshold(default: float, unit: str, why: str) -> Any:
    return Field(default=default, gt=0.0, description=why, json_schema_extra={"unit": unit})


class Thresholds(Frozen):
    """The thresholds of a verdict: a trial or round that exceeds one of them is invalid."""

    longest_gap_ms: float = _threshold(
        20.0,
        "ms",
        "longest pause between two iterations of the worker's loop: neither sending nor receiving happened in it",
    )
    total_gap_share: float = _threshold(
        0.05,
        "share of the transmission",
        "sum of the pauses above the gap floor: the load was offered in bursts and not evenly",
    )
    dut_foreign_cpu_share: float = _threshold(
        0.50,
        "share of the DUT core's time",
        "time that other programs ran on the DUT's core, including interrupts meanwhile",
    )
    dut_steal_share: float = _threshold(
        0.05,
        "share of the DUT core's time",
        "time for which the hypervisor gave the DUT's core to somebody else",
    )
    dut_waiting_share: float = _threshold(
        0.05,
        "share of the trial's time",
        "time that a DUT in user space was ready to forward but did not run, because other programs had its core",
    )
    dut_contended_share: float = _threshold(
        0.04,
        "share of samples of the DUT's core",
        "the DUT's core ran under 80 % of its best speed: another hyperthread, or guest, used the same physical core",
    )
    dut_pause_ms: float = _threshold(
        5.0,
        "ms",
        "longest time that the DUT's core stood still: an interrupt of its own timer was that late",
    )
    clock_step_ms: float = _threshold(
        1.0,
        "ms",
        "drift between the monotonic clock and the time-stamp counter, beyond the 20 ppm of the transmission that is "
        "allowed: rates and latencies of the trial are in doubt",
    )
    peer_clock_step_ms: float = _threshold(
        0.1,
        "ms",
        "for a tester on two machines: distance of their clocks from the line that latencies were computed with, "
        "beyond the uncertainty of the comparisons: a clock was set, or its drift was not known",
    )
    unsent_share: float = _threshold(
        0.001,
        "share of the intended frames",
        "frames that the tester failed to send; those that a lossless port refused are not counted here",
    )
    receive_overrun_share: float = _threshold(
        1e-6,
        "share of the intended frames",
        "frames that arrived but were dropped by the tester itself: they would be charged to the DUT as lost",
    )

    transmit_refused_share: float = _threshold(
        1e-6,
        "share of the intended frames",
        "frames that the tester's kernel or card took but dropped before the wire: they would be charged to the DUT",
    )
    unlearnt_flow_share: float = _threshold(
        1.0,
        "share of the flows",
        "flows of which no learning frame came back before the trial; by default this is reported and spoils no trial",
    )

    tester_cpu_share: float = _threshold(
        0.95,
        "share of the tester's cores' time",
        "for a generator that reports it (TRex): its sending or receiving cores had hardly any time left",
    )
    tester_queue_full_share: float = _threshold(
        0.001,
        "share of the intended frames",
        "for a generator that reports it (TRex): how often a transmit queue had no room, so that frames left late",
    )
    tester_overtime_share: float = _threshold(
        0.005,
        "share of the asked time",
        "for a generator that reports it (TRex): the transmission took more or less time than asked, so that the load "
        "was different, or its time is not known so exactly",
    )

    start_spread_share: float = _threshold(
        0.10,
        "share of the round's time",
        "for workloads that run together: how much later than the first the last one began",
    )
    machine_steal_share: float = _threshold(
        0.05,
        "share of a machine's CPU time",
        "for a round of workloads: time for which the hypervisor gave the machine's CPUs to somebody else",
    )
    stranger_cpu_share: float = _threshold(
        0.05,
        "share of a machine's CPU time",
        "for a round of workloads: CPU time of programs that are not the test's, if CPUs were short: at most two "
        "CPUs, under three quarters of their time idle, or tasks that waited for a CPU",
    )
    stranger_pressure_share: float = _threshold(
        0.01,
        "share of the round's time",
        "for a round of workloads beside strangers, on a machine that is mostly idle: time that some task was ready "
        "and waited for a CPU (/proc/pressure)",
    )

    pcie_uncorrected_share: float = _threshold(
        1e-6,
        "share of the intended frames",
        "PCIe errors that were not corrected, of an adapter or of the port above it",
    )
    pcie_corrected_share: float = _threshold(
        1e-3,
        "share of the intended frames",
        "PCIe errors that were corrected, which costs time: a slot, riser or card is not quite sound",
    )
    pcie_link_loss_share: float = _threshold(
        0.01,
        "share of the PCIe bandwidth",
        "an adapter's PCIe link was slower or narrower after the trial than before",
    )
    fec_uncorrected_share: float = _threshold(
        1e-6,
        "share of the intended frames",
        "blocks that forward error correction could not correct: a cable or module lost frames, not the DUT",
    )
    symbol_error_share: float = _threshold(
        1e-6,
        "share of the intended frames",
        "symbol and checksum errors on a link: a cable or module corrupted frames, not the DUT",
    )
    throttled_share: float = _threshold(
        0.001,
        "share of the transmission",
        "time for which processors were slowed down by heat, summed over all cores",
    )
    temperature_share: float = _threshold(
        1.0,
        "share of the part's own limit",
        "a module, adapter or processor was hotter than its own limit",
    )

    def rows(self) -> tuple[ThresholdRow, ...]:
        """Returns the rows of the table of thresholds, in order."""
        rows = []
        for name, field in type(self).model_fields.items():
            extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
            rows.append(
                ThresholdRow(
                    name=name,
                    value=getattr(self, name),
                    default=field.get_default(),
                    unit=str(extra["unit"]),
                    why=field.description or "",
                )
            )
        return tuple(rows)


OF_ROUNDS: Final = frozenset(
    {"start_spread_share", "machine_steal_share", "stranger_cpu_share", "stranger_pressure_share"}
)
"""The thresholds that rounds of workloads are judged by."""


class RepeatPolicy(Frozen):
    """How much is spent on repeats of invalid samples, and when two shortfalls of a tester count as the same."""

    maximum_repeats: int = Field(default=3, ge=0)
    """The maximum number of repeats of one sample."""
    budget_share: float = Field(default=0.30, ge=0.0, le=1.0)
    """The maximum share of a test's time that is spent on repeats of all its samples."""
    least_s: float = Field(default=0.0, ge=0.0)
    """The time for repeats of a test so short that its share would not do for one, seconds."""
    ceiling_agreement: float = Field(default=0.03, gt=0.0, lt=1.0)


REPEATS_OF_TRIALS: Final = RepeatPolicy(least_s=3.0)
REPEATS_OF_ROUNDS: Final = RepeatPolicy(maximum_repeats=2)


# A sample, and its verdict: whether it may be used, and why not. A verdict never considers ``lost``.
#
# A sample is what is measured at once and judged as a whole: a trial of frames or a round of workloads. Both are one
# kind of record: they have the same place in a run, the same numbering and the same verdict; ``kind`` distinguishes
# them.


class Reason(StrEnum):
    """Why a trial or round is invalid."""

    DISTURBED = "disturbed"  # the worker loop was held up: longest or total gap
    DUT_DISTURBED = "dut_disturbed"  # another process used the DUT's core
    CLOCK_STEP = "clock_step"
    UNSENT = "unsent"  # the tester fell short of the intended load
    RECEIVE_OVERRUN = "receive_overrun"  # the tester's own receive side overflowed
    TRANSMIT_REFUSED = "transmit_refused"  # the kernel threw away frames that the tester had handed over
    LINK_CHANGED = "link_changed"
    LATE = "late"  # frames came after the drain: it was shorter than the DUT's delay
    UNLEARNT = "unlearnt"  # flows did not pass before the trial, and a threshold forbids it
    PEER_FAILED = "peer_failed"
    TESTER_FAILED = "tester_failed"  # the engine ended while clients had frames sent
    HARDWARE = "hardware"  # a link, bus, cooler or card had errors
    CONTRADICTED = "contradicted"  # the tools of a port and its byte counters do not agree
    CHANGED = "changed"  # somebody else changed what frames pass through
    HEALTH = "health"  # a generator that is not our own says that it was overloaded


ADJUSTED_FOR: Final = frozenset({Reason.DUT_DISTURBED, Reason.DISTURBED, Reason.UNSENT})
"""What a search allows for: its trials count at what was sent, and fail by more than pauses explain."""


class Finding(Frozen):
    """One threshold that was exceeded: which one, the value, and the limit, in plain words."""

    reason: Reason
    threshold: str
    value: float
    limit: float
    text: str

    @property
    def times_its_limit(self) -> float:
        """How far beyond its limit the value is; infinite where nothing at all was allowed."""
        return self.value / self.limit if self.limit > 0 else math.inf


class Verdict(Frozen):
    """The verdict on a sample: valid without findings, or ``adjusted``, where the findings enter the computation."""

    findings: tuple[Finding, ...] = ()
    adjusted: bool = optional(False)
    """A search allows for what was found: its trials count at what was sent, and under the conditions of the run."""

    @property
    def valid(self) -> bool:
        """Whether what was measured may be charged to the DUT."""
        return self.adjusted or not self.findings

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The distinct reasons, in order of appearance."""
        return tuple(dict.fromkeys(finding.reason for finding in self.findings))

    @property
    def texts(self) -> tuple[str, ...]:
        """The findings in words."""
        return tuple(finding.text for finding in self.findings)


SampleKind = Literal["trial", "round"]
_LETTERS: Final[Mapping[SampleKind, str]] = MappingProxyType({"trial": "t", "round": "r"})
"""The letters of the kinds of samples; an id is the letter and the sample's number in the run: t0001, r0001."""


class Sample(Frozen):
    """A finished trial or round, as stored in the journal.

    ``key`` identifies its place in the run and the repeat, deterministically, e.g. ``throughput/7/0``: a resumed run
    finds the sample by it. ``at_s`` is seconds since the run began (monotonic); it is a label and never computed with.
    """

    kind: ClassVar[SampleKind]

    id: str
    key: str
    test: str
    configuration: str
    run: int = 1
    """The number of the configuration's run, from 1."""
    parameters: dict[str, Any]
    repeat: int
    request: Any
    """What was requested: a ``TrialRequest`` or a ``RoundRequest``."""
    warm_up: bool = False
    """Whether the sample belongs to a warm-up run: nothing is concluded from it."""
    verdict: Verdict
    at_s: float | None = None
    took_s: float | None = optional(None)
    """The time from its request to its verdict, everything around it included; None in older journals."""

    @classmethod
    def id_of(cls, number: int) -> str:
        """Returns the id of the sample with this number."""
        return f"{_LETTERS[cls.kind]}{number:04d}"

    @property
    def number(self) -> int:
        """The number of the sample in the run, from 1, taken from its id."""
        return int(self.id.removeprefix(_LETTERS[self.kind]))

    @property
    def measured_s(self) -> float:
        """The duration of the measurement in seconds, without the waiting times before and after it."""
        raise NotImplementedError


def kind_of(sample_id: str) -> SampleKind | None:
    """Returns the kind of the sample with this id; None where the id is not one of nicbench's."""
    return next((kind for kind, letter in _LETTERS.items() if sample_id.startswith(letter)), None)
