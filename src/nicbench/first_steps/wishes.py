"""What can be asked of ``nicbench init``: what is measured, between which ends, and how thoroughly."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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


@dataclass(frozen=True, slots=True)
class End:
    """One end of streams: a port of this machine, or a port of a machine that ssh reaches.

    ``device`` is an interface, or a PCI address where frames are sent. ``ip`` has the length of its prefix; None: the
    address that the interface has already.
    """

    device: str
    ssh: str | None = None
    ip: str | None = None


@dataclass(frozen=True, slots=True)
class Frames:
    """RFC 2544 between two ports; a datasheet where one is wanted. ``macs`` are those of a router's ports. Ports that
    ``are_virtual`` share their machine with the device.
    """

    ports: tuple[str, str]
    device: Device = Device.SWITCH
    macs: tuple[str, ...] = ()
    is_full: bool = False
    is_datasheet: bool = False
    are_virtual: bool = False
    title: str | None = None


@dataclass(frozen=True, slots=True)
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
