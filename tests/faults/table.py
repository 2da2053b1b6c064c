"""The table of faults: fault x place x moment, and for each what the run must say, written down before it is tried.

Of every case holds besides, and is checked for each (``checks.py``): nothing is valid that was broken, nothing is
charged to the device, what was measured is kept, and the machine is as it was.

- ``before``: the testbed stands, and nothing was measured; ``early``: the command is only about to be given;
- ``during``: frames or clients are under way; the part of the sample that is over is drawn;
- ``between``: the first sample is in the journal, and the second has not begun;
- ``after``: the last result is in the journal, and the machine is not restored yet.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from nicbench.core.verdict import Reason

from . import clocks, inject, tools
from .benches import CABLES, CLIENTS, LAB, NUTTCP, RINGS, SHARED, WATCHED, Bench
from .places import ENGINE, MONITOR

Moment = Literal["early", "before", "during", "between", "after"]
Inject = inject.Inject


@dataclass(frozen=True)
class Expect:
    """``statuses`` of which the command must have one. Where it ends with an error ``words`` (a pattern) say why.

    Where it comes to its end with status 0: ``reasons``, one of which a sample must have been found invalid for, and
    the ``verdicts`` that the run may have. ``resumes``: once the fault is mended `resume` goes on to a good end.
    """

    statuses: frozenset[int] = frozenset({0})
    words: str = ""
    reasons: frozenset[Reason] = frozenset()
    verdicts: frozenset[str] = frozenset({"valid", "disturbed"})
    resumes: bool = False

    def or_goes_on(self, *reasons: Reason) -> Expect:
        """Which of the two depends on the moment within the sample; where it goes on, it has seen the fault."""
        return Expect(self.statuses | {0}, self.words, frozenset(reasons), self.verdicts, self.resumes)


FINE: Final = Expect()
"""The run comes to its end, and its figures are right."""


def seen(*reasons: Reason, words: str = "") -> Expect:
    """A sample was spoilt, for this reason, and measured again."""
    return Expect(reasons=frozenset(reasons), words=words)


def told(words: str) -> Expect:
    """It comes to its end, and says this."""
    return Expect(words=words)


def ends(words: str, status: int = 4, *, resumes: bool = False) -> Expect:
    """The run ends with an error."""
    return Expect(frozenset({status}), words, resumes=resumes)


INCOMPLETE: Final = Expect(verdicts=frozenset({"incomplete"}))
"""The run comes to its end, and what could not be measured is left out of it."""
DISTURBED: Final = Expect(verdicts=frozenset({"disturbed"}))


@dataclass(frozen=True)
class Fault:
    """A row of the table: what happens, where, on which benches, and what is expected at which moment."""

    name: str
    place: str
    benches: tuple[Bench, ...]
    inject: Inject
    moments: dict[Moment, Expect]
    prepare: Inject | None = None
    """What is done before the command is given, so that the fault can come."""


def fault(
    name: str, place: str, benches: tuple[Bench, ...], what: Inject, prepare: Inject | None = None, **moments: Expect
) -> Fault:
    return Fault(name, place, benches, what, moments, prepare)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Case:
    """One cell of the table."""

    fault: Fault
    bench: Bench
    moment: Moment

    @property
    def expect(self) -> Expect:
        return self.fault.moments[self.moment]

    @property
    def name(self) -> str:
        words = f"{self.fault.place}:{self.fault.name}:{self.moment}:{self.bench.name}"
        return words.replace("'s", "").replace(", ", "-").replace(" ", "-")


FRAMES, ROUNDS = (CABLES, LAB), (CLIENTS,)
EVERY = (CABLES, RINGS, CLIENTS)
GONE = "is gone|No such device|no interface|does not exist|vanished|not found|disappear|nothing comes back"
SILENT = "nothing comes back|link of the tester's port"
LINK = Reason.LINK_CHANGED
PEER = Reason.PEER_FAILED
KILLED = ends("killed by signal 9", resumes=True)
STOPPED = ends("130|interrupted|resume", 130, resumes=True)
SHOT = Expect(frozenset({-signal.SIGKILL}), resumes=True)
FULL = ends("disk is full|No space left", resumes=True)
READ_ONLY = ends("Read-only|read-only", resumes=True)
TOOLS = ends("iperf3")

_PORTS = (
    fault(
        "deleted",
        "tester's port",
        FRAMES,
        inject.delete_port("tester"),
        before=ends(GONE),
        during=ends(GONE),
        between=ends(GONE),
        after=FINE,
    ),
    fault(
        "stays down",
        "tester's port",
        FRAMES,
        inject.take_down("tester"),
        before=ends(SILENT, resumes=True),
        during=ends(SILENT, resumes=True),
        between=ends(SILENT, resumes=True),
        after=FINE,
    ),
    fault(
        "flaps",
        "tester's port",
        FRAMES,
        inject.flap("tester"),
        before=FINE,
        during=seen(LINK),
        between=FINE,
        after=FINE,
    ),
    fault(
        "its XDP program is taken off",
        "tester's port",
        FRAMES,
        inject.take_program_off,
        before=ends(SILENT),
        during=ends(SILENT),
        between=ends(SILENT),
        after=FINE,
    ),
    fault(
        "pulled",
        "cable",
        FRAMES,
        inject.pull_cable("tester", "dut"),
        before=ends(SILENT, resumes=True),
        during=ends(SILENT, resumes=True),
        between=ends(SILENT),
        after=FINE,
    ),
    fault(
        "swallows all, its links up",
        "cable",
        FRAMES,
        inject.swallow("dut"),
        before=ends(SILENT, resumes=True),
        during=ends(SILENT, resumes=True),
        between=ends(SILENT),
        after=FINE,
    ),
    fault(
        "deleted",
        "DUT's port",
        FRAMES,
        inject.delete_port("dut"),
        before=ends(GONE),
        during=ends(GONE),
        between=ends(GONE),
        after=FINE,
    ),
    fault(
        "stays down",
        "DUT's port",
        FRAMES,
        inject.take_down("dut"),
        before=ends(SILENT, resumes=True),
        during=ends(SILENT, resumes=True),
        between=ends(SILENT),
        after=FINE,
    ),
    fault(
        "flaps",
        "DUT's port",
        FRAMES,
        inject.flap("dut"),
        before=FINE,
        during=seen(LINK),
        between=FINE,
        after=FINE,
    ),
    fault(
        "loses its addresses",
        "DUT's port",
        FRAMES,
        inject.forget("address", "flush", "dev", "PORT"),
        before=FINE,
        during=seen(PEER),
        between=FINE,
        after=FINE,
    ),
    fault(
        "loses its neighbours",
        "DUT's port",
        FRAMES,
        inject.forget("neighbour", "flush", "dev", "PORT", "nud", "permanent"),
        before=FINE,
        during=seen(PEER),
        between=FINE,
        after=FINE,
    ),
    fault(
        "loses its routes",
        "DUT's port",
        FRAMES,
        inject.forget("route", "flush", "dev", "PORT"),
        before=FINE,
        during=seen(PEER),
        between=FINE,
        after=FINE,
    ),
)
_DUT = (
    fault(
        "forwarding is switched off",
        "DUT",
        FRAMES,
        inject.stop_forwarding,
        before=FINE,
        during=seen(PEER),
        between=FINE,
        after=FINE,
    ),
    fault(
        "a firewall drops all",
        "DUT",
        FRAMES,
        inject.drop_all_forwarded,
        before=ends(SILENT, resumes=True),
        during=ends(SILENT, resumes=True),
        between=ends(SILENT),
        after=FINE,
    ),
    fault(
        "killed",
        "DUT",
        (RINGS,),
        inject.send_signal(signal.SIGKILL, ENGINE, "reflect"),
        before=KILLED,
        during=KILLED,
        between=KILLED,
        after=FINE,
    ),
    fault(
        "crashes",
        "DUT",
        (RINGS,),
        inject.send_signal(signal.SIGSEGV, ENGINE, "reflect"),
        before=ends("killed by signal 11"),
        during=ends("killed by signal 11"),
        between=ends("killed by signal 11"),
        after=FINE,
    ),
    fault(
        "hangs",
        "DUT",
        (RINGS,),
        inject.send_signal(signal.SIGSTOP, ENGINE, "reflect"),
        before=ends(SILENT),
        during=ends(SILENT),
        between=ends(SILENT),
        after=FINE,
    ),
    fault(
        "halts for a moment",
        "DUT",
        (RINGS,),
        inject.halt(ENGINE, "reflect"),
        before=FINE,
        during=FINE,
        between=FINE,
        after=FINE,
    ),
    fault(
        "a busy process",
        "DUT's CPU",
        (*FRAMES, RINGS),
        inject.spin(1),
        before=FINE,
        during=FINE,
        between=FINE,
        after=FINE,
    ),
    fault(
        "a busy process",
        "tester's CPU",
        (*FRAMES, RINGS),
        inject.spin(0),
        before=FINE,
        during=FINE,
        between=FINE,
        after=FINE,
    ),
    fault(
        "busy processes",
        "every CPU",
        (WATCHED,),
        inject.several(inject.spin(0), inject.spin(1)),
        before=FINE,
        during=FINE,
        between=FINE,
        after=FINE,
    ),
)
_PROCESSES = (
    fault(
        "killed",
        "engine",
        (*FRAMES, RINGS),
        inject.send_signal(signal.SIGKILL, ENGINE, "!reflect"),
        before=KILLED,
        during=KILLED,
        between=KILLED,
        after=FINE,
    ),
    fault(
        "crashes",
        "engine",
        (CABLES, RINGS),
        inject.send_signal(signal.SIGSEGV, ENGINE, "!reflect"),
        before=ends("killed by signal 11"),
        during=ends("killed by signal 11"),
        between=ends("killed by signal 11"),
        after=FINE,
    ),
    fault(
        "hangs",
        "engine",
        (CABLES, RINGS),
        inject.send_signal(signal.SIGSTOP, ENGINE, "!reflect"),
        before=ends("within|silent|answer"),
        during=ends("within|silent|answer"),
        between=ends("within|silent|answer"),
        after=FINE,
    ),
    fault(
        "halts for a moment",
        "engine",
        (*FRAMES, RINGS),
        inject.halt(ENGINE, "!reflect"),
        before=FINE,
        during=FINE,
        between=FINE,
        after=FINE,
    ),
    fault(
        "killed",
        "controller",
        EVERY,
        inject.signal_controller(signal.SIGKILL),
        before=SHOT,
        during=SHOT,
        between=SHOT,
        after=SHOT,
    ),
    fault(
        "Ctrl-C",
        "controller",
        EVERY,
        inject.signal_controller(signal.SIGINT),
        before=STOPPED,
        during=STOPPED,
        between=STOPPED,
        after=STOPPED,
    ),
    fault(
        "SIGTERM",
        "controller",
        EVERY,
        inject.signal_controller(signal.SIGTERM),
        before=STOPPED,
        during=STOPPED,
        between=STOPPED,
        after=STOPPED,
    ),
    fault(
        "its terminal goes away",
        "controller",
        (CABLES, CLIENTS),
        inject.signal_controller(signal.SIGHUP),
        before=STOPPED,
        during=STOPPED,
        between=STOPPED,
        after=STOPPED,
    ),
    fault(
        "halts for a moment",
        "controller",
        EVERY,
        inject.halt_controller,
        before=FINE,
        during=FINE,
        between=FINE,
        after=FINE,
    ),
    fault(
        "killed",
        "monitor",
        (WATCHED,),
        inject.send_signal(signal.SIGKILL, MONITOR),
        before=told("monitor"),
        during=told("monitor"),
        between=told("monitor"),
        after=FINE,
    ),
    fault(
        "hangs",
        "monitor",
        (WATCHED,),
        inject.send_signal(signal.SIGSTOP, MONITOR),
        before=told("monitor"),
        during=told("monitor"),
        between=told("monitor"),
        after=FINE,
    ),
)
_TOOLS = (
    fault(
        "killed",
        "tool",
        (CLIENTS,),
        inject.send_signal(signal.SIGKILL, "iperf3", "-c"),
        during=seen(PEER),
    ),
    fault(
        "crashes",
        "tool",
        (CLIENTS,),
        inject.send_signal(signal.SIGSEGV, "iperf3", "-c"),
        during=seen(PEER),
    ),
    fault(
        "killed each time",
        "tool",
        (CLIENTS,),
        inject.keep_killing("iperf3", "-c"),
        before=TOOLS,
        during=TOOLS,
        between=INCOMPLETE,
    ),
    fault("hangs", "tool", (CLIENTS,), inject.send_signal(signal.SIGSTOP, "iperf3", "-c"), during=seen(PEER)),
    fault("killed", "tool", (NUTTCP,), inject.send_signal(signal.SIGKILL, "nuttcp", "-t"), during=seen(PEER)),
    fault("killed", "server", (CLIENTS,), inject.send_signal(signal.SIGKILL, "iperf3", "-s"), during=seen(PEER)),
    fault("hangs", "server", (CLIENTS,), inject.send_signal(signal.SIGSTOP, "iperf3", "-s"), during=seen(PEER)),
    fault(
        "killed each time",
        "server",
        (CLIENTS,),
        inject.keep_killing("iperf3", "-s"),
        before=TOOLS,
        during=TOOLS,
        between=INCOMPLETE,
    ),
    fault(
        "its port is taken",
        "server",
        (CLIENTS,),
        inject.listen_on("server"),
        before=ends("5201"),
        between=INCOMPLETE,
        after=FINE,
    ),
    *(
        fault(
            f"lies alike at both ends, {words}",
            "tool",
            (CLIENTS, SHARED),
            tools.wrong_tool("multiplies", factor=f),
            early=Expect(reasons=frozenset({Reason.CONTRADICTED}), verdicts=frozenset({"disturbed"})),
        )
        for words, f in (("a fifth more", 1.2), ("twice", 2.0), ("a hundred times", 100.0), ("half", 0.5))
    ),
    fault(
        "lies once",
        "tool",
        (CLIENTS,),
        tools.wrong_tool("multiplies", factor=2.0, times=2),
        early=seen(Reason.CONTRADICTED),
    ),
    *(
        fault(f"answers {words}", "tool", (CLIENTS,), tools.wrong_tool(how), early=TOOLS)
        for words, how in (
            ("garbage", "garbage"),
            ("NaN", "nan"),
            ("less than nothing", "minus"),
            ("zero", "zero"),
            ("nothing", "nothing"),
            ("half of its figures", "half"),
            ("an error", "fails"),
            ("without end", "endless"),
        )
    ),
    *(
        fault(f"answers {words} once", "tool", (CLIENTS,), tools.wrong_tool(how, only="-c", times=1), early=seen(PEER))
        for words, how in (("garbage", "garbage"), ("NaN", "nan"), ("nothing", "nothing"), ("an error", "fails"))
    ),
    fault(
        "its port stays down",
        "client",
        (CLIENTS,),
        inject.take_down("c0"),
        before=INCOMPLETE,
        during=INCOMPLETE,
        between=FINE,
        after=FINE,
    ),
    fault("its port flaps", "client", (CLIENTS,), inject.flap("c0"), before=FINE, during=seen(LINK), after=FINE),
    fault(
        "its port is deleted",
        "client",
        (CLIENTS,),
        inject.delete_port("c0"),
        before=INCOMPLETE,
        during=INCOMPLETE,
        between=FINE,
        after=FINE,
    ),
)
_MACHINE = (
    fault(
        "full",
        "disk",
        EVERY,
        inject.fill_disk,
        early=FULL,
        before=FULL,
        during=FULL,
        between=FULL,
        after=FULL,
    ),
    fault(
        "becomes read-only",
        "disk",
        EVERY,
        inject.make_read_only,
        early=READ_ONLY,
        before=READ_ONLY,
        during=READ_ONLY,
        between=READ_ONLY,
        after=READ_ONLY,
    ),
    fault(
        "the run folder is deleted",
        "disk",
        (CABLES, CLIENTS),
        inject.delete_run_folder,
        before=ends("cannot be|No such file|is gone"),
        during=ends("cannot be|No such file|is gone"),
        between=ends("cannot be|No such file|is gone"),
        after=ends("cannot be|No such file|is gone"),
    ),
)
_CLOCKS = (
    fault(
        "real time is set",
        "clock",
        EVERY,
        clocks.step("real", 3600.0, -3600.0, 0.5, -0.5),
        clocks.settable_clock,
        before=FINE,
        during=FINE,
        between=FINE,
        after=FINE,
    ),
    fault(
        "jumps",
        "engine's clock",
        (CABLES, RINGS),
        clocks.step("monotonic", 0.1, 2.0),
        clocks.settable_clock,
        before=FINE,
        during=seen(Reason.CLOCK_STEP),
        between=FINE,
        after=FINE,
    ),
    fault(
        "jumps",
        "tool's clock",
        (CLIENTS,),
        clocks.step("monotonic", 30.0, -0.6),
        clocks.settable_clock,
        before=FINE,
        during=seen(PEER, Reason.CONTRADICTED),
        between=FINE,
        after=FINE,
    ),
)

TABLE: Final = (*_PORTS, *_DUT, *_PROCESSES, *_TOOLS, *_MACHINE, *_CLOCKS)


def cases() -> Iterator[Case]:
    """Every cell of the table."""
    for row in TABLE:
        for moment in row.moments:
            for bench in row.benches:
                yield Case(row, bench, moment)
