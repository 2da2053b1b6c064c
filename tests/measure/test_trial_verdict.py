"""What makes a trial invalid, and what may never matter."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from nicbench.core.clocks import ClockMapping
from nicbench.core.judging import Reason, Thresholds, Verdict
from nicbench.core.reading import Change, ChangeAction, ChangeKind, Counts, PathChanges, Stamps
from nicbench.core.trial import CpuTime, Health, PortReading, Reading, Trial, WorkerHealth
from nicbench.measure.ledger.base import Count, Side, View
from nicbench.measure.ledger.losses import add_ledger
from nicbench.measure.ledger.reader import Counters
from nicbench.measure.ledger.sources.drivers import Drivers
from nicbench.measure.ledger.sources.kernel import Links, Qdisc, Softnet
from nicbench.measure.trial_verdict import Evidence, PortEvidence, describe, find_changes, judge, leave_out

MakeReading = Callable[..., Reading]
MakeCpu = Callable[..., CpuTime]


def stamps(**changes: int) -> Stamps:
    """A card's clock that did nothing wrong, with these changes."""
    zero = dict.fromkeys(
        ("readings", "outliers", "steps", "stamped", "unstamped", "implausible", "early", "early_maximum_ns"), 0
    )
    return Stamps(source="card", **{**zero, **changes})


def verdict_on(reading: Reading, thresholds: Thresholds | None = None) -> Verdict:
    return judge(Evidence.of(reading, dut_cpus={1}), thresholds or Thresholds())


def test_a_quiet_trial_is_valid_however_much_the_dut_lost(reading: MakeReading) -> None:
    assert verdict_on(reading(lost=900_000, received=100_000)).valid


@pytest.mark.parametrize(
    ("change", "reason", "says"),
    [
        ({"longest_gap_ns": 50_000_000}, Reason.DISTURBED, "stalled for 50.0 ms at a stretch"),
        ({"total_gap_ns": 80_000_000}, Reason.DISTURBED, "stalled for 8.0 % of the transmission"),
        ({"clock_step_ns": -3_000_000}, Reason.CLOCK_STEP, "moved by 3.000 ms"),
        ({"unsent_tester": 20_000, "sent": 980_000}, Reason.UNSENT, "did not send 2.0 %"),
        ({"receive_overrun": 500}, Reason.RECEIVE_OVERRUN, "own port t0 dropped 500 arriving frames"),
        ({"link_changed": True}, Reason.LINK_CHANGED, "link of the tester's port t0"),
        ({"timestamps": stamps(steps=2)}, Reason.CLOCK_STEP, "stamps the frames of port t0 was set 2 times"),
    ],
)
def test_one_disturbance_gives_one_finding_in_plain_words(
    reading: MakeReading, change: dict[str, Any], reason: Reason, says: str
) -> None:
    verdict = verdict_on(reading(**change))
    assert verdict.reasons == (reason,)
    assert says in verdict.findings[0].text


@pytest.mark.parametrize(("step_ns", "is_valid"), [(0.0, True), (90_000.0, True), (1_000_000.0, False)])
def test_a_clock_of_two_tester_machines_that_left_its_line_makes_a_trial_invalid(
    reading: MakeReading, step_ns: float, is_valid: bool
) -> None:
    mapping = ClockMapping(
        by="test links",
        offset_ns=0,
        drift_ppm=0.0,
        asymmetry_bound_ns=5000.0,
        fit_error_ns=step_ns,
        step_ns=step_ns,
        comparisons=4,
    )
    verdict = verdict_on(reading().replace(clocks=mapping))
    assert verdict.valid == is_valid
    if not is_valid:
        assert verdict.reasons == (Reason.CLOCK_STEP,)
        assert "left the line between them by 1.000 ms" in verdict.findings[0].text


