"""``nicbench demo``: a device whose rate is known, then this machine's IP forwarding; or a simulated device, or another
example. It needs no card and no bench file.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Annotated, Final

import typer

from nicbench.cli import completion
from nicbench.cli.options import DEFAULT_RUNS, Json, NoProgress, NoReport, RunsFolder, Wait
from nicbench.cli.output import results, say
from nicbench.core.errors import NotReadyError, ThresholdError, UsageError
from nicbench.store.folder import RunFolder

if TYPE_CHECKING:
    from nicbench.bench_file import BenchFile
    from nicbench.core.result import Summary

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


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("demo")(_demo)


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
    """Measure a known device, then how fast this machine forwards packets (root, a minute), and write a report."""
    from nicbench.bench_file import load  # imported here, as `--help` and completion need no parts of a run
    from nicbench.bench_file.examples import example
    from nicbench.cli.failure import ReportedError
    from nicbench.cli.running import conduct

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
        from nicbench.cli.first_screen import screen

        results().print(f"\n{screen(summary, folder.journal.trials().values())}", markup=False, soft_wrap=True)

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
    from nicbench.cli.first_screen import KNOWN
    from nicbench.core.events import Bus
    from nicbench.core.units import format_rate
    from nicbench.stages.tester import flood

    (forwarding,) = (each for each in bench.configurations if each.configuration != KNOWN)
    forwarded = run_to_the_end(flood(forwarding, Bus(), wait_s))
    rate, burst = known_device(forwarded)
    say(f"a flood came back at {format_rate(forwarded)}: the known device passes {format_rate(rate)}")
    return parse(with_device(bench.source, rate, burst).encode(), bench.path)


def known_device(forwarded_frames_per_s: float) -> tuple[int, int]:
    """Returns rate (two digits, frames/s) and burst (frames) of the known device, by what this machine forwards."""
    rate = max(100, int(float(f"{SHARE * forwarded_frames_per_s:.1e}")))
    return rate, max(10, round(BURST_SHARE * rate))


def with_device(source: str, rate_frames_per_s: int, burst_frames: int) -> str:
    """Returns a bench file's text with another rate and burst of its policer."""
    source = re.sub(r"(?m)^( +rate: )\S+ pps", rf"\g<1>{rate_frames_per_s} pps", source, count=1)
    return re.sub(r"(?m)^( +burst: )\d+", rf"\g<1>{burst_frames}", source, count=1)
