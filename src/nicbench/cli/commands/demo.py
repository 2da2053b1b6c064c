"""``nicbench demo``: a device whose rate is known, then this machine's IP forwarding; or a simulated device, or another
example. It needs no card and no bench file.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from nicbench.cli import completion
from nicbench.cli.options import DEFAULT_RUNS, Json, NoProgress, NoReport, RunsFolder, Wait
from nicbench.cli.output import print_line, say
from nicbench.core.errors import NotReadyError, ThresholdError, UsageError
from nicbench.core.result import Bounded, Result, ResultVerdict, Value, number_of
from nicbench.core.units import format_digits, format_lower, format_rate, format_span, format_upper

if TYPE_CHECKING:
    from nicbench.bench_file import BenchFile
    from nicbench.core.result import Summary
    from nicbench.core.trial import Trial


# What ``nicbench demo`` prints: whether the known device was found, and the table of the other one, in one screen.
# It is made of the summary and of the trials of the known device, without a terminal.

KNOWN: Final = "known"
"""The configuration whose device is known; every other one is measured on its strength."""
WIDTH: Final = 80
_UNKNOWN: Final = "–"
_RATE: Final = "ndr_frames_per_s"
_LATENCIES: Final = ("latency_p50_ns", "latency_p99_9_ns")
_HEADS: Final = (
    ("frame", "all trials", "some", "none", "latency", "latency"),
    ("[bytes]", "pass up to", "up to", "from", "median", "p99.9"),
)


def screen(summary: Summary, trials: Iterable[Trial]) -> str:
    """Returns the whole screen, of ``WIDTH`` columns at most."""
    checked = [each for each in summary.counted if each.configuration == KNOWN and "agreement" in each.values]
    culprit = _culprit(trial for trial in trials if trial.configuration == KNOWN and not _is_flood(trial, checked))
    measured = [each for each in summary.counted if each.configuration != KNOWN]
    return "\n".join((*_wrap(known_words(checked, culprit)), "", *_table(measured), *_doubts(measured)))


def known_words(checked: Sequence[Result], culprit: str | None) -> str:
    """Returns the sentence about the device whose rate is known; where it was missed without a culprit, with what its
    search says of itself.
    """
    from nicbench.stats.intervals import Agreement  # imported here, as completion needs no statistics

    if not checked:
        return "the known device was not measured: see the report"
    rates = [rate for each in checked if isinstance(rate := each.values[_RATE], Bounded)]
    ends = [end for rate in rates for end in (rate.lower, rate.upper) if end is not None]
    span = format_span(min(ends), max(ends)) if ends else "no rate"
    said = f"known device: expected {format_rate(number_of(checked[0].values['known_rate_frames_per_s']) or 0.0)}"
    missed = [each for each in checked if each.values["agreement"] != Agreement.AGREE.value]
    if not missed:
        return f"{said}, found {span} at every size: this machine can be measured on"
    sizes = ", ".join(map(_size, missed))
    notes = [note.removeprefix("NDR: ") for each in missed for note in each.disturbances]
    why = next((f": {one}" for one in (culprit, *notes) if one), "")
    return (
        f"{said}, found {span}, missed at {sizes} bytes{why}; "
        "`sudo nicbench doctor` says what disturbs this machine, and how to end it"
    )


def _is_flood(trial: Trial, checked: Sequence[Result]) -> bool:
    """Returns whether the tester was to send far more than the known device passes: then it may fall short."""
    known = max((number_of(each.values["known_rate_frames_per_s"]) or 0.0 for each in checked), default=0.0)
    return trial.request.load_frames_per_s is None or trial.request.load_frames_per_s > 2.0 * known


def _culprit(trials: Iterable[Trial]) -> str | None:
    """Returns the words of the commonest reason for which trials were invalid, where it was worst."""
    findings = [finding for trial in trials for finding in trial.verdict.findings]
    if not findings:
        return None
    commonest = Counter(finding.reason for finding in findings).most_common(1)[0][0]
    return max((one for one in findings if one.reason is commonest), key=lambda one: one.times_its_limit).text


def _table(results: Sequence[Result]) -> list[str]:
    rates = {_size(each): each.values[_RATE] for each in results if _RATE in each.values}
    timed = {_size(each): each.values for each in results if _LATENCIES[0] in each.values}
    doubted = {_size(each) for each in results if each.verdict is not ResultVerdict.VALID}
    rows = [
        (
            f"{size}*" if size in doubted else size,
            *_zones(rate),
            *(_microseconds(timed.get(size, {}).get(name)) for name in _LATENCIES),
        )
        for size, rate in rates.items()
    ]
    cells = [*_HEADS, *rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(_HEADS[0]))]
    return ["   ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]


def _doubts(results: Sequence[Result]) -> Iterator[str]:
    """Yields the lines below the table: each result that is not valid, and why."""
    for each in results:
        if each.verdict is not ResultVerdict.VALID:
            what = "rate" if _RATE in each.values else "latency"
            why = f": {each.disturbances[0]}" if each.disturbances else ""
            yield from _wrap(f"* {what} at {_size(each)} bytes is {each.verdict.value}{why}")


def _size(result: Result) -> str:
    return str(result.parameters.get("frame_bytes"))


def _zones(rate: Value) -> tuple[str, str, str]:
    """Returns up to where every trial passed, up to where some did, and from where on none did."""
    if not isinstance(rate, Bounded):
        return _UNKNOWN, _UNKNOWN, _UNKNOWN
    every, some = (_UNKNOWN if bound is None else format_lower(bound) for bound in (rate.lower, rate.some))
    return every, some, _UNKNOWN if rate.upper is None else format_upper(rate.upper)


def _microseconds(value: Value) -> str:
    number = number_of(value)
    return _UNKNOWN if number is None else f"{format_digits(number / 1e3)} µs"


def _wrap(text: str) -> list[str]:
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > WIDTH:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return lines


DEMO: Final = "demo"
SIMULATED: Final = "simulated"
SHARE: Final = 0.1
"""The rate of the known device, of what this machine forwards: far below the rate that the tester can send."""
BURST_SHARE: Final = 0.02
"""Its burst, of a second's frames: what a tester makes good at once after the machine has held it up for 20 ms."""

