"""``nicbench optimise``: searches for the best combination of settings, and confirms it by runs of their own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from nicbench.cli.failure import ReportedError
from nicbench.cli.options import Json, NoProgress, Wait
from nicbench.cli.output import FORMAT, print_json, print_line, say
from nicbench.core.errors import HostError, NothingMeasuredError, NotReadyError

if TYPE_CHECKING:
    from nicbench.bench_file.optimised import Choice
    from nicbench.compare.claims import PointComparison
    from nicbench.core.result import Summary
    from nicbench.optimise import Search
    from nicbench.store.folder import RunFolder

_BenchOrFolder = Annotated[
    Path,
    typer.Argument(
        metavar="BENCH.yaml", help="The bench file, or the folder of a search to go on with it.", show_default=False
    ),
]
_Into = Annotated[Path, typer.Option("--into", metavar="DIR", help="Where the folder of the search is made.")]
_MOST_REFUSED: Final = 5
"""The search ends after this number of trials in a row that could not be measured: no setting is the cause."""
_MOST_SHOWN: Final = 5


def _optimise(
    bench: _BenchOrFolder,
    into: _Into = Path("searches"),
    no_progress: NoProgress = False,
    wait: Wait = 0.0,
    json: Json = False,
) -> None:
    from nicbench.bench_file import load  # imported here, as completion needs none of it
    from nicbench.optimise import Search

    search = Search.open(bench) if bench.is_dir() else Search.begin(load(bench), into)
    say(f"search: {search.path}")
    with_progress = not no_progress and not json
    _search(search, with_progress=with_progress, wait_s=wait)
    best = search.best
    if best is None:
        raise NothingMeasuredError("no trial has a value", place=str(search.path), next_step="read why above")
    found = None
    if best != search.wishes.first:
        folder = search.begin_confirmation(best)
        summary = _measure(search, folder, with_report=True, with_progress=with_progress, wait_s=wait)
        found = search.claim(summary, folder.run_id)
    if json:
        print_json(_document(search, best, found))
    else:
        _print(search, best, found)


def _search(search: Search, *, with_progress: bool, wait_s: float) -> None:
    """Makes the trials that are left, each as a run of its own."""
    from nicbench.store.folder import RunFolder

    refused = 0
    while (trial := search.begin_trial()) is not None:
        number = len(search.state.tried)
        say(f"trial {number} of {search.wishes.trials}: {_words(trial.choice)}")
        folder = RunFolder.open(search.runs / trial.run)
        try:
            summary = _measure(search, folder, with_report=False, with_progress=with_progress, wait_s=wait_s)
        except ReportedError as reported:
            refused += 1
            if number == 1 or refused == _MOST_REFUSED or not isinstance(reported.error, _OF_SETTINGS):
                say(f"to go on: nicbench optimise {search.path}")
                raise
            search.refuse_trial(reported.error.message)
            say(f"  cannot be measured: {reported.error.message}")
            continue
        refused = 0
        aim = search.end_trial(summary)
        said = "disturbed, or no number" if aim.number is None else aim.words(aim.number)
        say(f"  {aim.value.quantity.name}: {said}")


_OF_SETTINGS: Final = (HostError, NotReadyError, NothingMeasuredError)
"""Errors by which a machine refuses a combination of settings; the others end the search."""


def _measure(search: Search, folder: RunFolder, *, with_report: bool, with_progress: bool, wait_s: float) -> Summary:
    """Makes or finishes one run, and returns its summary."""
    from nicbench.cli.running import conduct_quietly

    if not folder.finished:
        conduct_quietly(
            search.bench_of(folder),
            folder,
            with_progress=with_progress,
            wait_s=wait_s,
            with_report=with_report,
            resumed=True,
        )
    summary = folder.summary()
    assert summary is not None  # noqa: S101 - the run is finished
    return summary


def _words(choice: Choice) -> str:
    return ", ".join(f"{name} {value}" for name, value in choice.items())


def _print(search: Search, best: Choice, found: PointComparison | None) -> None:
    from nicbench.optimise import rank

    ranked = rank(search.space, search.state.tried)
    combinations, aim = search.space.combinations, search.aim
    print_line(
        f"{len(search.state.tried)} trials of {len(ranked)} of {combinations:,} combinations; best in the search:"
    )
    for choice, mean, trials in ranked[:_MOST_SHOWN]:
        print_line(
            f"  {aim.words(mean)} ({'1 trial' if trials == 1 else f'mean of {trials} trials'}): {_words(choice)}"
        )
    if best == search.wishes.first:
        print_line("the first values were the best, so there is nothing to confirm or to change")
        return
    print_line(f"\nconfirmed by {search.wishes.runs} further runs of each, in turns, which the search did not use:")
    print_line(f"  best: {_words(best)}")
    print_line(f"  as-written: {_words(search.wishes.first)}")
    print_line(f"  {_claim(found)}")
    print_line(f"report: {search.runs / (search.state.confirmation or '') / 'report.html'}")


def _claim(found: PointComparison | None) -> str:
    """Says what the confirming runs show."""
    from nicbench.bench_file.optimised import BEST

    if found is None:
        return "the confirming runs did not measure the goal in both: nothing is claimed"
    text = found.sentence
    gain = gain_percent(found)
    if gain is None:
        return text
    if found.better != BEST:
        return f"the search's best is not confirmed: {text}"
    percent = " to ".join(dict.fromkeys(f"{end:.3g}" for end in gain))
    way = "more" if found.value.quantity.higher_is_better else "less"
    confidence = 100.0 * found.comparison.effect.confidence_ratio
    said = f"best has {percent} % {way} {found.value.quantity.name} ({confidence:g} % interval)"
    return f"{said}: {text}"


def gain_percent(found: PointComparison) -> tuple[float, float] | None:
    """Returns by how many percent the value of the better side is above, or below, that of the other, at least and at
    most; None where no difference is shown, or the effect is a difference.
    """
    effect = found.comparison.effect
    if not found.claim.basis.is_shown or effect.lower is None or effect.upper is None or effect.lower <= 0.0:
        return None
    if not found.comparison.kind.is_ratio:
        return None
    ends = (
        (effect.lower, effect.upper)
        if found.better == found.comparison.first.name
        else (1 / effect.upper, 1 / effect.lower)
    )
    return (
        (100.0 * (ends[0] - 1.0), 100.0 * (ends[1] - 1.0))
        if found.value.quantity.higher_is_better
        else (100.0 * (1.0 - ends[1]), 100.0 * (1.0 - ends[0]))
    )


def _document(search: Search, best: Choice, found: PointComparison | None) -> dict[str, Any]:
    gain = None if found is None else gain_percent(found)
    return {
        "format": FORMAT,
        "search": str(search.path),
        "combinations": search.space.combinations,
        "trials": [one.model_dump(mode="json") for one in search.state.tried],
        "first": search.wishes.first,
        "best": best,
        "confirmation": search.state.confirmation,
        "claim": None
        if found is None
        else {
            "shown": found.claim.basis.is_shown,
            "better": found.better,
            "percent": None if gain is None else list(gain),
            "sentence": found.sentence,
        },
    }


COMMANDS: Final = {"optimise": _optimise}
