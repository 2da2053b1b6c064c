"""``nicbench web [RUNS]``: shows runs in the browser, as they happen and as they were."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from nicbench.cli.options import DEFAULT_RUNS, LakeOption, PasswordFile, TlsKey, runs_under
from nicbench.cli.output import say
from nicbench.core.errors import UsageError
from nicbench.lake.place import find_lake

_Runs = Annotated[Path, typer.Argument(metavar="[RUNS]", help="The folder that holds the runs.", show_default=False)]
_Host = Annotated[str, typer.Option("--host", metavar="ADDRESS", help="The address to listen on.")]
_Port = Annotated[
    int | None,
    typer.Option("--port", metavar="NUMBER", min=0, max=65535, help="The port, 8425 by default; 0 for any free one."),
]
_Cert = Annotated[Path | None, typer.Option("--tls-cert", metavar="FILE", help="A certificate (PEM), for https.")]
_Names = Annotated[
    list[str] | None,
    typer.Option("--name", metavar="HOST", help="A name under which browsers reach this machine (repeatable)."),
]
_Beside = Annotated[str | None, typer.Option("--beside", metavar="RUN", hidden=True)]


def _web(
    runs: _Runs = DEFAULT_RUNS,
    host: _Host = "127.0.0.1",
    port: _Port = None,
    tls_cert: _Cert = None,
    tls_key: TlsKey = None,
    password_file: PasswordFile = None,
    name: _Names = None,
    lake: LakeOption = None,
    beside: _Beside = None,
) -> None:
    """Show the runs of a folder in the browser, also while they run."""
    from nicbench.web.serving import Place, serve  # imported here: no other command needs a server

    if not runs.is_dir():
        step = "name the folder that holds the runs; `nicbench run BENCH.yaml` or `nicbench demo` makes one"
        raise UsageError("there is no such folder", place=str(runs), next_step=step)
    place = Place(host, port, tls_cert, tls_key, password_file, tuple(name or ()))
    if beside is not None:
        from nicbench.web.beside import step_aside

        step_aside(runs / beside)
        serve(runs, runs_under, place, partial(print, flush=True), until_eof=True)
        return
    opened = find_lake(runs, lake)
    told = f"the runs in {runs}" if opened is None else f"the runs in {runs}, and in the lake {opened.address}"
    serve(runs, runs_under, place, lambda at: say(f"{told}: {at}\nCtrl-C ends it"), lake=opened)


COMMANDS = {"web": _web}
