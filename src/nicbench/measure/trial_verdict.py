"""The verdict on a trial. It never looks at what was lost, received or corrupted: the evidence does not contain it.

That the drain was too short is a fault of the measurement: then frames count as lost that are only late.

A verdict that looked at the loss would throw away the trials in which the DUT did badly, and keep the lucky ones.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from types import MappingProxyType
from typing import Final, NamedTuple

from nicbench.core.base import Frozen
from nicbench.core.judging import ADJUSTED_FOR, Finding, Reason, Thresholds, Verdict
from nicbench.core.reading import Change, ChangeAction, ChangeKind, HealthEvent, Measure, PathChanges
from nicbench.core.trial import CpuTime, Reading
from nicbench.core.units import count_of
from nicbench.measure.ledger.base import Stage
from nicbench.stats.limits import AGREEMENT

# The findings of changes on the path: what somebody else changed there is never charged to the DUT. Pure.


OF_A_LINK: Final = frozenset({ChangeKind.LINK, ChangeKind.ADDRESS, ChangeKind.ROUTE, ChangeKind.NEIGHBOUR})
"""What follows by itself where a link goes down and comes up."""
_MOST_NAMED: Final = 3
_NOUNS: Final = MappingProxyType(
    {
        ChangeKind.LINK: "interface",
        ChangeKind.ADDRESS: "address",
        ChangeKind.ROUTE: "route",
        ChangeKind.RULE: "routing rule",
        ChangeKind.NEIGHBOUR: "neighbour",
        ChangeKind.QUEUEING: "queueing discipline",
        ChangeKind.FILTER: "traffic control filter",
        ChangeKind.RULESET: "nftables ruleset",
        ChangeKind.IPTABLES: "iptables rules",
        ChangeKind.XDP: "XDP program",
        ChangeKind.TCX: "tcx program",
        ChangeKind.SETTING: "setting",
    }
)


def leave_out(seen: PathChanges | None, kinds: Collection[ChangeKind]) -> PathChanges | None:
    """Returns the changes without those of these kinds, which are known to be made on purpose."""
    if seen is None or not kinds:
        return seen
    return seen.replace(changes=tuple(each for each in seen.changes if each.kind not in kinds))


def leave_out_programs(seen: PathChanges | None, devices: Collection[str]) -> PathChanges | None:
    """Returns the changes without those of XDP programs at these devices, which the tester attaches itself."""
    if seen is None or not devices:
        return seen
    kept = (each for each in seen.changes if each.kind is not ChangeKind.XDP or each.device not in devices)
    return seen.replace(changes=tuple(kept))


def find_changes(seen: PathChanges | None) -> Iterator[Finding]:
    """Yields one finding for all changes; none where nothing changed, or nobody could watch."""
    if seen is None:
        return
    count = len(seen.changes) + seen.more
    if count:
        named = [describe(each) for each in seen.changes[:_MOST_NAMED]]
        left = count - len(named)
        more = [f"and {count_of(left, 'more change')}"] if left else []
        yield _finding(count, f"somebody changed the path of the frames: {'; '.join((*named, *more))}")
    for network in seen.overflowed:
        yield _finding(1, f"more was changed in the network {network} than its kernel could tell")


def describe(change: Change) -> str:
    """Returns what changed, where, when and by whom: ``in dut, v1: mtu changed from 1500 to 1400 after 0.52 s``."""
    place = change.network if change.device is None else f"{change.network}, {change.device}"
    parts = [f"in {place}: {_subject(change)} {change.action}"]
    if change.action is ChangeAction.CHANGED and change.before is not None:
        parts.append(f"from {change.before}")
    if change.after is not None:
        parts.append(f"to {change.after}" if change.action is ChangeAction.CHANGED else f"({change.after})")
    parts.append("meanwhile" if change.after_ns is None else f"after {change.after_ns / 1e9:.2f} s")
    if change.process is not None:
        parts.append(f"by {change.process}" + ("" if change.pid is None else f" (process {change.pid})"))
    elif change.pid is not None:
        parts.append(f"by process {change.pid}")
    return " ".join(parts)


def _subject(change: Change) -> str:
    if change.kind is ChangeKind.SETTING or (change.kind is ChangeKind.LINK and change.what is not None):
        return change.what or _NOUNS[change.kind]
    if change.kind in (ChangeKind.RULESET, ChangeKind.IPTABLES):
        return _NOUNS[change.kind] + (f" (table {change.what})" if change.what else "")
    return f"{_NOUNS[change.kind]} {change.what or ''}".rstrip()


def _finding(count: int, text: str) -> Finding:
    return Finding(reason=Reason.CHANGED, threshold="changed", value=float(count), limit=0.0, text=text)


# Frames that the tester itself dropped, by the loss ledger: a trial that lost them so says nothing of the DUT.
#
# The ledger has rows only where frames were lost: where none was, the tester dropped frames of others.


class TesterDrops(Frozen):
    """What counters of the tester's hosts and cards say was dropped there, on one of the two directions."""

    frames: int = 0
    places: tuple[str, ...] = ()
    """Each place with its counter and the frames there."""

    def say(self) -> str:
        """Returns the places in words."""
        return "; ".join(self.places)


