"""The answer of a session of clients: what became of all that they sent, and whether anything disturbed it."""

from __future__ import annotations

from collections.abc import Sequence

from nicbench.core.judging import Reason
from nicbench.core.plan import Plan
from nicbench.core.registry import find
from nicbench.core.result import Result
from nicbench.core.trial import Trial
from nicbench.core.turn import DEFAULT
from nicbench.core.units import format_ratio
from nicbench.methods.base import Method
from nicbench.report.answer.sentences import subject_in
from nicbench.report.numbers import whole

_MOST_NAMED = 5


def is_of_session(plan: Plan) -> bool:
    """Returns whether clients said what was sent."""
    kinds = find("nicbench.methods", Method)
    return any(kinds[test.method].of_sessions for test in plan.tests if test.method in kinds)


def headline(transmissions: Sequence[Trial], plan: Plan | None) -> str:
    """Returns the answer: how many of the frames were lost, over all transmissions, and where most were.

    What was under way when a transmission was cut off is not known, so that it is no part of the answer.
    """
    cut = [number_of(trial) for trial in transmissions if is_cut_off(trial)]
    whole_ones = [trial for trial in transmissions if not is_cut_off(trial)]
    said = _say_lost(whole_ones, subject_in(plan, DEFAULT))
    if not cut:
        return said
    which = f"Transmission {cut[0]} was" if len(cut) == 1 else f"{len(cut)} transmissions were"
    return f"{said} {which} cut off: what was lost then is not known."


def is_cut_off(transmission: Trial) -> bool:
    """Returns whether the tester failed in the midst of it."""
    return Reason.TESTER_FAILED in transmission.verdict.reasons


def _say_lost(transmissions: Sequence[Trial], subject: str) -> str:
    counts = [trial.reading.counts for trial in transmissions]
    sent, lost = sum(each.sent for each in counts), sum(each.lost for each in counts)
    if not sent:
        return "No frame was counted: clients sent none, or only such as nobody receives or that have no metrics."
    uncounted = sum(each.sent for trial in transmissions if (each := trial.reading.uncounted) is not None)
    beside = f" What became of {whole(uncounted)} frames beside them was counted by nobody." if uncounted else ""
    what = "that clients sent through it" if len(counts) == 1 else f"that clients sent in {len(counts)} transmissions"
    if not lost:
        return f"{subject} lost none of the {whole(sent)} frames {what}.{beside}"
    worst = max(transmissions, key=lambda trial: trial.reading.counts.lost / max(1, trial.reading.counts.sent))
    share = f"{_percent(lost, sent)} of them"
    if len(counts) > 1:
        of_worst = worst.reading.counts
        share += f", most in transmission {number_of(worst)}: {_percent(of_worst.lost, of_worst.sent)} of its frames"
    return f"{subject} lost {whole(lost)} of the {whole(sent)} frames {what} ({share}).{beside}"


def verdict_text(transmissions: Sequence[Trial], *, has_ended: bool) -> str:
    """Says what the verdict means. ``has_ended``: whether the session did, so that nothing follows."""
    if not has_ended:
        return (
            "The session has not ended: this is what was written so far. If its server was killed, “nicbench restore” "
            "restores the machine."
        )
    if not transmissions:
        return "Clients started no flow."
    invalid = [number_of(trial) for trial in transmissions if not trial.verdict.valid]
    if not invalid:
        return "In every transmission the tester kept its pace and nothing disturbed it."
    shown = ", ".join(map(str, invalid[:_MOST_NAMED])) + (", ..." if len(invalid) > _MOST_NAMED else "")
    were = "was" if len(invalid) == 1 else "were"
    return (
        f"{len(invalid)} of {len(transmissions)} transmissions {were} disturbed or cut off: {shown}. Their rows are "
        "marked *, with the reason: treat their numbers as indications, or send again on a quieter machine."
    )


def brief(results: Sequence[Result]) -> str | None:
    """Returns a few words for a list of runs; None where the results are not those of a session."""
    of_sessions = {kind for kind, method in find("nicbench.methods", Method).items() if method.of_sessions}
    rows = [result for result in results if result.method in of_sessions]
    if not rows:
        return None
    number = len({result.parameters.get("transmission") for result in rows})
    values = (result.values.get("loss_percent") for result in rows)
    losses = [float(value) for value in values if isinstance(value, float | int)]
    most = max(losses, default=None)
    lost = "" if most is None else ", nothing lost" if most == 0 else f", at most {format_ratio(most / 100)} lost"
    return f"{number} transmission{'' if number == 1 else 's'}{lost}"


def reliability(transmissions: Sequence[Trial]) -> str:
    """Says how many transmissions are judged, and what of them a verdict looks at."""
    invalid = sum(1 for trial in transmissions if not trial.verdict.valid)
    return (
        f"Transmissions: {len(transmissions)}; invalid because of the tester or of other load: {invalid}. None is "
        "repeated: clients say what is sent. The number of frames lost never makes a transmission invalid. Each is a "
        "trial in the tables below: t0001 is transmission 1."
    )


def number_of(transmission: Trial) -> int:
    """Returns the number of a transmission, which counts those of its session."""
    return int(transmission.parameters["transmission"])


def _percent(part: int, whole_of: int) -> str:
    return format_ratio(part / max(1, whole_of))
