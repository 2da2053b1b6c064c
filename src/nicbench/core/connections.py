"""TCP connections by the clock: what a client and its server are asked, and what became of the connections.

The fields are those of protocol/connections.md.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.reading import Tally, Times

ConnectionsTask = Literal["connect", "requests", "hold"]
"""What is due: connections that end, requests on connections that stay, or connections that stay."""
TlsVersion = Literal["1.2", "1.3"]
ConnectionDriver = Literal["kernel", "xdp"]
"""What makes and answers connections: the kernel's sockets, or programs in the driver's hook (XDP)."""
ServerKind = Literal["own", "nginx", "target"]
"""What serves: nicbench's own server, nginx, or a server that is there already (``target``)."""


class ConnectionsTarget(Frozen):
    """A server that is there already: its address and TCP port, its name, and the path that is asked for."""

    address: str
    port: int
    host: str
    path: str


class Broken(Frozen):
    """What nicbench's own server does to its answers: it delays every so-many-th (0: each), and breaks every
    so-many-th (0: none). It accepts ``accept_rate`` connections a second, and ``accept_queue`` wait for that on each
    port; None: as they come, and as many as the kernel lets wait.
    """

    delay_s: float = 0.0
    delay_every: int = 0
    reset_every: int = 0
    short_every: int = 0
    status_every: int = 0
    corrupt_every: int = 0
    accept_rate: int | None = None
    accept_queue: int | None = None


class ConnectionsSpec(Frozen):
    """What a client is asked; rates are connections or requests a second, sizes are of the body of an answer."""

    task: ConnectionsTask
    rate_per_s: float
    ramp_s: float = 0.0
    connections: int = 1
    exchanges: int = 1
    objects: tuple[tuple[int, int], ...] = ((1, 1),)
    """Sizes in bytes, each with its weight in the mix."""
    tls: TlsVersion | None = None
    reset: bool = False
    """Whether connections are closed by a RST."""
    connect_within_s: float = 0.8
    answer_within_s: float = 5.0
    ports: int = 1
    """Consecutive TCP ports of the server, over which connections are spread."""
    client_threads: int = 1
    server_threads: int = 1
    server: ServerKind = "own"
    broken: Broken = Broken()
    target: ConnectionsTarget | None = None
    driver: ConnectionDriver = "kernel"
    clients: int = 1
    """Clients that this job's server answers: an interface has one server in its hook; 0: another job's answers."""

    @property
    def serves_in_hook(self) -> bool:
        """Whether the server answers in its driver's hook."""
        return self.driver == "xdp" and self.server == "own" and self.broken == Broken()


class ConnectionTable(Frozen):
    """The DUT's table of tracked connections around a round."""

    limit: Tally
    before: Tally
    """Connections that it held before the round; ``after``: when its clients had ended."""
    after: Tally
    refused: Tally
    """Packets of new connections that found the table full."""
    replaced: Tally
    """Connections that gave their place to others."""

    @property
    def is_full(self) -> bool:
        """Whether new connections found it full; not where half of it is free afterwards, for they are refused for
        other reasons, too.
        """
        return self.refused > 0 and 2 * self.after >= self.limit

    @property
    def words(self) -> str:
        """What it held when the clients had ended, and new connections that it refused or old ones that it gave up."""
        counted = {"refused": self.refused, "replaced": self.replaced}
        told = "".join(f"; {count} {what}" for what, count in counted.items() if count)
        return f"{self.after} of {self.limit} entries, {self.before} of them from before the trial{told}"


class ConnectionCounts(Frozen):
    """Connections or requests that were due in one phase: each is completed, or failed in one way."""

    due: Tally
    completed: Tally
    failed: dict[str, Tally] = Field(default_factory=dict)

    @property
    def failures(self) -> int:
        """How many failed, in whatever way."""
        return sum(self.failed.values())


class ConnectionInterval(Frozen):
    """What happened in one second of the run; ``open`` connections were open at its end."""

    completed: Tally
    failed: Tally
    bytes: Tally
    open: Tally


class Segments(Frozen):
    """Segments of TCP that an end in the driver's hook sent and got; those that were ``resent`` were lost, or late."""

    sent: Tally
    resent: Tally
    damaged: Tally
    """Those with a wrong checksum, which do not count."""
    repeated: Tally
    """Those that came again, or before others."""
    not_expected: Tally
    """Those of no connection."""


class ConnectionFigures(Frozen):
    """What a client counted. ``sustain`` are those due in the sustain phase, of which alone the times are."""

    wall_ns: Tally
    ramp: ConnectionCounts
    sustain: ConnectionCounts
    in_time: Tally
    """Of the sustain phase, those that were complete before it ended."""
    bytes: Tally
    """Bytes of bodies that came during the sustain phase."""
    connect: Times | None = None
    """From connect() to the established TCP connection."""
    handshake: Times | None = None
    """From there to the TLS session."""
    first_byte: Times | None = None
    """From the moment when it was due to the first byte of the answer."""
    last_byte: Times | None = None
    """From that moment to the last byte."""
    lateness: Times | None = None
    """How late the client began what was due."""
    lateness_p99_ns: Tally
    opened: Tally
    reopened: Tally
    most_open: Tally
    held: Tally
    """Connections that answered once more while all were held."""
    intervals: tuple[ConnectionInterval, ...] = ()
    cpu_ns: Tally
    busiest_thread_ns: Tally
    accepted: Tally | None = None
    """Connections that nicbench's own server accepted; None for another."""
    served: Tally | None = None
    """Requests that nicbench's own server got."""
    segments: Segments | None = None
    """The client's segments; None of the kernel's sockets, which do not count them for a program."""
    server_segments: Segments | None = None