def arriving_drops(reading: Reading) -> TesterDrops:
    """Returns what the tester's hosts dropped of frames that arrived, without what its ports count as overruns.

    A card may count an overrun of its port again, so those are taken off the sum.
    """
    overruns = sum(port.receive_overrun or 0 for port in reading.ports)
    found = _drops(reading, sending=False)
    return found.replace(frames=max(0, found.frames - overruns))


def leaving_drops(reading: Reading) -> TesterDrops:
    """Returns what the tester's hosts and cards dropped of frames that it had sent."""
    return _drops(reading, sending=True)


def _drops(reading: Reading, *, sending: bool) -> TesterDrops:
    rows = [row for row in reading.ledger if row.by_tester and (row.stage <= Stage.TESTER_TRANSMIT) == sending]
    return TesterDrops(
        frames=sum(row.frames for row in rows),
        places=tuple(f"{row.place}: {row.counter} {row.frames}" for row in rows),
    )


# Frames that an AF_XDP socket took, completed, and never sent (struct xdp_statistics, tx_invalid_descs).
TRANSMIT_REFUSED_COUNTER = "xdp_tx_invalid_descs"
SHARED_CORE = "dut_contended_share"
# The time-stamp counter is calibrated in a moment, and NTP goes on to correct the other clock: 4 ppm were seen on a
# virtual machine where nobody set a clock. Five times that is an error of rates of 0.002 %.
_CLOCK_DRIFT = 20e-6


class PortEvidence(Frozen):
    """What one of the tester's ports says of itself."""

    name: str
    receive_overrun: int | None
    transmit_refused: int = 0
    link_changed: bool
    stamp_clock_steps: int = 0


