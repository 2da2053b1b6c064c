"""A run that came to its end and measured nothing: the error that says why, and so its exit status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from nicbench.bench_file.models import BenchFile
from nicbench.core.errors import NicbenchError, NothingMeasuredError, ToolsFailedError
from nicbench.core.judging import Sample
from nicbench.core.result import Bounded, Result, ResultVerdict, Value, number_of
from nicbench.core.round import Round
from nicbench.methods.base import main_values

_OPTIONS = "compare each test's options with the ports of the bench file (both are in plan.json)"
_DISTURBANCES = "the report names what each result lacks; compare the options of each test with the ports"
_PEERS = (
    "see that each peer answers and that each tool runs there by hand (raw has their command lines and outputs), "
    "then run the bench file again"
)


def find_nothing_measured(
    bench: BenchFile, results: Iterable[Result], samples: Mapping[str, Sample], place: str
) -> NicbenchError | None:
    """Returns the error of a finished run without a figure; None where it has one.

    ToolsFailedError where every job of every round failed, else NothingMeasuredError. ``samples`` are the journal's.
    """
    results = tuple(results)
    if not results:
        why = f"no test gave a result: {_what_tests_did(bench, samples.values())}"
        return NothingMeasuredError(why, place=place, next_step=_OPTIONS)
    if any(_has_figure(result) for result in results):
        return None
    outcomes = [outcome for one in samples.values() if isinstance(one, Round) for outcome in one.outcomes]
    failures = [outcome.failure for outcome in outcomes if outcome.failure is not None]
    if not failures or len(failures) < len(outcomes):
        why = f"no result has a figure: {_reasons(results) or _what_tests_did(bench, samples.values())}"
        return NothingMeasuredError(why, place=place, next_step=_DISTURBANCES)
    last = failures[-1]
    why = (
        f"nothing was measured: {len(failures)} of {len(outcomes)} attempts of the tools failed, the last with: {last}"
    )
    return ToolsFailedError(why, place=place, next_step=_PEERS)


def _has_figure(result: Result) -> bool:
    """Whether it stands, or one of its main values is known though another is missing."""
    if result.verdict is not ResultVerdict.INCOMPLETE:
        return True
    return any(_is_known(result.values.get(name)) for name in main_values(result))


def _is_known(value: Value) -> bool:
    return number_of(value) is not None or (isinstance(value, Bounded) and value.upper is not None)


def _reasons(results: Iterable[Result]) -> str:
    """What the results say themselves, each once; the first three."""
    said = dict.fromkeys(text for result in results for text in (*_reasons_of_values(result), *result.disturbances))
    return "; ".join(list(said)[:3])


def _reasons_of_values(result: Result) -> Iterable[str]:
    values = (result.values.get(name) for name in main_values(result))
    return (value.reason_null for value in values if isinstance(value, Bounded) and value.reason_null is not None)


def _what_tests_did(bench: BenchFile, samples: Iterable[Sample]) -> str:
    """What each test did instead, in words."""
    made = Counter(sample.test for sample in samples)
    noun = "trial" if bench.measures == "frames" else "round"
    return "; ".join(
        f"{test.name} ({test.method_kind}) "
        + (f"made {made[test.name]} {noun}s and found nothing in them" if made[test.name] else f"requested no {noun}")
        for test in bench.tests
    )
