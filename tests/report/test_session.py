"""The report of a session of clients: one answer over all transmissions, and no words of runs that repeat trials."""

from __future__ import annotations

import pytest

from nicbench.core.judging import Finding, Reason, Verdict
from nicbench.core.reading import Counts
from nicbench.core.result import Result, ResultVerdict
from nicbench.core.trial import Health, Purpose, Reading, Trial, TrialRequest
from nicbench.report.answer.sentences import brief, headline, reliability, verdict_text

CUT = Finding(reason=Reason.TESTER_FAILED, threshold="tester_failed", value=1.0, limit=0.0, text="it was cut off")


def transmission(number: int, sent: int, lost: int, *findings: Finding) -> Trial:
    counts = Counts(intended=sent, sent=sent, received=sent - lost, lost=lost)
    return Trial(
        id=Trial.id_of(number),
        key=f"transmissions/{number}/0",
        test="transmissions",
        configuration="default",
        parameters={"transmission": number},
        repeat=0,
        request=TrialRequest(
            frame_bytes=64, load_frames_per_s=1, duration_s=1, drain_s=0.5, settle_s=0, purpose=Purpose.SERVED
        ),
        reading=Reading(
            transmit_ns=10**9, sending_ns=10**9, counts=counts, streams=(), ports=(), latency=None, health=Health()
        ),
        verdict=Verdict(findings=findings),
    )


MOST = (
    "The DUT lost 600 of the 4\u202f000 frames that clients sent in 2 transmissions (15 % of them, most in "
    "transmission 2: 20 % of its frames)."
)
CUT_OFF = (
    "The DUT lost none of the 1\u202f000 frames that clients sent through it. Transmission 3 was cut off: what was "
    "lost then is not known."
)
CALM, LOSSY, BROKEN = transmission(1, 1000, 0), transmission(2, 3000, 600), transmission(3, 500, 0, CUT)


@pytest.mark.parametrize(
    ("transmissions", "said"),
    [
        ((), "No frame was counted: clients sent none, or only such as nobody receives or that have no metrics."),
        (
            (CALM, BROKEN),
            CUT_OFF,
        ),
        ((CALM,), "The DUT lost none of the 1\u202f000 frames that clients sent through it."),
        ((LOSSY,), "The DUT lost 600 of the 3\u202f000 frames that clients sent through it (20 % of them)."),
        (
            (CALM, LOSSY),
            MOST,
        ),
    ],
)
def test_the_answer_counts_what_was_lost_over_all_transmissions(transmissions: tuple[Trial, ...], said: str) -> None:
    assert headline(transmissions, None) == said


def test_the_verdict_names_transmissions_that_were_disturbed_and_promises_no_repeat() -> None:
    said = verdict_text((CALM, LOSSY, BROKEN), has_ended=True)
    assert said.startswith("1 of 3 transmissions was disturbed or cut off: 3.")
    assert "repeat" not in said
    assert "None is repeated" in reliability((CALM, BROKEN))
    assert "nicbench resume" not in verdict_text((CALM,), has_ended=False)
    assert verdict_text((), has_ended=True) == "Clients started no flow."


def test_a_list_of_runs_says_how_much_was_lost_at_most() -> None:
    results = [
        Result(
            id=f"transmissions/{number}/1",
            test="transmissions",
            method="transmission",
            scope="per flow",
            parameters={"transmission": number, "flow": "f"},
            values={"loss_percent": loss},
            verdict=ResultVerdict.VALID,
            trials=(f"t000{number}",),
        )
        for number, loss in ((1, 0.0), (2, 20.0), (3, None))
    ]
    assert brief(results) == "3 transmissions, at most 20 % lost"
    assert brief(results[:1]) == "1 transmission, nothing lost"
    assert brief([results[0].replace(method="throughput")]) is None
