"""``nicbench prove``: tries what a port can be relied on for, and writes the proof that later runs read."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from nicbench.cli.failure import run_to_the_end
from nicbench.cli.options import Json, Wait
from nicbench.cli.output import print_json, print_line, results, say
from nicbench.core.errors import NotReadyError, UsageError

if TYPE_CHECKING:
    from nicbench.core.proof import Finding, Proof

_STYLES = {"proven": "green", "failed": "red", "absent": "dim", "untried": "yellow"}
_WIDTH = 40
_LEAST_ROOM = 60

Ports = Annotated[
    list[str],
    typer.Argument(
        metavar="PORT [PORT]",
        help="The interfaces at both ends of a cable, or one with a loop plug. Nothing else may use them meanwhile.",
        show_default=False,
    ),
]
Bench = Annotated[
    Path | None,
    typer.Option("--bench", metavar="BENCH.yaml", help="PORT is a port of this bench file's host `tester`."),
]
Only = Annotated[str, typer.Option("--only", metavar="NAMES", help="Try these alone: `counts,clocks`.")]
Without = Annotated[str, typer.Option("--without", metavar="NAMES", help="Leave these out: `link,settings`.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask before the ports are changed.")]
Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Write proof.json and proof.html here as well.")]


def _prove(
    ports: Ports,
    bench: Bench = None,
    only: Only = "",
    without: Without = "",
    yes: Yes = False,
    out: Out = None,
    wait: Wait = 0.0,
    json: Json = False,
) -> None:
    from nicbench.core.events import Bus, Waiting  # imported here, as completion needs none of it
    from nicbench.core.proof import Outcome
    from nicbench.prove.loop import here, of_bench_file
    from nicbench.prove.page import write_page
    from nicbench.prove.proving import choose, prove
    from nicbench.store.files import json_text, make_folder, write_atomically
    from nicbench.store.proofs import save_proof

    if len(ports) > 2 or len(set(ports)) < len(ports):
        step = "name one with a loop, or two with a cable between them"
        raise UsageError("these are not the ports of a proof", place=" ".join(ports), next_step=step)
    chosen = choose(*([name for name in text.split(",") if name] for text in (only, without)))
    if not json:
        for ability in chosen:
            changed = f" Changes: {ability.changes}." if ability.changes else ""
            say(f"{ability.kind:<12} {ability.tries}.{changed}")
        say(
            f"It takes about {sum(each.estimate_s for each in chosen):.0f} s. Afterwards the ports are as they are now."
        )
    if not yes and not json:
        if not sys.stdin.isatty():
            raise UsageError("it changes the ports, and nobody can be asked", place="--yes", next_step="add --yes")
        typer.confirm("Go on?", abort=True, err=True)
    bus = Bus()
    bus.subscribe(lambda event: say(event.text) if isinstance(event, Waiting) and not json else None)
    tell = _ignore if json else _print_finding
    names = tuple(ports)
    hosts, made = here(names) if bench is None else of_bench_file(bench, names)
    proof = run_to_the_end(prove(hosts, made, chosen, tell, bus, wait))
    path = save_proof(proof)
    if out is not None:
        make_folder(out)
        write_atomically(out / "proof.json", f"{json_text(proof)}\n".encode())
        write_atomically(out / "proof.html", write_page(proof).encode())
    if json:
        print_json(proof)
    else:
        print_line(_conclude(proof, path))
    if proof.with_outcome(Outcome.FAILED):
        raise typer.Exit(NotReadyError.exit_status)


def _ignore(finding: Finding) -> None:
    """Findings are printed together at the end."""


def _print_finding(finding: Finding) -> None:
    """Prints one finding: its text in a column of its own, on a narrow terminal below its name."""
    from rich.markup import escape

    console = results()
    outcome = finding.outcome.value
    word = f"[{_STYLES[outcome]}]{finding.outcome.words:<10}[/]"
    left, begin = 11 + _WIDTH, f"{word} {finding.name:<{_WIDTH}}"
    room = console.width - left if console.is_terminal else sys.maxsize
    if room < _LEAST_ROOM:
        console.print(f"{word} {finding.name}", soft_wrap=True)
        left, begin, room = 11, " " * 11, max(console.width - 11, 1)
    text = f"\n{' ' * left}".join(wrap(finding.seen, room, break_long_words=False, break_on_hyphens=False))
    console.print(f"{begin}{escape(text)}", soft_wrap=True)


def _conclude(proof: Proof, path: Path) -> str:
    """Says how many things were proven, and where the proof is."""
    from nicbench.core.proof import Outcome

    counts = {outcome: len(proof.with_outcome(outcome)) for outcome in Outcome}
    named = {outcome.words: number for outcome, number in counts.items() if number}
    told = ", ".join(f"{number} {word}" for word, number in named.items())
    return f"\n{told}, in {proof.took_s:.0f} s. Runs and `nicbench doctor` read the proof: {path}"


COMMANDS = {"prove": _prove}
