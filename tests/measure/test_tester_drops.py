"""Frames that the loss ledger finds dropped inside the tester are no loss of the DUT: the trial is invalid."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nicbench.core.judging import Reason, Thresholds, Verdict
from nicbench.core.reading import Counts
from nicbench.core.trial import Health, PortReading, Reading
from nicbench.measure.ledger.base import Count, Side, View
from nicbench.measure.ledger.losses import add_ledger
from nicbench.measure.ledger.reader import Counters
from nicbench.measure.ledger.sources.drivers import Drivers
from nicbench.measure.ledger.sources.kernel import Links, Qdisc, Softnet
from nicbench.measure.trial_verdict import Evidence, judge

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