@pytest.mark.parametrize("link_changed", [True, False])
def test_a_link_that_a_reset_takes_down_spoils_nothing(reading: MakeReading, link_changed: bool) -> None:
    """What could not be sent meanwhile does not count against the tester; where the link stayed up it does."""
    read = reading(link_changed=link_changed, unsent_tester=20_000, sent=980_000)
    verdict = judge(Evidence.of(read, link_may_change=True), Thresholds())
    assert verdict.valid == link_changed
    assert Reason.LINK_CHANGED not in verdict.reasons


@pytest.mark.parametrize(
    ("busy", "threshold"),
    [
        ({"user": 1_600}, "dut_foreign_cpu_share"),
        ({"nice": 1_600}, "dut_foreign_cpu_share"),
        ({"steal": 300}, "dut_steal_share"),
    ],
)
def test_somebody_else_on_the_duts_core_disturbs_it(
    reading: MakeReading, cpu: MakeCpu, busy: dict[str, int], threshold: str
) -> None:
    verdict = verdict_on(reading(cpus=(cpu(0), cpu(1, **busy))))
    assert [finding.threshold for finding in verdict.findings] == [threshold]
    assert verdict.reasons == (Reason.DUT_DISTURBED,)
    assert "core 1" in verdict.findings[0].text


def test_a_neighbour_on_the_duts_physical_core_disturbs_it(reading: MakeReading, cpu: MakeCpu) -> None:
    shared = cpu(1).replace(speed_samples=50, slow_samples=20)
    (finding,) = verdict_on(reading(cpus=(cpu(0), shared))).findings
    assert (finding.threshold, finding.value) == ("dut_contended_share", 0.4)
    assert verdict_on(reading(cpus=(cpu(0), shared.replace(slow_samples=2)))).valid


def test_a_pause_of_the_duts_core_disturbs_it(reading: MakeReading, cpu: MakeCpu) -> None:
    paused = cpu(1).replace(longest_pause_ns=9_000_000)
    (finding,) = verdict_on(reading(cpus=(cpu(0), paused))).findings
    assert (finding.threshold, finding.value) == ("dut_pause_ms", 9.0)
    assert verdict_on(reading(cpus=(cpu(0), paused.replace(longest_pause_ns=2_000_000)))).valid


def test_interrupt_time_on_the_duts_core_is_its_own_work(reading: MakeReading, cpu: MakeCpu) -> None:
    assert verdict_on(reading(cpus=(cpu(1, softirq=5_000, irq=500),))).valid


def test_the_testers_own_core_may_be_busy(reading: MakeReading, cpu: MakeCpu) -> None:
    assert verdict_on(reading(cpus=(cpu(0, user=5_000), cpu(1)))).valid


def test_back_pressure_of_the_dut_is_not_the_testers_shortfall(reading: MakeReading) -> None:
    assert verdict_on(reading(unsent_backpressure=500_000, sent=500_000)).valid


def test_a_failed_peer_is_named(reading: MakeReading) -> None:
    verdict = judge(Evidence.of(reading(), peer_failure="b: connection closed"), Thresholds())
    assert verdict.reasons == (Reason.PEER_FAILED,)
    assert "b: connection closed" in verdict.findings[0].text


@pytest.mark.parametrize(
    ("lasting_s", "step_ns", "is_valid"),
    [
        (1, 1_010_000, True),
        (1, 1_030_000, False),
        (300, -1_215_000, True),
        (300, 6_900_000, True),
        (300, 7_100_000, False),
    ],
)
def test_clocks_that_nobody_set_may_drift_apart_by_the_length_of_the_trial(
    reading: MakeReading, lasting_s: int, step_ns: int, is_valid: bool
) -> None:
    verdict = verdict_on(reading(clock_step_ns=step_ns).replace(transmit_ns=lasting_s * 10**9))
    assert verdict.valid == is_valid
    if not is_valid:
        assert verdict.findings[0].limit == pytest.approx(1.0 + 0.02 * lasting_s)