class Evidence(Frozen):
    """All a verdict may know of a trial: the tester's own state, and how the DUT's cores were shared."""

    transmit_ns: int
    intended: int
    unsent_tester: int
    longest_gap_ns: int | None = None
    total_gap_ns: int | None = None
    clock_step_ns: int | None = None
    peer_clock_step_ns: float | None = None
    cpu_share: float | None = None
    queue_full: int | None = None
    overtime_ns: int | None = None
    time_uncertainty_ns: int | None = None
    ports: tuple[PortEvidence, ...] = ()
    arriving_drops: TesterDrops = TesterDrops()
    leaving_drops: TesterDrops = TesterDrops()
    dut_cpus: tuple[CpuTime, ...] = ()
    dut_waiting_share: float | None = None
    hardware: tuple[HealthEvent, ...] = ()
    """What rose in the machines' hardware: links, buses, heat."""
    unlearnt_share: float = 0.0
    """The flows of which no learning frame came back before the trial; of its own frames it says nothing."""
    untaught_share: float = 0.0
    """The flows of which the tester sent none."""
    changes: PathChanges | None = None
    """What others changed on the path while frames passed."""
    peer_failure: str | None = None
    outlasted_drain_s: float | None = None
    """The drain, where any frame came after it; how many did is not among the evidence."""

    @classmethod
    def of(
        cls,
        reading: Reading,
        *,
        dut_cpus: Collection[int] = (),
        peer_failure: str | None = None,
        link_may_change: bool = False,
        sent_share: float = 1.0,
        drain_s: float = 0.0,
    ) -> Evidence:
        """The evidence in a reading.

        ``dut_cpus`` are the cores on which the DUT works in the kernel. A core that the tester's worker shares, or on
        which a DUT in user space polls, must not be among them: their own work would count as foreign. Where the DUT is
        reset its links may go down, and frames that could not be sent then do not count against the tester. Nor is it a
        disturbance that a tester falls short as it always does, by all but ``sent_share``.
        """
        health = reading.health
        usually_unsent = math.ceil((1.0 - sent_share) * (1.0 + AGREEMENT) * reading.counts.intended)
        flows = sum(each.flows for each in reading.learning)
        link_was_down = link_may_change and any(port.link_changed for port in reading.ports)
        return cls(
            transmit_ns=reading.transmit_ns,
            intended=reading.counts.intended,
            unsent_tester=0 if link_was_down else max(0, reading.counts.unsent_tester - usually_unsent),
            longest_gap_ns=health.longest_gap_ns,
            total_gap_ns=health.worst_total_gap_ns,
            clock_step_ns=health.clock_step_ns,
            peer_clock_step_ns=reading.clocks.step_ns if reading.clocks is not None else None,
            cpu_share=health.cpu_share,
            queue_full=health.queue_full,
            overtime_ns=None if link_was_down else health.overtime_ns,
            time_uncertainty_ns=None if link_was_down else health.time_uncertainty_ns,
            ports=tuple(
                PortEvidence(
                    name=port.name,
                    receive_overrun=port.receive_overrun,
                    transmit_refused=0 if link_was_down else port.counters.get(TRANSMIT_REFUSED_COUNTER, 0),
                    link_changed=port.link_changed and not link_may_change,
                    stamp_clock_steps=port.timestamps.steps if port.timestamps else 0,
                )
                for port in reading.ports
            ),
            arriving_drops=arriving_drops(reading),
            leaving_drops=TesterDrops() if link_was_down else leaving_drops(reading),
            dut_cpus=tuple(cpu for cpu in health.cpus if cpu.cpu in dut_cpus),
            dut_waiting_share=reading.dut_waiting_share,
            hardware=tuple(
                event
                for event in (reading.machine.events if reading.machine is not None else ())
                if event.measure is not Measure.LINK or not link_may_change
            ),
            unlearnt_share=_share(sum(each.silent for each in reading.learning), flows),
            untaught_share=_share(sum(each.unsent for each in reading.learning), flows),
            changes=None if link_may_change else reading.changes,
            peer_failure=peer_failure,
            outlasted_drain_s=(reading.drain_s or drain_s) if reading.counts.late and not link_may_change else None,
        )


def judge(evidence: Evidence, thresholds: Thresholds, *, adjusts: bool = False) -> Verdict:
    """Every threshold that was passed, in the order of the table.

    Where whoever asked for the trial ``adjusts`` for a core that others use too, and for a tester that paused or fell
    short, as the zones of a search do, these do not make it invalid.
    """
    findings = tuple(_findings(evidence, thresholds))
    is_known = bool(findings) and all(finding.reason in ADJUSTED_FOR for finding in findings)
    return Verdict(findings=findings, adjusted=adjusts and is_known)


class _Check(NamedTuple):
    """A value that must not exceed the threshold of this name, or ``limit`` where that is given."""

    reason: Reason
    threshold: str
    value: float
    text: str
    limit: float | None = None


def _findings(evidence: Evidence, thresholds: Thresholds) -> Iterator[Finding]:
    before = (_worker, _generator, _dut, _clocks, _tester, _hardware)
    yield from _exceeded((row for rows in before for row in rows(evidence, thresholds)), thresholds)
    yield from find_changes(evidence.changes)
    yield from _exceeded((*_learning(evidence), *_ends(evidence)), thresholds)


def _exceeded(checks: Iterable[_Check], thresholds: Thresholds) -> Iterator[Finding]:
    for reason, threshold, value, text, given in checks:
        limit = getattr(thresholds, threshold) if given is None else given
        if value > limit:
            yield Finding(reason=reason, threshold=threshold, value=value, limit=limit, text=text)


