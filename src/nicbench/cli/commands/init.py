"""``nicbench init WHAT``: writes a first bench file for this machine, from answers to questions or from options."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from nicbench.cli.choosing_ports import choose_two, require_usable
from nicbench.cli.output import results, say
from nicbench.cli.questions import ask_choice, ask_text, ask_yes, can_ask
from nicbench.core.errors import UsageError
from nicbench.first_steps.writing import Device, End, Frames, Streams, What, how_to_import, write

_DEVICES: Final = (
    (Device.SWITCH.value, "a switch or bridge, which forwards frames unchanged"),
    (Device.ROUTER.value, "a router, which frames are addressed to by MAC"),
    (Device.CABLE.value, "nothing but a cable"),
)
_PLACES: Final = (
    ("ports", "on two ports of this machine, joined by a cable or a switch"),
    ("ssh", "on this machine and another one, reached by ssh"),
    ("namespaces", "in namespaces of this machine, without any port: to try nicbench"),
)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("init")(_init)


def _option(name: str, metavar: str, text: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(name, metavar=metavar, help=text, show_default=False)
    return option


_What = Annotated[
    What | None,
    typer.Argument(metavar="WHAT", help="rfc2544, streams, editors or datasheet (default: ask).", show_default=False),
]
_Out = Annotated[Path | None, _option("--out", "FILE", "The bench file to write (default: WHAT.yaml).")]
_Ports = Annotated[str | None, _option("--ports", "A,B", "Two ports of this machine: interfaces or PCI addresses.")]
_Probe = Annotated[
    bool, typer.Option("--probe", help="Send test frames from each free port to find two that are connected.")
]
_Device = Annotated[
    Device | None, _option("--dut", "KIND", "What is between the ports: switch (default), router or cable.")
]
_Macs = Annotated[str | None, _option("--macs", "MAC,MAC", "MAC addresses of a router's two ports.")]
_Server = Annotated[
    str | None, _option("--server", "[USER@]HOST", "The server, reached by ssh (default: this machine).")
]
_ServerPort = Annotated[
    str | None, _option("--server-port", "NAME", "Interface of the server that leads to the client.")
]
_Client = Annotated[
    str | None, _option("--client", "[USER@]HOST", "The client, reached by ssh (default: this machine).")
]
_ClientPort = Annotated[
    str | None, _option("--client-port", "NAME", "Interface of the client that leads to the server.")
]
_Namespaces = Annotated[
    bool, typer.Option("--namespaces", help="Use no ports: server and client are namespaces of this machine.")
]
_Folder = Annotated[str | None, _option("--folder", "DIR", "Folder on the server for the editors' frames.")]
_Editors = Annotated[
    int, typer.Option("--editors", metavar="N", min=1, max=64, help="Measure up to this many editors at once.")
]
_Csv = Annotated[Path | None, _option("--csv", "FILE", "Make the datasheet from a table of existing results.")]
_Full = Annotated[bool, typer.Option("--full", help="Measure all sizes for the full time (RFC 2544: hours).")]
_Title = Annotated[str | None, _option("--title", "TEXT", "Title of the report.")]


def _init(
    what: _What = None,
    out: _Out = None,
    ports: _Ports = None,
    probe: _Probe = False,
    dut: _Device = None,
    macs: _Macs = None,
    server: _Server = None,
    server_port: _ServerPort = None,
    client: _Client = None,
    client_port: _ClientPort = None,
    namespaces: _Namespaces = False,
    folder: _Folder = None,
    editors: _Editors = 4,
    csv: _Csv = None,
    full: _Full = False,
    title: _Title = None,
) -> None:
    """Write a first bench file for this machine: asks what you want, or takes it from options."""
    asking = what is None
    if what is None:
        what = What(_ask_or_refuse("what is to be measured?", "WHAT", [(one.value, one.words) for one in What]))
    if what is What.DATASHEET and csv is None and asking and ask_yes("Do you have a table of results (CSV) already?"):
        csv = Path(ask_text("which file"))
    if csv is not None and what is not What.DATASHEET:
        step = f"write `nicbench init {What.DATASHEET} --csv {shlex.quote(str(csv))}`, or leave --csv out"
        raise UsageError("only a datasheet is made from a table of results", place="--csv", next_step=step)
    if csv is not None:
        _show_import(csv, title)
        return
    given = {"--ports": ports, "--probe": probe, "--server": server, "--server-port": server_port, "--client": client,
             "--client-port": client_port, "--dut": dut, "--macs": macs, "--namespaces": namespaces}  # fmt: skip
    _require_consistent(what, [option for option, value in given.items() if value])
    path = out or Path(f"{what.value}.yaml")
    if what in (What.RFC2544, What.DATASHEET):
        two = choose_two(ports, probe=probe)
        device = dut or _device(asking)
        wish: Frames | Streams = Frames(
            (two.one, two.other),
            device,
            _macs(macs, device),
            is_full=full,
            is_datasheet=what is What.DATASHEET,
            are_virtual=two.are_virtual,
            title=title,
        )
    else:
        is_remote = bool(server or client)
        ends = (
            _remote_ends(server, server_port, client, client_port)
            if is_remote
            else _local_ends(ports, probe=probe, namespaces=namespaces, asking=asking)
        )
        served = _folder(folder) if what is What.EDITORS else None
        wish = Streams(*ends, folder=served, editors=editors, is_full=full, title=title)
    write(wish, path)
    results().print(str(path), markup=False, soft_wrap=True)
    _say_what_to_run(wish, path)


_OF_FRAMES: Final = frozenset({"--dut", "--macs"})
_OF_STREAMS: Final = frozenset({"--server", "--server-port", "--client", "--client-port", "--namespaces"})
_OF_REMOTE: Final = _OF_STREAMS - {"--namespaces"}


def _require_consistent(what: What, given: Sequence[str]) -> None:
    """Refuses options that would have no effect. UsageError."""
    is_frames = what in (What.RFC2544, What.DATASHEET)
    other = _OF_STREAMS if is_frames else _OF_FRAMES
    for option in given:
        if option in other:
            of = f"{What.STREAMS} and {What.EDITORS}" if is_frames else f"{What.RFC2544} and {What.DATASHEET}"
            step = "leave it out"
            if option == "--namespaces":
                step = "try it without ports by `nicbench demo`, or leave it out"
            raise UsageError(f"this option is for {of}, not for {what.value}", place=option, next_step=step)
    places = [option for option in given if option not in _OF_FRAMES]
    if "--namespaces" in places and len(places) > 1:
        port = next(option for option in places if option != "--namespaces")
        message = f"it uses no port of any machine, and {port} is about one"
        raise UsageError(message, place="--namespaces", next_step="leave either out")
    remote = [option for option in places if option in _OF_REMOTE]
    local = [option for option in places if option in ("--ports", "--probe")]
    if remote and local:
        raise UsageError(f"{local[0]} is about two ports of this machine, and {remote[0]} about another machine",
                         place=local[0], next_step="leave either out")  # fmt: skip


def _ask_or_refuse(question: str, option: str, answers: list[tuple[str, str]]) -> str:
    if can_ask():
        return ask_choice(question[0].upper() + question[1:], answers)
    names = ", ".join(name for name, _ in answers)
    raise UsageError(
        f"{question} {option} is missing", next_step=f"write one of {names}; `nicbench init -h` has all options"
    )


def _device(asking: bool) -> Device:
    return Device(ask_choice("What is between the two ports?", _DEVICES)) if asking and can_ask() else Device.SWITCH


def _macs(given: str | None, device: Device) -> tuple[str, ...]:
    """The MAC addresses of a router's ports, which no program can find out."""
    if device is not Device.ROUTER:
        return ()
    if given is None and can_ask():
        given = ask_text("the MAC addresses of the router's two ports, separated by a comma")
    if given is None:
        step = "write --macs 02:00:00:00:00:01,02:00:00:00:00:02, in the order of the ports"
        raise UsageError("the MAC addresses of the router's ports are missing", place="--macs", next_step=step)
    return tuple(part.strip() for part in given.split(","))