def test_an_unknown_clock_step_is_no_finding(reading: MakeReading) -> None:
    assert verdict_on(reading(clock_step_ns=None)).valid


def test_a_bench_file_may_move_a_threshold(reading: MakeReading) -> None:
    assert verdict_on(reading(longest_gap_ns=50_000_000), Thresholds(longest_gap_ms=60.0)).valid


numbers = st.integers(min_value=0, max_value=2_000_000)


@given(
    unsent=st.integers(min_value=0, max_value=1_000_000),
    longest=st.integers(min_value=0, max_value=100_000_000),
    overrun=st.integers(min_value=0, max_value=100),
    fates=st.lists(st.tuples(numbers, numbers, numbers, numbers, numbers, numbers, numbers), min_size=2, max_size=2),
)
def test_a_verdict_never_depends_on_what_was_lost_received_or_corrupted(
    unsent: int, longest: int, overrun: int, fates: list[tuple[int, ...]]
) -> None:
    names = ("received", "lost", "unattributed", "duplicated", "reordered", "corrupted", "foreign")
    verdicts = []
    for fate in fates:
        reading = Reading(
            transmit_ns=1_000_000_000,
            counts=Counts(
                intended=1_000_000,
                sent=1_000_000 - unsent,
                unsent_tester=unsent,
                **dict(zip(names, fate, strict=True)),
            ),
            streams=(),
            ports=(PortReading(name="t0", foreign=fate[6], corrupted_unattributed=fate[5], receive_overrun=overrun),),
            latency=None,
            health=Health(
                longest_gap_ns=longest,
                total_gap_ns=longest,
                gap_floor_ns=100_000,
                gaps=1,
                iterations=1,
                idle_iterations=0,
            ),
            unexplained=fate[1],
        )
        verdicts.append(verdict_on(reading))
    assert verdicts[0] == verdicts[1]


@pytest.mark.parametrize(("each_ns", "is_valid"), [(15_000_000, True), (60_000_000, False)])
def test_each_of_several_workers_may_be_away_as_long_as_one_alone(
    each_ns: int, is_valid: bool, reading: Callable[..., Reading]
) -> None:
    worker = WorkerHealth(
        longest_gap_ns=1_000_000, total_gap_ns=each_ns, gaps=60, iterations=10**6, idle_iterations=10**5, sent=10**6
    )
    together = reading(workers=(worker,) * 4, total_gap_ns=4 * each_ns)
    assert verdict_on(together).valid is is_valid


def test_the_evidence_has_no_place_for_the_fate_of_a_frame() -> None:
    assert not set(Evidence.model_fields) & {"counts", "received", "lost", "corrupted", "late", "duplicated"}


def test_the_table_of_thresholds_can_be_printed_and_holds_no_zero() -> None:
    rows = Thresholds(longest_gap_ms=7.0).rows()
    assert [row.name for row in rows] == list(Thresholds.model_fields)
    assert (rows[0].value, rows[0].default, rows[0].unit) == (7.0, 20.0, "ms")
    assert all(row.default > 0 and row.unit and row.why for row in rows)


def test_a_threshold_of_zero_is_refused() -> None:
    with pytest.raises(ValidationError):
        Thresholds(longest_gap_ms=0.0)


def test_a_dut_in_user_space_that_others_kept_from_running_is_disturbed(reading: MakeReading) -> None:
    def waiting(share: float | None) -> Verdict:
        return verdict_on(reading().replace(dut_waiting_share=share))

    assert waiting(0.5).reasons == (Reason.DUT_DISTURBED,)
    assert "kept the DUT from running for 50.0 % of the trial" in waiting(0.5).findings[0].text
    assert waiting(0.01).valid
    assert waiting(None).valid


def test_what_a_lossless_port_refused_is_no_shortfall_of_the_tester(reading: MakeReading) -> None:
    refused = reading(unsent_backpressure=400_000, sent=600_000, received=600_000)
    assert verdict_on(refused).valid
    assert refused.counts.loss_ratio == pytest.approx(0.4)


