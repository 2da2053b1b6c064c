"""``nicbench serve`` and ``nicbench web``: an open traffic generator, and the pages in the browser."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from nicbench.cli.failure import run_to_the_end
from nicbench.cli.options import (
    DEFAULT_RUNS,
    BenchPath,
    LakeOption,
    PasswordFile,
    RunsFolder,
    TlsKey,
    duration_s,
    runs_under,
)
from nicbench.cli.output import say
from nicbench.core.errors import InterruptedRunError, NotReadyError, UsageError

# ``nicbench serve FILE``: an open traffic generator, which snappi and other clients of OTG drive.

_Host = Annotated[str, typer.Option("--host", metavar="ADDRESS", help="The address to listen on with HTTPS.")]
_Port = Annotated[
    int | None,
    typer.Option("--port", metavar="NUMBER", min=0, max=65535, help="The port of HTTPS, 8443 by default; 0 for any."),
]
_HttpPort = Annotated[
    int | None,
    typer.Option("--http-port", metavar="NUMBER", min=0, max=65535, help="The local port of HTTP, 8442 by default."),
]
_GrpcPort = Annotated[
    int | None,
    typer.Option("--grpc-port", metavar="NUMBER", min=0, max=65535, help="The local port of gRPC, 40051 by default."),
]
_Cert = Annotated[
    Path | None, typer.Option("--tls-cert", metavar="FILE", help="A certificate (PEM); by default one for localhost.")
]
_Names = Annotated[
    list[str] | None,
    typer.Option("--name", metavar="HOST", help="A name under which clients reach this machine (repeatable)."),
]
_Locations = Annotated[
    list[str] | None,
    typer.Option(
        "--location", metavar="NAME=PORT", help="Another location of a port, as programs have it (repeatable)."
    ),
]
_Idle = Annotated[
    float,
    typer.Option(
        "--idle",
        metavar="DURATION",
        parser=duration_s("--idle"),
        help="End a session that had no request for this long.",
        show_default="1h",
    ),
]


def _serve(
    bench: BenchPath,
    runs_folder: RunsFolder = DEFAULT_RUNS,
    host: _Host = "127.0.0.1",
    port: _Port = None,
    http_port: _HttpPort = None,
    grpc_port: _GrpcPort = None,
    tls_cert: _Cert = None,
    tls_key: TlsKey = None,
    password_file: PasswordFile = None,
    name: _Names = None,
    location: _Locations = None,
    idle: _Idle = 3600.0,
) -> None:
    from nicbench.bench_file import load  # imported here, as `--help` and completion need no parts of a run
    from nicbench.bench_file.load import has_tests

    bench_file = load(bench, serves=True)
    try:
        from nicbench.otg.serving import (  # imported here, as its packages are an optional extra
            Serving,
            serve,
            start_fronts,
        )
    except ModuleNotFoundError as error:
        raise NotReadyError(
            f"the package {error.name} is not installed",
            place="nicbench serve",
            next_step="pip install 'nicbench[otg]'",
        ) from error
    from nicbench.web.serving import Place

    if has_tests(bench_file):
        say(f"note: the tests of {bench} are not run: clients say what is sent")
    place = Place(host, port, tls_cert, tls_key, password_file, tuple(name or ()))
    locations = _read_locations(location or ())
    fronts = start_fronts(Serving(place, http_port, grpc_port), runs_folder)
    try:
        run_to_the_end(serve(bench_file, runs_folder, fronts, idle, say, locations))
    except InterruptedRunError:
        return  # a signal is how it ends


def _read_locations(given: Iterable[str]) -> dict[str, str]:
    """Returns the names of ports by their further locations. UsageError for what is written otherwise."""
    locations = {}
    for each in given:
        location, equals, port = each.rpartition("=")
        if not equals or not location or not port:
            step = "write the location and the port's name in the bench file, as `--location localhost:5555=t0`"
            raise UsageError(f"--location {each!r} names no port", next_step=step)
        locations[location] = port
    return locations


# ``nicbench web [RUNS]``: shows runs in the browser, as they happen and as they were.

_Runs = Annotated[Path, typer.Argument(metavar="[RUNS]", help="The folder that holds the runs.", show_default=False)]
_WebHost = Annotated[str, typer.Option("--host", metavar="ADDRESS", help="The address to listen on.")]
_WebPort = Annotated[
    int | None,
    typer.Option("--port", metavar="NUMBER", min=0, max=65535, help="The port, 8425 by default; 0 for any free one."),
]
_WebCert = Annotated[Path | None, typer.Option("--tls-cert", metavar="FILE", help="A certificate (PEM), for https.")]
_WebNames = Annotated[
    list[str] | None,
    typer.Option("--name", metavar="HOST", help="A name under which browsers reach this machine (repeatable)."),
]
_Beside = Annotated[str | None, typer.Option("--beside", metavar="RUN", hidden=True)]


def _web(
    runs: _Runs = DEFAULT_RUNS,
    host: _WebHost = "127.0.0.1",
    port: _WebPort = None,
    tls_cert: _WebCert = None,
    tls_key: TlsKey = None,
    password_file: PasswordFile = None,
    name: _WebNames = None,
    lake: LakeOption = None,
    beside: _Beside = None,
) -> None:
    from nicbench.lake.place import find_lake
    from nicbench.web.serving import Place, serve  # imported here: no other command needs a server

    if not runs.is_dir():
        step = "name the folder that holds the runs; `nicbench run BENCH.yaml` or `nicbench demo` makes one"
        raise UsageError("there is no such folder", place=str(runs), next_step=step)
    place = Place(host, port, tls_cert, tls_key, password_file, tuple(name or ()))
    if beside is not None:
        from nicbench.web.live import step_aside

        step_aside(runs / beside)
        serve(runs, runs_under, place, partial(print, flush=True), until_eof=True)
        return
    opened = find_lake(runs, lake)
    told = f"the runs in {runs}" if opened is None else f"the runs in {runs}, and in the lake {opened.address}"
    serve(runs, runs_under, place, lambda at: say(f"{told}: {at}\nCtrl-C ends it"), lake=opened)


COMMANDS = {"serve": _serve, "web": _web}