def _local_ends(ports: str | None, *, probe: bool, namespaces: bool, asking: bool) -> tuple[End | None, End | None]:
    """Two ports of this machine, or none where namespaces are enough."""
    if ports is None and not namespaces and asking and can_ask():
        place = ask_choice("Where are the server and the client?", _PLACES)
        if place == "ssh":
            return _remote_ends(ask_text("the server for ssh, as [USER@]HOST"), None, None, None)
        namespaces = place == "namespaces"
    if namespaces:
        return None, None
    two = choose_two(ports, probe=probe)
    return End(two.one), End(two.other)


def _remote_ends(
    server: str | None, server_port: str | None, client: str | None, client_port: str | None
) -> tuple[End, End]:
    """The ends where at least one is another machine: each needs the name of its interface."""
    ends = []
    for name, ssh, device in (("server", server, server_port), ("client", client, client_port)):
        option = f"--{name}-port"
        if device is None and can_ask():
            device = ask_text(f"the interface of the {name} that leads to the other machine")
        if device is None:
            step = f"write {option} NAME, as `ip -br address` on the {name} shows it"
            raise UsageError(f"the {name}'s interface is missing", place=option, next_step=step)
        if ssh is None:
            require_usable(device, serves=True)
        ends.append(End(device, ssh))
    return ends[0], ends[1]


def _folder(given: str | None) -> str:
    if given is None and can_ask():
        given = ask_text("the folder on the server, for the frames of the editors")
    if given is None:
        raise UsageError("the folder is missing", place="--folder", next_step="write --folder /srv/media, a whole path")
    return given


def _show_import(csv: Path, title: str | None) -> None:
    """Prints the two commands that make a datasheet of a table; no bench file is needed for it."""
    found = how_to_import(csv)
    words = ["nicbench", "import", str(csv), "--method", found.method, *found.options, "--title", title or csv.stem]
    console = results()
    console.print(shlex.join(words), markup=False, soft_wrap=True)
    console.print("nicbench report latest --layout datasheet --format html,pdf", markup=False, soft_wrap=True)
    for problem in found.open:
        say(f"to be filled in: {problem.message}{f'; {problem.next_step}' if problem.next_step else ''}")
    if found.open:
        return
    say("These two commands make the datasheet; no bench file is needed. --source and --year say who measured, when.")


def _say_what_to_run(wish: Frames | Streams, path: Path) -> None:
    name = shlex.quote(str(path))
    say("next:")
    if isinstance(wish, Streams) and wish.folder is not None:
        there = f"ssh {wish.server.ssh} " if wish.server is not None and wish.server.ssh else "sudo "
        say(f"  {there}mkdir -p {shlex.join(wish.folders)}")
    say(f"  nicbench validate {name}    # what it will do")
    say(f"  sudo nicbench run {name}    # measure, and write a report")