# What a search allows for makes its trials adjusted and valid; any other trial is invalid by it.


PAUSED = {"longest_gap_ns": 30_000_000, "total_gap_ns": 30_000_000}
FELL_SHORT = {"unsent_tester": 200_000}
OVERRUN = PortEvidence(name="t0", receive_overrun=1000, link_changed=False)


def evidence(slow: int = 5, steal_ns: int = 0, **changes: Any) -> Evidence:
    """Evidence of a trial in which ``slow`` of 500 samples found the DUT's core shared."""
    times = {"user_ns": 0, "nice_ns": 0, "system_ns": 0, "softirq_ns": 900, "irq_ns": 0, "idle_ns": 100}
    core = CpuTime.model_validate({"cpu": 1, **times, "steal_ns": steal_ns, "speed_samples": 500, "slow_samples": slow})
    given = {"transmit_ns": 10**9, "intended": 10**6, "unsent_tester": 0, "dut_cpus": (core,)}
    return Evidence.model_validate(given | changes)


ALLOWED_FOR = pytest.mark.parametrize(
    "found",
    [evidence(200), evidence(steal_ns=500), evidence(**PAUSED), evidence(**FELL_SHORT), evidence(200, **PAUSED)],
    ids=["shared core", "stolen", "paused", "fell short", "shared core and paused"],
)


@ALLOWED_FOR
def test_a_shared_core_and_a_tester_that_paused_or_fell_short_leave_a_trial_of_a_search_usable(found: Evidence) -> None:
    verdict = judge(found, Thresholds(), adjusts=True)
    assert (verdict.valid, verdict.adjusted) == (True, True)
    assert verdict.findings


@ALLOWED_FOR
def test_without_a_search_that_allows_for_it_the_same_trial_is_invalid(found: Evidence) -> None:
    verdict = judge(found, Thresholds())
    assert (verdict.valid, verdict.adjusted) == (False, False)


def test_a_quiet_trial_is_valid_and_has_nothing_to_adjust_for() -> None:
    verdict = judge(evidence(), Thresholds(), adjusts=True)
    assert (verdict.valid, verdict.adjusted) == (True, False)


@pytest.mark.parametrize(
    "also",
    [{"ports": (OVERRUN,)}, {"clock_step_ns": 5_000_000}, {"outlasted_drain_s": 0.1}],
    ids=["overrun", "clock", "late frames"],
)
def test_whatever_else_was_found_leaves_it_invalid(also: dict[str, Any]) -> None:
    verdict = judge(evidence(200, **PAUSED, **also), Thresholds(), adjusts=True)
    assert (verdict.valid, verdict.adjusted) == (False, False)


# What others change on the path of frames: told in words, never charged to the device.


MakeTrial = Callable[..., Trial]
MTU = Change(
    network="dut",
    kind=ChangeKind.LINK,
    action=ChangeAction.CHANGED,
    device="d1",
    what="mtu",
    before="1500",
    after="1300",
    after_ns=520_000_000,
)
ROUTE = Change(
    network="dut", kind=ChangeKind.ROUTE, action=ChangeAction.ADDED, what="10.1.0.0/16", after="blackhole", pid=7
)
RULESET = Change(
    network="dut",
    kind=ChangeKind.RULESET,
    action=ChangeAction.CHANGED,
    what="filter",
    after_ns=1_000_000_000,
    pid=4711,
    process="nft",
)
SETTING = Change(
    network="dut",
    kind=ChangeKind.SETTING,
    action=ChangeAction.CHANGED,
    what="net.ipv4.conf.all.forwarding",
    after="0",
    after_ns=0,
)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (MTU, "in dut, d1: mtu changed from 1500 to 1300 after 0.52 s"),
        (ROUTE, "in dut: route 10.1.0.0/16 added (blackhole) meanwhile by process 7"),
        (RULESET, "in dut: nftables ruleset (table filter) changed after 1.00 s by nft (process 4711)"),
        (SETTING, "in dut: net.ipv4.conf.all.forwarding changed to 0 after 0.00 s"),
    ],
)
def test_a_change_says_what_where_when_and_by_whom(change: Change, words: str) -> None:
    assert describe(change) == words


