"""A sample, and its verdict: whether it may be used, and why not. A verdict never considers ``lost``.

A sample is what is measured at once and judged as a whole: a trial of frames or a round of workloads. Both are one kind
of record: they have the same place in a run, the same numbering and the same verdict, and ``kind`` tells them apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal

from pydantic import Field

from nicbench.core.base import Frozen


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
    adjusted: bool = Field(default=False, exclude_if=lambda adjusted: not adjusted)
    """A search allows for what was found: its trials count at what was sent, and under the conditions of the run."""

    @property
    def valid(self) -> bool:
        """Whether what was measured may be charged to the DUT."""
        return self.adjusted or not self.findings

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The distinct reasons, in order of appearance."""
        return tuple(dict.fromkeys(finding.reason for finding in self.findings))


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
    took_s: float | None = Field(default=None, exclude_if=lambda known: known is None)
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