def _worker(evidence: Evidence, _: Thresholds) -> Iterator[_Check]:
    stalled = "the tester's worker stalled for"
    longest_ms = (evidence.longest_gap_ns or 0) / 1e6
    yield _Check(Reason.DISTURBED, "longest_gap_ms", longest_ms, f"{stalled} {longest_ms:.1f} ms at a stretch")
    share = _share(evidence.total_gap_ns or 0, evidence.transmit_ns)
    yield _Check(Reason.DISTURBED, "total_gap_share", share, f"{stalled} {_percent(share)} of the transmission")


def _generator(evidence: Evidence, _: Thresholds) -> Iterator[_Check]:
    """What a generator that is not our own says of its overload."""
    cpu = evidence.cpu_share or 0.0
    full = _share(evidence.queue_full or 0, evidence.intended)
    asked_ns = evidence.transmit_ns - (evidence.overtime_ns or 0)
    overtime = _share(abs(evidence.overtime_ns or 0), asked_ns)
    unknown = _share(evidence.time_uncertainty_ns or 0, asked_ns)
    more, lower = ("more", "lower") if (evidence.overtime_ns or 0) > 0 else ("less", "higher")
    for name, value, text in (
        ("tester_cpu_share", cpu, f"the tester's cores were busy for {_percent(cpu)} of their time"),
        (
            "tester_queue_full_share",
            full,
            f"the tester's transmit queue was full {evidence.queue_full} times: frames left later than they were due",
        ),
        (
            "tester_overtime_share",
            overtime,
            f"the tester needed {_percent(overtime)} {more} time than it was given: the load was {lower} than asked",
        ),
        (
            "tester_overtime_share",
            unknown,
            f"for how long the tester sent is known to {_percent(unknown)} only, and the load no better",
        ),
    ):
        yield _Check(Reason.HEALTH, name, value, text)


def _dut(evidence: Evidence, thresholds: Thresholds) -> Iterator[_Check]:
    """How others used the DUT's cores, and kept its process from running."""
    for cpu in evidence.dut_cpus:
        ticks_ns = cpu.user_ns + cpu.nice_ns + cpu.system_ns
        whole_ns = ticks_ns + cpu.softirq_ns + cpu.irq_ns + cpu.steal_ns + cpu.idle_ns
        # Ticks seldom find a program that interrupts keep interrupting; the tasks' own account does.
        foreign = _share(ticks_ns if cpu.other_tasks_ns is None else cpu.other_tasks_ns, whole_ns)
        stolen, shared = _share(cpu.steal_ns, whole_ns), _share(cpu.slow_samples or 0, cpu.speed_samples or 0)
        paused_ms = (cpu.longest_pause_ns or 0) / 1e6
        core, limit = f"the DUT's core {cpu.cpu}", _percent(getattr(thresholds, SHARED_CORE))
        of_samples = f"another tenant used the physical core of {core} in {_percent(shared)} of samples, limit {limit}"
        for name, value, text in (
            ("dut_foreign_cpu_share", foreign, f"other programs used {_percent(foreign)} of {core}"),
            ("dut_steal_share", stolen, f"the hypervisor took {_percent(stolen)} of {core}"),
            (SHARED_CORE, shared, of_samples),
            ("dut_pause_ms", paused_ms, f"{core} stopped for {paused_ms:.1f} ms at a stretch"),
        ):
            yield _Check(Reason.DUT_DISTURBED, name, value, text)
    share = evidence.dut_waiting_share or 0.0
    text = f"other programs kept the DUT from running for {_percent(share)} of the trial"
    yield _Check(Reason.DUT_DISTURBED, "dut_waiting_share", share, text)


def _clocks(evidence: Evidence, thresholds: Thresholds) -> Iterator[_Check]:
    step_ms = abs(evidence.clock_step_ns or 0) / 1e6
    text = f"the monotonic clock moved by {step_ms:.3f} ms against the time-stamp counter"
    limit_ms = thresholds.clock_step_ms + _CLOCK_DRIFT * evidence.transmit_ns / 1e6
    yield _Check(Reason.CLOCK_STEP, "clock_step_ms", step_ms, text, limit_ms)
    step_ms = (evidence.peer_clock_step_ns or 0.0) / 1e6
    text = f"the clocks of the tester's two machines left the line between them by {step_ms:.3f} ms"
    yield _Check(Reason.CLOCK_STEP, "peer_clock_step_ms", step_ms, text)