_Simulated = Annotated[
    bool, typer.Option("--simulated", help="Measure a simulated device: in seconds, without root and without packets.")
]
_Example = Annotated[
    str,
    typer.Argument(
        metavar="EXAMPLE", help="Another bench file that comes with nicbench.", autocompletion=completion.examples
    ),
]


def _demo(
    context: typer.Context,
    name: _Example = DEMO,
    simulated: _Simulated = False,
    runs_folder: RunsFolder = DEFAULT_RUNS,
    json: Json = False,
    no_progress: NoProgress = False,
    no_report: NoReport = False,
    wait: Wait = 0.0,
) -> None:
    from nicbench.bench_file import load  # imported here, as `--help` and completion need no parts of a run
    from nicbench.cli.failure import ReportedError
    from nicbench.cli.running import conduct
    from nicbench.core.shipped import example
    from nicbench.store.folder import RunFolder

    source = context.get_parameter_source("name")
    if simulated and source is not None and source.name == "COMMANDLINE" and name != SIMULATED:
        step = f"leave out `{name}` or --simulated: the simulated device is an example of its own"
        raise UsageError("--simulated measures no other example", place=name, next_step=step)
    name = SIMULATED if simulated else name
    path = example(name)
    if name != SIMULATED and os.geteuid() != 0:
        step = "sudo nicbench demo, or without root: nicbench demo --simulated"
        raise NotReadyError("only root may make network namespaces and send frames", next_step=step)
    bench = load(path)
    is_first = path.stem == DEMO
    if is_first:
        bench = _with_known_rate(bench, wait)
    folder = RunFolder.create(runs_folder, bench.source, bench.title)
    say(f"bench file: {path}\nrun folder: {folder.path}")

    def show(summary: Summary) -> None:
        print_line(f"\n{screen(summary, folder.journal.trials().values())}")

    try:
        conduct(
            bench,
            folder,
            as_json=json,
            with_progress=not no_progress,
            wait_s=wait,
            with_report=not no_report,
            show=show if is_first else None,
        )
    except ReportedError as ended:
        if json or not is_first or not isinstance(ended.error, ThresholdError):
            raise
        raise typer.Exit(ended.error.exit_status) from ended  # the screen says how the known device was missed
    say(
        "next: copy the bench file named above and change it; `nicbench init` writes a bench file for ports of your own"
    )


def _with_known_rate(bench: BenchFile, wait_s: float) -> BenchFile:
    """Returns the bench file with a known device of a tenth of the rate that comes back of a flood."""
    from nicbench.bench_file.load import parse
    from nicbench.cli.failure import run_to_the_end
    from nicbench.core.events import Bus
    from nicbench.core.units import format_rate
    from nicbench.stages.tester import flood

    (forwarding,) = (each for each in bench.configurations if each.configuration != KNOWN)
    forwarded = run_to_the_end(flood(forwarding, Bus(), wait_s))
    rate, burst = known_device(forwarded)
    known = f"{format_rate(rate)} and {burst} frames at once"
    say(f"a flood came back at {format_rate(forwarded)}: the known device passes {known}")
    return parse(with_device(bench.source, rate, burst).encode(), bench.path)


def known_device(forwarded_frames_per_s: float) -> tuple[int, int]:
    """Returns rate (two digits, frames/s) and burst (frames) of the known device, by what this machine forwards."""
    rate = max(100, int(float(f"{SHARE * forwarded_frames_per_s:.1e}")))
    return rate, max(10, round(BURST_SHARE * rate))


def with_device(source: str, rate_frames_per_s: int, burst_frames: int) -> str:
    """Returns a bench file's text with another rate and burst of its policer."""
    source = re.sub(r"(?m)^( +rate: )\S+ pps", rf"\g<1>{rate_frames_per_s} pps", source, count=1)
    return re.sub(r"(?m)^( +burst: )\d+", rf"\g<1>{burst_frames}", source, count=1)


COMMANDS = {"demo": _demo}
