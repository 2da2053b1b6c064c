"""Verdicts: whether a trial or round may be used, and why not. They never look at ``lost``."""

from __future__ import annotations

from enum import StrEnum

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
    PEER_FAILED = "peer_failed"
    HARDWARE = "hardware"  # a link, bus, cooler or card had errors
    HEALTH = "health"  # a generator that is not our own says that it was overloaded


class Finding(Frozen):
    """One threshold that was passed: which, the value, the limit, in plain words."""

    reason: Reason
    threshold: str
    value: float
    limit: float
    text: str


class Verdict(Frozen):
    """Valid when there is no finding."""

    findings: tuple[Finding, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether what was measured may be charged to the DUT."""
        return not self.findings

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Distinct reasons, in order of appearance."""
        return tuple(dict.fromkeys(finding.reason for finding in self.findings))
