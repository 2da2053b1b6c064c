"""``nicbench validate BENCH.yaml ...``: reads and checks bench files, and prints their plans.

It looks for what they name on this machine, changes nothing, and speaks to no other.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nicbench.bench_file import BenchFile, load
from nicbench.cli.failure import CrashError, report, run_to_the_end
from nicbench.cli.options import Json
from nicbench.cli.output import print_json, results, say
from nicbench.cli.plan_table import plan_document, print_plan
from nicbench.core.errors import UsageError

BenchPaths = Annotated[
    list[Path], typer.Argument(metavar="BENCH.yaml ...", help="One or more bench files.", show_default=False)
]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("validate")(_validate)


def _validate(benches: BenchPaths, json: Json = False) -> None:
    """Check bench files and print what a run would do."""
    if len(benches) == 1:
        _show(load(benches[0]), json)
    elif json:
        raise UsageError("--json prints the plan of one bench file", next_step="call it once for each file")
    else:
        _validate_each(benches)


def _validate_each(benches: list[Path]) -> None:
    """Checks each file, even where others are wrong or nicbench fails at them."""
    wrong = failed = 0
    for path in benches:
        try:
            _show(load(path), as_json=False)
        except UsageError as error:
            report(error, as_json=False)
            wrong += 1
        except OSError:
            raise  # of the output itself, so that nothing more can be printed
        except Exception as error:
            say(f"{path}:")
            report(CrashError.of(error), as_json=False)
            failed += 1
    if failed:
        message = f"nicbench failed at {failed} of {len(benches)} bench files"
        raise CrashError(message, next_step="see the messages above")
    if wrong:
        raise UsageError(f"{wrong} of {len(benches)} bench files are wrong", next_step="see the messages above")


def _show(bench_file: BenchFile, as_json: bool) -> None:
    from nicbench.stages.hosts import look_for_named  # imported here, as it loads the kinds of hosts

    presence = run_to_the_end(look_for_named(bench_file))
    if as_json:
        print_json(plan_document(bench_file, presence))
    else:
        print_plan(results(), bench_file, presence)