def test_a_trial_in_which_the_path_changed_is_invalid_and_counts_every_change(trial: MakeTrial) -> None:
    reading = trial(0).reading.replace(changes=PathChanges(changes=(MTU, ROUTE, RULESET, SETTING)))
    verdict = judge(Evidence.of(reading), Thresholds(), adjusts=True)
    assert not verdict.valid
    (finding,) = verdict.findings
    assert (finding.reason, finding.value) == (Reason.CHANGED, 4.0)
    assert "mtu" in finding.text
    assert finding.text.endswith("and 1 more change")


@pytest.mark.parametrize("seen", [None, PathChanges()])
def test_nothing_is_found_where_nothing_changed_or_nobody_watched(seen: PathChanges | None) -> None:
    assert not list(find_changes(seen))


def test_what_a_trial_does_on_purpose_is_no_fault_of_the_path(trial: MakeTrial) -> None:
    reading = trial(0).reading.replace(changes=PathChanges(changes=(MTU,)))
    assert not Evidence.of(reading, link_may_change=True).changes


def test_what_the_device_changes_by_itself_is_left_out() -> None:
    left = leave_out(PathChanges(changes=(MTU, ROUTE)), {ChangeKind.ROUTE})
    assert left.changes == (MTU,)


def test_more_than_the_kernel_could_tell_is_a_change_too() -> None:
    (finding,) = find_changes(PathChanges(overflowed=("dut",)))
    assert finding.reason is Reason.CHANGED


# Frames that the loss ledger finds dropped inside the tester do not count as losses of the DUT: the trial is invalid.


LOST = 20_000


def view(side: Side = Side.TESTER, kind: str = "", driver: str = "ixgbe") -> View:
    return View(side, ("eth1",), {}, {"eth1": kind}, {"eth1": driver}, {"t1": "eth1"})


def links(of: View, rx: dict[str, int] | None = None, tx: dict[str, int] | None = None) -> tuple[Count, ...]:
    receive = {"dropped": 0, "missed_errors": 0, "errors": 0, **(rx or {})}
    transmit = {"dropped": 0, "errors": 0, **(tx or {})}
    return Links().read(json.dumps([{"ifname": "eth1", "stats64": {"rx": receive, "tx": transmit}}]), of)


def driver(of: View, **counters: int) -> tuple[Count, ...]:
    return Drivers().read("@ eth1\n" + "".join(f"  {name}: {value}\n" for name, value in counters.items()), of)


def qdisc(of: View, drops: int) -> tuple[Count, ...]:
    return Qdisc().read(json.dumps([{"dev": "eth1", "kind": "pfifo", "root": True, "drops": drops}]), of)


def backlog(of: View, drops: int) -> tuple[Count, ...]:
    """A CPU's full backlog, and the card that the frames came from."""
    fields = ["00000000", f"{drops:08x}", *["00000000"] * 10, "00000003"]
    return (*Softnet().read(" ".join(fields), of), *links(of, rx={"dropped": drops}))


def judged(after: tuple[Count, ...] = (), lost: int = LOST, **port: Any) -> tuple[Reading, Verdict]:
    """A trial that lost frames while these counters rose from 0; ``port`` is what the tester's own port says."""
    ports = (
        PortReading(name="t0", foreign=0, receive_overrun=0),
        PortReading(**{"name": "t1", "foreign": 0, "receive_overrun": 0, **port}),
    )
    reading = Reading(
        transmit_ns=10**9,
        counts=Counts(intended=10**6, sent=10**6, received=10**6 - lost, lost=lost),
        streams=(),
        ports=ports,
        latency=None,
        health=Health(longest_gap_ns=10, total_gap_ns=0),
    )
    before = tuple(Count(count.key, count.name, 0) for count in after)
    reading = add_ledger(reading, {}, {}, (Counters(before), Counters(after)), lambda _: view(), {1})
    return reading, judge(Evidence.of(reading), Thresholds())


