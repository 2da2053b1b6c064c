"""Writes a commented bench file for what is wanted. What is written is read back and checked before anybody sees it."""

from __future__ import annotations

import json
import re
from enum import StrEnum
from pathlib import Path
from typing import Final

from nicbench.core.errors import HostError, UsageError
from nicbench.core.frozen import frozen
from nicbench.store.files import make_folder

# What can be asked of ``nicbench init``: what is measured, between which ends, and how thoroughly.


class What(StrEnum):
    """What the first bench file measures; the value is its name on the command line."""

    RFC2544 = "rfc2544"
    STREAMS = "streams"
    EDITORS = "editors"
    DATASHEET = "datasheet"

    @property
    def words(self) -> str:
        """What it is, for a question and the help."""
        return _WORDS[self]


_WORDS = {
    What.RFC2544: "RFC 2544 throughput and latency of a device between two ports of this machine",
    What.STREAMS: "streams, transfers and requests (iperf3, nuttcp, sockperf) between a client and a server",
    What.EDITORS: "how many editors one server can feed with media frames",
    What.DATASHEET: "a datasheet, from a CSV of results or measured here",
}


class Device(StrEnum):
    """What is between the two ports of RFC 2544."""

    SWITCH = "switch"
    ROUTER = "router"
    CABLE = "cable"


@frozen
class End:
    """One end of streams: a port of this machine, or a port of a machine that ssh reaches.

    ``device`` is an interface, or a PCI address where frames are sent. ``ip`` has the length of its prefix; None: the
    address that the interface has already.
    """

    device: str
    ssh: str | None = None
    ip: str | None = None


@frozen
class Frames:
    """RFC 2544 between two ports; a datasheet where one is wanted. ``macs`` are those of a router's ports. Ports that
    ``are_virtual`` share their machine with the device. ``driver`` is the tester's, where a faster one fails.
    """

    ports: tuple[str, str]
    device: Device = Device.SWITCH
    macs: tuple[str, ...] = ()
    is_full: bool = False
    is_datasheet: bool = False
    are_virtual: bool = False
    title: str | None = None
    driver: str | None = None


