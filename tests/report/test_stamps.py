"""What the report says of time stamps: whose they were, how fine, and what of them cannot be right."""

from __future__ import annotations

from typing import Any

from nicbench.core.judging import Verdict
from nicbench.core.reading import Counts, Stamps
from nicbench.core.trial import Health, Latency, PortReading, Purpose, Reading, Trial, TrialRequest
from nicbench.report.timing import clock_rows, warnings, words

LATENCY = Latency(
    source="software", received_by="card", resolution_ns=6.4, count=100, minimum_ns=0, mean_ns=5.0, maximum_ns=9
)
CLOCK: dict[str, Any] = {
    "source": "card",
    **dict.fromkeys(("readings", "outliers", "steps", "unstamped", "implausible", "early", "early_maximum_ns"), 0),
    "stamped": 100,
}


def trial(latency: Latency = LATENCY, **clock: Any) -> Trial:
    health = Health(longest_gap_ns=0, total_gap_ns=0, gap_floor_ns=1, gaps=0, iterations=1, idle_iterations=0)
    ports = (
        PortReading(name="t0", foreign=0, corrupted_unattributed=0, receive_overrun=0),
        PortReading(
            name="t1",
            foreign=0,
            corrupted_unattributed=0,
            receive_overrun=0,
            timestamps=Stamps(**{**CLOCK, **clock}),
        ),
    )
    counts = Counts(intended=100, sent=100, received=100, lost=0)
    reading = Reading(transmit_ns=1, counts=counts, streams=(), ports=ports, latency=latency, health=health)
    request = TrialRequest(
        frame_bytes=64, load_frames_per_s=1.0, duration_s=1, drain_s=1, settle_s=1, purpose=Purpose.LATENCY
    )
    return Trial(
        id="t0001",
        key="k",
        test="latency",
        configuration="default",
        parameters={},
        repeat=0,
        request=request,
        reading=reading,
        verdict=Verdict(),
    )


def test_both_ends_are_named_once_with_the_resolution() -> None:
    other = LATENCY.replace(source="scheduled", received_by="tsc", resolution_ns=None)
    said = words([LATENCY, LATENCY, other])
    assert len(said) == 2
    assert "received ones by the card, each when it arrives, in steps of 6.4 ns" in said[0]
    assert said[1].endswith("received ones by software (TSC) when their burst has been received")


def test_only_ports_with_a_clock_of_their_own_have_a_row() -> None:
    rows = clock_rows([("64", trial())])
    assert [(row.size, row.port, row.stamps.stamped) for row in rows] == [("64", "t1", 100)]


def test_stamps_without_fault_need_no_words() -> None:
    assert warnings("64 bytes", trial()) == ()


def test_what_cannot_be_right_is_said_with_its_numbers() -> None:
    latency = LATENCY.replace(negative=7, negative_maximum_ns=250)
    said = warnings("64 bytes", trial(latency, unstamped=3, implausible=2, early=4, early_maximum_ns=90))
    assert "7 of 100 frames of 64 bytes arrived, by their stamps, up to 250 ns before they were sent" in said[0]
    assert "at port t1, 3 bore no stamp and 2 one that cannot be" in said[1]
    assert "4 stamps of 64 bytes at port t1 are up to 90 ns later" in said[2]
