"""``nicbench init WHAT``: writes a first bench file for this machine, from answers to questions or from options."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

from nicbench.cli.failure import run_to_the_end
from nicbench.cli.output import print_line, results, say
from nicbench.core.errors import NotReadyError, UsageError, suggest
from nicbench.core.units import format_bits_per_s
from nicbench.first_steps.writing import Device, End, Frames, Streams, What, write

if TYPE_CHECKING:
    from nicbench.first_steps.ports import Cabling, FoundPort

# Asks on a terminal: one of several answers, a text, yes or no. Questions go to stderr, as all that is no result.


def can_ask() -> bool:
    """Whether somebody is there to answer."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def ask_choice(question: str, answers: Sequence[tuple[str, str]], default: int = 0) -> str:
    """Returns the chosen answer; each has a name, which is returned, and words. A number or the name is taken."""
    say(f"\n{question}")
    width = max(len(name) for name, _ in answers)
    for number, (name, words) in enumerate(answers, 1):
        say(f"  {number}  {name:<{width}}  {words}")
    names = [name for name, _ in answers]
    while True:
        given = ask_text("which", str(default + 1))
        if given in names:
            return given
        if given.isdecimal() and 1 <= int(given) <= len(names):
            return names[int(given) - 1]
        say(f"  a number from 1 to {len(names)}, please")


def ask_text(question: str, default: str | None = None) -> str:
    """Returns a text without blanks around it; InterruptedRunError's status where the input ends."""
    try:
        return str(typer.prompt(question, default=default, err=True)).strip()
    except typer.Abort as error:
        raise UsageError(
            "no answer was given", next_step="give the answers as options: nicbench init --help"
        ) from error


def ask_yes(question: str) -> bool:
    """Returns the answer to a yes-or-no question; no where only Return is pressed."""
    try:
        return bool(typer.confirm(question, default=False, err=True))
    except typer.Abort as error:
        raise UsageError(
            "no answer was given", next_step="give the answers as options: nicbench init --help"
        ) from error


# The two ports of this machine for a first bench file: named, found by their cable, or chosen from a list.

_PCI: Final = re.compile(r"[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]")
_PCI_DEVICES: Final = Path("/sys/bus/pci/devices")


class TwoPorts(NamedTuple):
    """The names of two ports, and whether one is of a veth pair, so that tester and device share a machine.

    ``driver`` is the tester's, where the proof of a port says that a faster one fails there.
    """

    one: str
    other: str
    are_virtual: bool
    driver: str | None


def choose_two(given: str | None, *, probe: bool) -> TwoPorts:
    """The two ports, of which neither leads out of the machine.

    UsageError where they are not given and cannot be asked for; NotReadyError where one may not be used.
    """
    found = _ports_of_this_machine()
    show_ports(found)
    cabled = _look_for_cables(found, asked=probe or (given is None and can_ask() and _consent(found)))
    if given is None and cabled:
        given = f"{cabled[0].one},{cabled[0].other}"
        say(f"using the ports {given}")
    if given is None:
        given = _ask_for_two(found)
    names = [part.strip() for part in given.split(",")]
    if len(names) != 2 or names[0] == names[1] or not all(names):
        step = "write two different ports with a comma between them: --ports eth1,eth2"
        raise UsageError(f"{given!r} is not a pair of ports", place="--ports", next_step=step)
    for name in names:
        _require(found, name)
    two = [port for port in found if port.name in names]
    return TwoPorts(names[0], names[1], any(port.driver == "veth" for port in two), choose_driver(two))


def choose_driver(ports: Sequence[FoundPort]) -> str | None:
    """The fastest driver that every proof of the ports proves; None unless a faster one failed."""
    from nicbench.core.proof import DRIVERS, Outcome

    proofs = [port.proof for port in ports if port.proof is not None]
    failed = {driver for proof in proofs for driver in proof.drivers(Outcome.FAILED)}
    for place, driver in enumerate(DRIVERS):
        if all(driver in proof.drivers(Outcome.PROVEN) for proof in proofs):
            return driver if failed.intersection(DRIVERS[:place]) else None
    return None


def require_usable(name: str, *, serves: bool = False) -> None:
    """Looks at one port of this machine; with ``serves`` it may have addresses, and is used where it is."""
    _require(_ports_of_this_machine(), name, serves=serves)


def _ports_of_this_machine() -> tuple[FoundPort, ...]:
    from nicbench.first_steps.ports import ports_of_this_machine  # imported here, as completion needs no hosts

    return run_to_the_end(ports_of_this_machine())


def show_ports(found: Sequence[FoundPort]) -> None:
    """Prints each port, and why not to use it."""
    say("ports of this machine:")
    width = max((len(port.name) for port in found), default=0)
    for port in found:
        say(f"  {port.name:<{width}}  {describe(port)}")
    if not found:
        say("  none")