@frozen
class Streams:
    """Streams, or editors where a ``folder`` is given. Without ends the machines are namespaces of this one.

    Several editors have a folder each: below ``folder``, or as ``{share}`` in it says.
    """

    server: End | None = None
    client: End | None = None
    folder: str | None = None
    editors: int = 4
    share: str = "sftp"
    is_full: bool = False
    title: str | None = None

    @property
    def shared_folder(self) -> str:
        """The folders of all shares, with ``{share}`` for their numbers where there are several."""
        folder = (self.folder or "").rstrip("/") or "/"
        return folder if "{share}" in folder or self.editors == 1 else f"{folder.rstrip('/')}/editor{{share}}"

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders that must be there before a run."""
        return tuple(self.shared_folder.replace("{share}", str(number)) for number in range(1, self.editors + 1))


_PCI: Final = re.compile(r"[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]")
_NETWORK: Final = "198.18.0"
_PLAIN: Final = re.compile(r"[A-Za-z_/.][A-Za-z0-9_/.-]*")


def write(wish: Frames | Streams, path: Path) -> str:
    """The text of the bench file, which is valid. UsageError where there is a file at ``path`` already.

    WrongBenchFileError if an answer is not a valid value, such as a folder with a relative path.
    """
    from nicbench.bench_file.load import parse  # imported here, as completion needs the questions alone

    if path.exists():
        step = "name another with --out, or remove this one"
        raise UsageError("there is such a file already", place=str(path), next_step=step)
    text = text_of(wish, path.name)
    parse(text.encode(), path)
    step = "name another with --out"
    try:
        make_folder(path.parent, step)
        path.write_text(text, encoding="utf-8")
    except HostError as error:  # nothing was begun that could go on
        raise UsageError(error.message, place=error.place, next_step=step) from error
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", place=str(path), next_step=step) from error
    return text


def text_of(wish: Frames | Streams, name: str) -> str:
    """The text of the bench file called ``name``."""
    return _frames(wish, name) if isinstance(wish, Frames) else _streams(wish, name)


def _frames(wish: Frames, name: str) -> str:
    one, other = wish.ports
    title = wish.title or f"A {wish.device} between {one} and {other}"
    return _HEAD.format(
        what=f"Throughput and latency (RFC 2544) of a {wish.device} between two ports of this machine.",
        name=name,
        rights="nicbench sends from one port, receives at the other, and leaves both as they were.",
        title=_text(title),
    ) + (
        "\nhosts:\n  tester: {kind: local} # the machine that sends and receives: this one\n"
        "\nports:\n"
        f"{_port('t0', 'tester', one)}{_port('t1', 'tester', other)}"
        f"\n{_dut(wish)}"
        "\n# What no program can read goes into the report as declared.\n"
        "# declared:\n#   device: {model: Example 4000, firmware: 7.2.1}\n#   cables: two 3 m copper cables\n"
        f"{_layout(wish)}{_tester(wish)}{_VIRTUAL if wish.are_virtual else ''}"
        "\ntraffic:\n  ip: 4\n  flows: 256 # different addresses and UDP ports\n"
        f"\n{_RFC_2544_FULL if wish.is_full else _quick(wish)}"
    )


def _dut(wish: Frames) -> str:
    if wish.device is Device.ROUTER:
        macs = ", ".join(f'"{mac}"' for mac in wish.macs)
        return (
            "# A router: frames go to the MAC addresses of its ports, in the order of the ports above. It must\n"
            "# know where 198.18.0.0/16 and 198.19.0.0/16 are (RFC 2544): behind `tester`, which then answer its ARP.\n"
            f"dut:\n  kind: external\n  macs: [{macs}]\n  # tester: [{{ipv4: 10.0.0.2}}, {{ipv4: 10.0.1.2}}]\n"
        )
    what = "A switch or bridge" if wish.device is Device.SWITCH else "A cable"
    return f"# {what}: nothing is set up on it, and the two ports address each other.\ndut: {{kind: external}}\n"


def _tester(wish: Frames) -> str:
    if wish.driver is None:
        return ""
    return f"\n# `nicbench prove` saw a faster driver fail at these ports.\ntester: {{driver: {wish.driver}}}\n"


def _layout(wish: Frames) -> str:
    if not wish.is_datasheet:
        return ""
    pdf = "`nicbench report latest --format pdf` writes it as a PDF"
    return f"\n# A datasheet of two pages; {pdf}.\nreport: {{layout: datasheet}}\n"


def _quick(wish: Frames) -> str:
    """The tests of a quick look; of virtual ports, a coarser one."""
    if not wish.are_virtual:
        return _RFC_2544_QUICK.format(sizes="64, 512, 1518", search="maximum_trials: 20, validation: 0 s")
    return _RFC_2544_QUICK.format(sizes="512, 1518", search="precision: 5 %, validation: 0 s")


def _port(name: str, host: str, device: str, ip: str | None = None) -> str:
    """One line. A PCI address is a card that DPDK drives, anything else an interface of the kernel."""
    key = "address" if _PCI.fullmatch(device) else "device"
    value = f'"{device}"' if key == "address" else _text(device)
    return f"  {name}: {{host: {host}, {key}: {value}{f', ip: {ip}' if ip else ''}}}\n"


def _text(value: str) -> str:
    """A text as YAML reads it back: plain where it cannot be taken for anything else."""
    return value if _PLAIN.fullmatch(value) and value not in ("true", "false", "null") else json.dumps(value)


def _streams(wish: Streams, name: str) -> str:
    is_editors = wish.folder is not None
    what = "How many editors can one server feed?" if is_editors else "Throughput, transfers and latency of a server."
    title = wish.title or ("Editors on one server" if is_editors else "Streams between a client and a server")
    return _HEAD.format(what=what, name=name, rights=_rights(wish), title=_text(title)) + (
        f"{_ends(wish)}\n{_server(wish)}\n{_editors(wish) if is_editors else _stream_tests(wish)}"
    )


def _rights(wish: Streams) -> str:
    if wish.server is None or wish.client is None:
        return "It measures this machine and no card: server and client are network namespaces that nicbench makes."
    if wish.server.ssh is None and wish.client.ssh is None:
        return (
            "nicbench moves each port into a namespace of its own, so that bytes go over the cable and not through\n"
            "# the loopback of this machine, and moves it back afterwards."
        )
    return (
        "The other machine is reached by ssh, with your keys; it needs the tools that the tests name, and no nicbench."
    )


def _ends(wish: Streams) -> str:
    """The sections that say where server and client are."""
    if wish.server is None or wish.client is None:
        clients = f", clients_per_port: {min(wish.editors, 16)}" if wish.folder is not None else ""
        return f"\nlab: {{kind: clients{clients}}} # `rate: 1 Gb/s` would hold each link to that\n"
    both_here = wish.server.ssh is None and wish.client.ssh is None
    server, client = wish.server, wish.client
    addresses = (
        (server.ip or f"{_NETWORK}.1/24", client.ip or f"{_NETWORK}.2/24") if both_here else (server.ip, client.ip)
    )
    return (
        f"\nhosts:\n  server: {_host(server, 'nicbench-server', alone=both_here)}\n"
        f"  client: {_host(client, 'nicbench-client', alone=both_here)}\n"
        "\nports:"
        f"{' # without `ip`, the address that the interface has' if None in addresses else ''}\n"
        f"{_port('s0', 'server', server.device, addresses[0])}{_port('c0', 'client', client.device, addresses[1])}"
        "\nlinks: [c0 <-> s0]\n"
    )


def _host(end: End, namespace: str, *, alone: bool) -> str:
    if end.ssh is not None:
        user, at, address = end.ssh.rpartition("@")
        return f"{{kind: ssh, address: {_text(address)}{f', user: {_text(user)}' if at else ''}}}"
    return f"{{kind: netns, namespace: {namespace}, create: true}}" if alone else "{kind: local}"


def _server(wish: Streams) -> str:
    if wish.folder is None:
        return "dut: {kind: server}\n"
    return (
        "# Each editor has a share of its own, in a folder that must be there. nicbench works in a new folder inside\n"
        "# it, which it removes afterwards; nothing else there is touched.\n"
        f"dut:\n  kind: file-server\n  share: {wish.share} # or nfs, by the kernel's server\n  shares: {wish.editors}\n"
        f"  folder: {_text(wish.shared_folder)}\n"
    )


def _editors(wish: Streams) -> str:
    counts = ", ".join(map(str, _counts(wish.editors)))
    times = _FULL_EDITORS if wish.is_full else _QUICK_EDITORS
    return f"tests:\n  - name: editors\n    method: frames\n    instances: [{counts}] # editors at once\n{times}"


def _counts(most: int) -> list[int]:
    """1, 2, 4, ... and the most."""
    doubled = [2**power for power in range(most.bit_length()) if 2**power < most]
    return [*doubled, most]


def _stream_tests(wish: Streams) -> str:
    duration = "20 s" if wish.is_full else "2 s"
    return _STREAM_TESTS.format(duration=duration)


_HEAD: Final = """\
# {what}
#
#   nicbench validate {name}    # what it will do, without doing it
#   sudo nicbench run {name}    # measure, and write a report
#
# {rights}
# Every key is explained in the documentation of the bench file.