def _tester(evidence: Evidence, _: Thresholds) -> Iterator[_Check]:
    share = _share(evidence.unsent_tester, evidence.intended)
    text = f"the tester did not send {_percent(share)} of the intended frames"
    yield _Check(Reason.UNSENT, "unsent_share", share, text)
    for port in evidence.ports:
        share = _share(port.receive_overrun or 0, evidence.intended)
        text = f"the tester's own port {port.name} dropped {port.receive_overrun} arriving frames"
        yield _Check(Reason.RECEIVE_OVERRUN, "receive_overrun_share", share, text)
        share = _share(port.transmit_refused, evidence.intended)
        text = f"the kernel dropped {port.transmit_refused} unsent frames of the tester's port {port.name}"
        yield _Check(Reason.TRANSMIT_REFUSED, "transmit_refused_share", share, text)
        text = f"the link of the tester's port {port.name} changed its state"
        yield _Check(Reason.LINK_CHANGED, "link_changed", float(port.link_changed), text, 0.0)
        times = "once" if port.stamp_clock_steps == 1 else f"{port.stamp_clock_steps} times"
        text = f"the clock that stamps the frames of port {port.name} was set {times}"
        yield _Check(Reason.CLOCK_STEP, "stamp_clock_steps", float(port.stamp_clock_steps), text, 0.0)
    for reason, name, drops, which in (
        (Reason.RECEIVE_OVERRUN, "receive_overrun_share", evidence.arriving_drops, "arriving frames"),
        (Reason.TRANSMIT_REFUSED, "transmit_refused_share", evidence.leaving_drops, "frames before the wire"),
    ):
        text = f"the tester itself dropped {drops.frames} {which} ({drops.say()})"
        yield _Check(reason, name, _share(drops.frames, evidence.intended), text)


# Their amounts are shares already.
_SHARES = (Measure.PCIE_LINK, Measure.TEMPERATURE)


def _hardware(evidence: Evidence, thresholds: Thresholds) -> Iterator[_Check]:
    """What the hardware said of itself; counts are shares of the intended frames, times of the transmission."""
    known = any(port.link_changed for port in evidence.ports)
    for event in evidence.hardware:
        what = f"{event.host}, {event.where}: {event.what}"
        if event.measure is Measure.LINK:
            if not known:  # else the tester's port has said it
                text = f"{what}, {event.amount:.0f} of them"
                yield _Check(Reason.LINK_CHANGED, "link_changed", 1.0, text, 0.0)
            continue
        if not hasattr(thresholds, event.measure.value):
            continue
        value, said = event.amount, f"{event.amount:.0f} {event.unit}"
        if event.measure is Measure.THROTTLED:
            value = _share(event.amount * 1e6, evidence.transmit_ns)
        elif event.measure in _SHARES:
            said = _percent(event.amount)
        else:
            value = _share(event.amount, evidence.intended)
        yield _Check(Reason.HARDWARE, event.measure.value, value, f"{what} ({said})")


def _learning(evidence: Evidence) -> Iterator[_Check]:
    for share, what in (
        (evidence.unlearnt_share, "did not pass before the trial"),
        (evidence.untaught_share, "were not taught before the trial: the tester sent no learning frame of them"),
    ):
        yield _Check(Reason.UNLEARNT, "unlearnt_flow_share", share, f"{_percent(share)} of the flows {what}")


def _ends(evidence: Evidence) -> Iterator[_Check]:
    """Frames that came after the drain, and a peer that failed."""
    if (drain_s := evidence.outlasted_drain_s) is not None:
        text = f"frames came later than {drain_s:g} s after the last was sent: others may have, and count as lost"
        yield _Check(Reason.LATE, "late", 1.0, text, 0.0)
    if evidence.peer_failure is not None:
        yield _Check(Reason.PEER_FAILED, "peer_failed", 1.0, f"a peer failed: {evidence.peer_failure}", 0.0)


def _share(part: float, whole: float) -> float:
    """A part of nothing is everything, unless it is nothing itself."""
    if whole > 0:
        return part / whole
    return 1.0 if part > 0 else 0.0


def _percent(share: float) -> str:
    """With a digit after the point, and two where it is small: ``6.4 %``, ``0.52 %``."""
    return f"{100 * share:.{1 if share >= 0.01 else 2}f} %"