def describe(port: FoundPort) -> str:
    """A port in words."""
    link = "link unknown" if port.has_link is None else "link up" if port.has_link else "no link"
    parts = [port.driver or "driver unknown", "down" if not port.is_up else link]
    if port.speed_bits_per_s:
        parts.append(format_bits_per_s(port.speed_bits_per_s))
    if port.proof is not None:
        parts.append(f"proven {port.proof.made_at[:10]}")
    if port.neighbour:
        parts.append(f"cabled to {port.neighbour} (LLDP)")
    if port.never or port.warning:
        parts.append(f"{'NOT FOR TESTS' if port.never else 'in use'}: {port.never or port.warning}")
    return ", ".join(parts)


def _consent(found: Sequence[FoundPort]) -> bool:
    names = _linked(found)
    if len(names) < 2:
        return False
    return ask_yes(f"Send a test frame from each of {', '.join(names)}, to see which are cabled to each other?")


def _linked(found: Sequence[FoundPort]) -> list[str]:
    """Returns the names of the free ports that have a link."""
    from nicbench.first_steps.ports import free_ports

    return [port.name for port in free_ports(found) if port.has_link]


def _look_for_cables(found: Sequence[FoundPort], *, asked: bool) -> tuple[Cabling, ...]:
    from nicbench.first_steps.ports import find_cabling

    if not asked:
        return ()
    names = _linked(found)
    if len(names) < 2:
        say("no test frames sent: fewer than two free ports have a link (`ip link set dev NAME up`)")
        return ()
    cabled = find_cabling(names)
    for one in cabled:
        say(f"  {one}")
    if not cabled:
        say("no test frame arrived: the free ports are not connected, or only through a router")
    return cabled


def _ask_for_two(found: Sequence[FoundPort]) -> str:
    from nicbench.first_steps.ports import free_ports

    names = [port.name for port in free_ports(found)]
    if can_ask():
        return ask_text("two ports, separated by a comma", ",".join(names[:2]) if len(names) == 2 else None)
    free = f"free are {', '.join(names)}" if names else "none is free"
    step = "write --ports A,B, or --probe to find two that are cabled to each other"
    if len(names) < 2:
        step = "free two, or measure without: `nicbench demo`, or `nicbench init streams --namespaces`"
    raise UsageError(f"two ports are needed, and {free}", place="--ports", next_step=step)


def _require(found: Sequence[FoundPort], name: str, *, serves: bool = False) -> None:
    """Refuses a port that leads out of the machine, unless bytes of tools only use it, and warns of one in use."""
    if _PCI.fullmatch(name):
        # A card that DPDK drives has no interface to look at; the run looks at it.
        if not (_PCI_DEVICES / name.lower()).exists():
            step = "`lspci -D` lists the devices of this machine"
            raise UsageError(f"there is no PCI device {name}", place="--ports", next_step=step)
        return
    port = next((port for port in found if port.name == name), None)
    if port is None:
        usable = [port.name for port in found if serves or port.never is None]
        step = suggest(name, usable, "port") if usable else "no port of this machine is free for tests: `nicbench demo`"
        raise UsageError(f"there is no port {name}", place="--ports", next_step=step)
    if serves:
        return
    if port.never:
        step = "choose another port: nicbench never measures on the way out of a machine"
        raise NotReadyError(f"the port {port.never}", place=name, next_step=step)
    if port.warning:
        say(f"warning: {name} is in use: {port.warning}. A run will refuse it in this state")


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
            driver=two.driver,
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
    print_line(str(path))
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
    from nicbench.first_steps.tables import how_to_import  # imported here: it loads every method

    found = how_to_import(csv)
    words = ["nicbench", "import", str(csv), *found.options, "--title", title or csv.name.partition(".")[0]]
    console = results()
    print_line(shlex.join(words), console)
    print_line("nicbench report latest --layout datasheet --format html,pdf", console)
    for problem in found.open:
        say(f"to be filled in: {problem.message}{f'; {problem.next_step}' if problem.next_step else ''}")
    for note in found.notes:
        say(note)
    if found.open:
        return
    say("These two commands make the datasheet; no bench file is needed. Add to the first:")
    say("  --link-speed and --ports, unless the table has them; --source and --year: who measured, and when;")
    say("  --report contact=..., --report sponsor=..., --report disclaimer=...: what the sheet says of its publisher")


def _say_what_to_run(wish: Frames | Streams, path: Path) -> None:
    name = shlex.quote(str(path))
    say("next:")
    if isinstance(wish, Streams) and wish.folder is not None:
        there = f"ssh {wish.server.ssh} " if wish.server is not None and wish.server.ssh else "sudo "
        say(f"  {there}mkdir -p {shlex.join(wish.folders)}")
    say(f"  nicbench validate {name}    # what it will do")
    say(f"  sudo nicbench run {name}    # measure, and write a report")


COMMANDS = {"init": _init}