nicbench: 1 # the format of this file
title: {title}
"""

_VIRTUAL: Final = """
# Virtual ports: tester and device share this machine. The tester may miss its pace by 1 %, and the quick look leaves
# out frames of 64 bytes, of which it is the tester that limits the rate.
thresholds: {unsent_share: 0.01}
"""

_RFC_2544_FULL: Final = """\
tests:
  # Without times and sizes they are those of RFC 2544: seven frame sizes, trials of 60 s. This takes hours.
  - name: throughput
    method: throughput

  - name: latency # at the throughput that was found, and at half of it
    method: latency
    at: throughput
    loads: [100 %, 50 %]
"""

_RFC_2544_QUICK: Final = """\
tests:
  # The highest rate without loss. A quick look: remove `frame_bytes`, `search` and `trial` for what RFC 2544 asks for
  # (seven sizes, trials of 60 s), which takes hours. The report says what is shorter.
  - name: throughput
    method: throughput
    frame_bytes: [{sizes}]
    search: {{{search}}}
    trial: {{duration: 1 s, drain: 200 ms, settle: 100 ms}}

  - name: latency # at the throughput that was found, and at half of it
    method: latency
    at: throughput
    loads: [100 %, 50 %]
    frame_bytes: [{sizes}]
    trial: {{duration: 1 s, drain: 200 ms, settle: 100 ms}}
"""

_STREAM_TESTS: Final = """\
tests:
  - name: throughput # one way, the other, and both at once
    method: stream
    workload: iperf3
    direction: [forward, reverse, both]
    at_once: [port]
    streams: 4
    duration: {duration}

  - name: transfers # how long 10 MB take
    method: transfer
    workload: nuttcp
    transfer_bytes: [10 MB]
    write_bytes: [8 KiB]

  - name: requests # a question and its answer, one after the other
    method: request-response
    workload: sockperf
    transport: [tcp, udp]
    message_bytes: [64 B, 1 KiB]
    duration: {duration}
"""

_QUICK_EDITORS: Final = """\
    direction: [read, write]
    # A quick look with small frames. Film in 4K: replace `frame_size` by `profile: 4k`, 51 MB a frame.
    frame_size: 1 MiB
    frames_per_s: 24 fps
    warm_up: 1 s
    duration: 3 s
    pause: 1 s
"""

_FULL_EDITORS: Final = """\
    direction: [read, write]
    profile: 4k # 51 MB a frame; `frame_size: 1 MiB` for any other
    frames_per_s: 24 fps
"""
