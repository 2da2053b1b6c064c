"""What a result says of broadcasts among its frames: which ports got them."""

from __future__ import annotations

from tests.methods.known import reading_of

from nicbench.core.judging import Verdict
from nicbench.core.reading import Counts
from nicbench.core.result import Result
from nicbench.core.trial import PortReading, Purpose, StreamReading, Trial, TrialRequest
from nicbench.measure.completing import add_broadcasts


def told(**received: int) -> object:
    """Of 100 broadcasts so many came to each port."""
    ports = tuple(PortReading(name=name) for name in ("t0", *received))
    load = StreamReading(name="0->1", counts=Counts(intended=900, sent=900, received=900, lost=0))
    beside = tuple(
        StreamReading(name=f"0->{port} to all", counts=Counts(intended=100, sent=100, received=came, lost=100 - came))
        for port, came in enumerate(received.values(), start=1)
    )
    request = TrialRequest(
        frame_bytes=64, load_frames_per_s=1000.0, duration_s=1.0, drain_s=0.0, settle_s=0.0, purpose=Purpose.SEARCH
    )
    trial = Trial(
        id="t0001", key="k", test="t", configuration="default", parameters={}, repeat=0, request=request,
        reading=reading_of(1.0, [load], beside=beside, ports=ports), verdict=Verdict(findings=()),
    )  # fmt: skip
    result = Result(id="t/64", method="throughput", parameters={}, values={}, trials=("t0001",))
    return add_broadcasts(result, (trial,)).values.get("broadcasts")


def test_ports_without_all_of_them_are_named() -> None:
    assert told(t1=100, t2=100) == "10 % of all frames; every receiving port got all of them"
    assert told(t1=100, t2=90, t3=0) == "10 % of all frames; t2 got 90 of 100, t3 got 0 of 100; the other ports got all"
    assert told(t1=0) == "10 % of all frames; t1 got 0 of 100"


def test_nothing_is_said_where_none_were_sent() -> None:
    assert told() is None