@pytest.mark.parametrize(
    ("after", "reason", "counter"),
    [
        (links(view(), rx={"missed_errors": LOST}), Reason.RECEIVE_OVERRUN, "eth1 rx_missed_errors 20000"),
        (driver(view(), rx_no_dma_resources=LOST), Reason.RECEIVE_OVERRUN, "eth1 rx_no_dma_resources 20000"),
        (driver(view(driver="i40e"), rx_dropped=LOST), Reason.RECEIVE_OVERRUN, "receive ring: eth1 rx_dropped 20000"),
        (backlog(view(), LOST), Reason.RECEIVE_OVERRUN, "backlog of CPU 3: softnet_backlog cpu3 20000"),
        (qdisc(view(), LOST), Reason.TRANSMIT_REFUSED, "pfifo qdisc of eth1"),
        (links(view(), tx={"errors": LOST}), Reason.TRANSMIT_REFUSED, "eth1 tx_errors 20000"),
        (links(view(Side.PEER), tx={"dropped": LOST}), Reason.TRANSMIT_REFUSED, "eth1 tx_dropped 20000"),
    ],
)
def test_what_the_tester_dropped_makes_a_trial_invalid_and_is_named(
    after: tuple[Count, ...], reason: Reason, counter: str
) -> None:
    reading, verdict = judged(after)
    assert reading.unexplained == 0
    assert verdict.reasons == (reason,)
    assert "the tester itself dropped 20000" in verdict.findings[0].text
    assert counter in verdict.findings[0].text


def test_frames_that_a_dpdk_port_could_not_send_make_a_trial_invalid() -> None:
    _, verdict = judged(counters={"oerrors": LOST})
    assert verdict.reasons == (Reason.TRANSMIT_REFUSED,)
    assert "t1 oerrors 20000" in verdict.findings[0].text


@pytest.mark.parametrize(
    "after",
    [
        links(view(), rx={"dropped": LOST}),  # LLDP and the like are in it
        links(view(), rx={"errors": LOST}),  # a cable's, or the DUT's
        links(view(), rx={"nohandler": LOST}),
        driver(view(), rx_crc_errors=LOST),
        links(view(Side.DUT), rx={"missed_errors": LOST}),
        qdisc(view(Side.DUT), LOST),
        links(view(kind="veth"), tx={"dropped": LOST}),  # the queue of the DUT's end
        driver(view(kind="veth", driver="veth"), rx_queue_0_drops=LOST),
    ],
)
def test_what_others_dropped_is_no_fault_of_the_tester(after: tuple[Count, ...]) -> None:
    _, verdict = judged(after)
    assert verdict.valid


def test_frames_that_the_port_counts_as_overruns_too_are_told_once() -> None:
    reading, verdict = judged(links(view(), rx={"missed_errors": LOST}), receive_overrun=LOST)
    (finding,) = verdict.findings
    assert finding.text == "the tester's own port t1 dropped 20000 arriving frames"
    assert reading.counts.lost == LOST


def test_drops_beside_a_trial_that_lost_nothing_were_of_other_frames() -> None:
    _, verdict = judged(links(view(), rx={"missed_errors": LOST}), lost=0)
    assert verdict.valid


def test_the_journal_says_which_places_are_the_testers() -> None:
    reading, _ = judged(links(view(), rx={"missed_errors": LOST, "dropped": 3}))
    again = Reading.model_validate_json(reading.model_dump_json())
    assert {row.counter: row.by_tester for row in again.ledger} == {
        "eth1 rx_missed_errors": True,
        "eth1 rx_dropped": False,
    }
