"""ECN marks: what a known bucket marks is found by codepoint and load, and every rule that it breaks is named."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nicbench.core.headers import Codepoint
from nicbench.core.reading import Counts, TrafficClasses
from nicbench.core.result import Bounded, LimitedBy, Result
from nicbench.core.trial import Reading, StreamReading, TrialRequest
from nicbench.methods._loads import TrialTimes
from nicbench.methods.ecn_marking import EcnMarking, marks_of
from nicbench.report.tables import sections

from .known import KnownContext, reading_of, run

DSCP = 46


class Bucket(KnownContext):
    """Passes a rate and a burst; what is over it is marked where it is ECT, and lost where it is not."""

    def __init__(self, rate: float, burst: int = 0, *, fault: str = "", **more: Any) -> None:
        super().__init__(**more)
        self.rate, self.burst, self.fault = rate, burst, fault

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        assert request.load_frames_per_s is not None
        assert request.codepoint is not None
        sent_as = request.codepoint
        sent = int(request.load_frames_per_s * request.duration_s)
        over = max(0, sent - int(self.rate * request.duration_s + self.burst))
        is_marked = sent_as is not Codepoint.NOT_ECT or self.fault == "marks Not-ECT"
        lost, marked = (0, over) if is_marked else (over, 0)
        arrived = {int(Codepoint.CE): marked, int(sent_as): sent - lost - marked}
        if sent_as is Codepoint.CE:
            arrived = {int(Codepoint.ECT_0 if self.fault == "clears CE" else Codepoint.CE): sent}
        dscp = 0 if self.fault == "clears DSCP" else DSCP
        classes = TrafficClasses(
            received=tuple((dscp << 2 | codepoint, frames) for codepoint, frames in arrived.items() if frames),
            marked_flows=(arrived.get(3, 0), 0),
            sent=DSCP << 2 | sent_as,
        )
        counts = Counts(intended=sent, sent=sent, received=sent - lost, lost=lost)
        return reading_of(request.duration_s, [StreamReading(name="0->1", counts=counts, traffic_classes=classes)])


async def marks(bucket: Bucket, rate: float = 2000.0, refinements: int = 6) -> list[Result]:
    options = EcnMarking.Options(
        rate=rate, loads=(0.25, 0.5, 0.75, 1.0), refinements=refinements, trial=TrialTimes(duration=10.0)
    )
    return list(await run(EcnMarking("marks", options), bucket))


def onset(results: list[Result], codepoint: str) -> Bounded:
    (found,) = [
        one.values["unmarked_frames_per_s"]
        for one in results
        if one.parameters["part"] == "onset" and one.parameters["codepoint"] == codepoint
    ]
    assert isinstance(found, Bounded)
    return found


@given(rate=st.floats(600.0, 1900.0), burst=st.integers(0, 500))
async def test_the_load_from_which_frames_are_marked_lies_in_its_interval(rate: float, burst: int) -> None:
    results = await marks(Bucket(rate, burst))
    known = rate + burst / 10.0
    for codepoint in ("ECT(0)", "ECT(1)"):
        found = onset(results, codepoint)
        if found.upper is None:
            assert known >= 2000.0 - 0.2
            continue
        assert found.lower is not None
        assert found.lower <= known + 0.2
        assert found.upper >= known - 0.2
        assert found.upper - found.lower <= 500.0 / 2**6 + 0.2


async def test_the_share_of_marks_is_what_is_over_the_rate_and_loss_is_that_of_others() -> None:
    results = await marks(Bucket(1000.0, 100), refinements=0)
    shares = {
        (one.parameters["codepoint"], one.parameters["load_percent"]): (
            one.values["marked_percent"],
            one.values["lost_percent"],
        )
        for one in results
        if one.parameters["part"] == "loads"
    }
    known = 100.0 * (1.0 - 10_100 / 20_000)
    assert shares["ECT(0)", 100.0] == (pytest.approx(known), 0.0)
    assert shares["Not-ECT", 100.0] == (0.0, pytest.approx(known))
    assert shares["ECT(1)", 50.0] == (0.0, 0.0)
    assert shares["CE", 100.0] == (0.0, 0.0)
    section = sections([one for one in results if one.parameters["part"] == "onset"], {})[0]
    assert section.sentence == "begins to mark ECT(0) frames at 1.0 to 1.5\u00a0kpps"


@pytest.mark.parametrize(("fault", "said"), [
    ("marks Not-ECT", "marks 10000 frames that are Not-ECT"),
    ("clears CE", "clears the CE of 20000 frames, to ECT(0)"),
    ("clears DSCP", "alters the DSCP of 20000 frames"),
])  # fmt: skip
async def test_every_rule_that_is_broken_is_named(fault: str, said: str) -> None:
    results = await marks(Bucket(1000.0, fault=fault), refinements=0)
    assert said in {one.values.get("handling") for one in results if one.parameters.get("load_percent") == 100.0}
    good = await marks(Bucket(1000.0), refinements=0)
    assert {one.values["handling"] for one in good if one.parameters["part"] != "onset"} == {"as RFC 3168"}
    whole, right = results[-1].values, good[-1].values
    assert said.rpartition(" ")[2] in str(whole["answer"])
    assert (whole["accepted"], right["accepted"], right["answer"]) == ("no", "yes", None)


async def test_marks_at_the_lowest_load_and_none_at_all_have_their_reasons() -> None:
    always, never = await marks(Bucket(100.0)), await marks(Bucket(5000.0))
    assert onset(always, "ECT(0)").reason_null == "frames were marked at the lowest load already"
    assert onset(never, "ECT(0)").at_least
    (none,) = sections([one for one in never if one.parameters["part"] == "onset"][:1], {})
    assert none.sentence == "marks nothing: no ECT(0) frame was marked at any load up to 2.000 kpps"


async def test_no_load_is_claimed_that_the_tester_did_not_send() -> None:
    results = await marks(Bucket(5000.0, sends=800.0))
    found = onset(results, "ECT(0)")
    assert (found.value, found.limited_by) == (pytest.approx(800.0), LimitedBy.TESTER)


def test_an_ect_codepoint_that_becomes_another_is_altered() -> None:
    counts = Counts(intended=9, sent=9, received=9, lost=0)
    classes = TrafficClasses(received=((1, 4), (2, 5)), marked_flows=(), sent=2)
    stream = StreamReading(name="0->1", counts=counts, traffic_classes=classes)
    assert list(marks_of([stream], Codepoint.ECT_0).faults()) == ["alters 4 frames, to ECT(1)"]


async def test_nothing_is_said_of_frames_that_never_arrived() -> None:
    class DropsEct(Bucket):
        """Of ECT(0) and CE nothing comes."""

        def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
            whole = super().read(point, request)
            if request.codepoint not in (Codepoint.ECT_0, Codepoint.CE):
                return whole
            (stream,) = whole.streams
            counts = stream.counts.replace(received=0, lost=stream.counts.sent)
            classes = TrafficClasses(received=(), marked_flows=(0, 0), sent=DSCP << 2 | request.codepoint)
            gone = stream.replace(counts=counts, traffic_classes=classes)
            return reading_of(request.duration_s, [gone])

    results = await marks(DropsEct(1e9))
    none = onset(results, "ECT(0)")
    assert (none.value, none.reason_null) == (None, "no frame arrived at any load")
    assert onset(results, "ECT(1)").at_least
    (rules,) = [one.values for one in results if one.parameters["part"] == "rules"]
    assert rules["accepted"] is None
    assert rules["handling"] == "not known: no ECT(0) frame arrived, no CE frame arrived"


async def test_marks_of_a_disturbed_trial_are_no_bound() -> None:
    every = await marks(Bucket(1_100.0, disturbed=range(1, 1000)))
    found = onset(every, "ECT(0)")
    assert (found.value, found.upper, found.limited_by) == (found.lower, None, None)
    assert found.lower is not None
    assert found.lower <= 1_100.0
    (last,) = [one for one in every if one.parameters["part"] == "onset" and one.parameters["codepoint"] == "ECT(0)"]
    assert last.values["marked_from_frames_per_s"] is None
