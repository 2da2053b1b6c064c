"""The table of faults: fault x place x moment, and for each what the run must say, written down before it is tried.

Of every case holds besides, and is checked for each (``checks.py``): nothing is valid that was broken, nothing is
charged to the device, what was measured is kept, and the machine is as it was.

``tests/faults/table.py`` has a row for each fault: its place, the benches that it is tried on, how it is injected,
and for each moment what the run must say (``expecting.py``). What holds for every case stands in ``checks.py`` and
not in a row.

1. Write the row and what you expect first, from what a user would want: exit status, words, reasons of verdicts,
   whether ``resume`` goes on.
2. Write the injection into ``inject.py``, or beside it where its place has a file of its own (``tools.py``,
   ``clocks.py``, ``far.py``): a function of the scene, which finds ports and processes from outside, as somebody else
   would (``places.py``), and appends to ``scene.mending`` what makes the testbed whole again. It does what it says or
   fails: a fault that did not happen proves nothing.
3. A new kind of testbed is a ``Bench`` (``benches.py``): a few seconds, and a truth that ``checks.py`` can compare
   valid results with.
4. Run its cases: ``.venv/bin/pytest tests/faults --every-case -n 2 --own-mounts -k NAME``. Where one is not as
   expected, nicbench is wrong until the opposite is shown; a fix of it is a change of its own.
5. Tell users in ``docs/troubleshooting.md``.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from nicbench.core.judging import Reason

from . import clocks, far, inject, tools
from .benches import AF_XDP, CABLES, CLIENTS, FAR, GUEST, LAB, LIARS, NUTTCP, RINGS, SHARED, WATCHED
from .expecting import (
    FINE,
    INCOMPLETE,
    NEVER_VALID,
    Case,
    Expect,
    Fault,
    early,
    ends,
    only_during,
    seen,
    told,
    until_after,
)
from .places import ENGINE, MONITOR, QEMU

FRAMES = (CABLES, LAB)
EVERY = (CABLES, RINGS, CLIENTS)
LINK, PEER, CONTRADICTED = Reason.LINK_CHANGED, Reason.PEER_FAILED, Reason.CONTRADICTED
KILL, CRASH, STOP = signal.SIGKILL, signal.SIGABRT, signal.SIGSTOP

GONE = ends("is gone|No such device|no interface|does not exist|vanished|not found|disappear|nothing comes back")
SILENT = ends("nothing comes back|link of the tester's port", resumes=True)
KILLED = ends("killed by signal 9", resumes=True)
CRASHED = ends("killed by signal 6")
DUT_HANGS = ends("nothing comes back|did not give its event", resumes=True)
HUNG = ends("within|silent|answer")
STOPPED_EARLY = ends("stopped by SIG", 130)  # there is nothing yet to go on from
STOPPED = ends("stopped by SIG.*nicbench resume", 130, resumes=True)
SHOT = Expect(frozenset({-signal.SIGKILL}), resumes=True)
FULL = ends("disk is full|No space left", resumes=True)
# What comes after measuring has a status of its own.
UNWRITTEN = replace(FULL, statuses=frozenset({7}))
FULL_AFTER = replace(FULL, statuses=FULL.statuses | UNWRITTEN.statuses)
STOPPED_AFTER = Expect(frozenset({0, 130}), "report: |stopped by SIG.*everything was measured|without a report")
TOOLS = ends("iperf3")
STOPS = {
    "before": STOPPED_EARLY,
    "during": STOPPED_EARLY,
    "between": STOPPED,
    "after": STOPPED,
    "written": STOPPED_AFTER,
}

_PORTS = (
    Fault("deleted", "tester's port", FRAMES, inject.delete_port("tester"), until_after(GONE)),
    Fault("stays down", "tester's port", FRAMES, inject.take_down("tester"), until_after(SILENT)),
    Fault("flaps", "tester's port", FRAMES, inject.flap("tester"), only_during(seen(LINK))),
    Fault("its XDP program is taken off", "tester's port", (AF_XDP,), inject.take_program_off, until_after(SILENT)),
    Fault("pulled", "cable", FRAMES, inject.pull_cable("tester", "dut"), until_after(SILENT)),
    Fault("swallows all with its links up", "cable", FRAMES, inject.swallow("dut"), until_after(SILENT)),
    Fault("deleted", "DUT's port", FRAMES, inject.delete_port("dut"), until_after(GONE)),
    Fault("stays down", "DUT's port", FRAMES, inject.take_down("dut"), until_after(SILENT)),
    Fault("flaps", "DUT's port", FRAMES, inject.flap("dut"), only_during(seen(LINK))),
    Fault("loses its addresses", "DUT's port", FRAMES, inject.forget("address"), only_during(seen(PEER))),
    Fault("loses its neighbours", "DUT's port", FRAMES, inject.forget("neighbour"), only_during(seen(PEER))),
    Fault("loses its routes", "DUT's port", FRAMES, inject.forget("route"), only_during(seen(PEER))),
    Fault(
        "loses also the route to its own network", "DUT's port", FRAMES, inject.forget("routes"), until_after(SILENT)
    ),
)
_DUT = (
    Fault("forwarding is switched off", "DUT", FRAMES, inject.stop_forwarding, until_after(SILENT)),
    Fault("a firewall drops all", "DUT", FRAMES, inject.drop_all_forwarded, until_after(SILENT)),
    *(
        Fault(f"{what} is changed for a moment", "DUT", FRAMES, inject.meddle(what), only_during(seen(Reason.CHANGED)))
        for what in inject.MEDDLING
    ),
    Fault("killed", "DUT", (RINGS,), inject.send_signal(KILL, ENGINE, "reflect"), until_after(KILLED)),
    Fault("crashes", "DUT", (RINGS,), inject.send_signal(CRASH, ENGINE, "reflect"), until_after(CRASHED)),
    Fault("hangs", "DUT", (RINGS,), inject.send_signal(STOP, ENGINE, "reflect"), until_after(DUT_HANGS)),
    Fault("halts for a moment", "DUT", (RINGS,), inject.halt(ENGINE, "reflect"), only_during(FINE)),
    Fault("a busy process", "DUT's CPU", (*FRAMES, RINGS), inject.spin(1), only_during(FINE)),
    Fault("a busy process", "tester's CPU", (*FRAMES, RINGS), inject.spin(0), only_during(FINE)),
    Fault("busy processes", "every CPU", (WATCHED,), inject.several(inject.spin(0), inject.spin(1)), only_during(FINE)),
)
_PROCESSES = (
    Fault("killed", "engine", (*FRAMES, RINGS), inject.send_signal(KILL, ENGINE, "!reflect"), until_after(KILLED)),
    Fault("crashes", "engine", (CABLES, RINGS), inject.send_signal(CRASH, ENGINE, "!reflect"), until_after(CRASHED)),
    Fault("hangs", "engine", (CABLES, RINGS), inject.send_signal(STOP, ENGINE, "!reflect"), until_after(HUNG)),
    Fault("halts for a moment", "engine", (*FRAMES, RINGS), inject.halt(ENGINE, "!reflect"), only_during(FINE)),
    Fault("killed", "controller", EVERY, inject.signal_controller(KILL), {**until_after(SHOT, SHOT), "written": SHOT}),
    Fault("Ctrl-C", "controller", EVERY, inject.signal_controller(signal.SIGINT), STOPS),
    Fault("SIGTERM", "controller", EVERY, inject.signal_controller(signal.SIGTERM), STOPS),
    Fault("its terminal goes away", "controller", (CABLES, CLIENTS), inject.signal_controller(signal.SIGHUP), STOPS),
    Fault("halts for a moment", "controller", EVERY, inject.halt_controller, only_during(FINE)),
    Fault("killed", "monitor", (WATCHED,), inject.send_signal(KILL, MONITOR), until_after(told("monitor"))),
    Fault("hangs", "monitor", (WATCHED,), inject.send_signal(STOP, MONITOR), until_after(told("monitor"))),
)
_LIES = (("a fifth more", 1.2), ("twice", 2.0), ("a hundred times", 100.0))
_NONSENSE = (
    ("garbage", "garbage"),
    ("NaN", "nan"),
    ("less than nothing", "minus"),
    ("zero", "zero"),
    ("nothing", "nothing"),
    ("half of its figures", "half"),
    ("an error", "fails"),
    ("without end", "endless"),
)
_NAMED = Expect(words=r"receiving: the tools say", reasons=frozenset({CONTRADICTED}), verdicts=NEVER_VALID)
_REFUSED = ends("cannot be so")
_NAMED_OR_REFUSED = Expect(
    frozenset({0, 4}), rf"{_REFUSED.words}|{_NAMED.words}", verdicts=NEVER_VALID | {"incomplete"}
)
_TOOLS = (
    Fault("killed", "tool", (CLIENTS,), inject.send_signal(KILL, "iperf3", "-c"), {"during": seen(PEER)}),
    Fault("crashes", "tool", (CLIENTS,), inject.send_signal(CRASH, "iperf3", "-c"), {"during": seen(PEER)}),
    Fault("hangs", "tool", (CLIENTS,), inject.send_signal(STOP, "iperf3", "-c"), {"during": seen(PEER)}),
    Fault("killed", "tool", (NUTTCP,), inject.send_signal(KILL, "nuttcp", "-t"), {"during": seen(PEER)}),
    Fault(
        "killed each time",
        "tool",
        (CLIENTS,),
        inject.keep_killing("iperf3", "-c"),
        {"before": TOOLS, "during": TOOLS, "between": INCOMPLETE},
    ),
    *(
        Fault(f"lies alike at both ends, {words}", "tool", (SHARED,), tools.lies(factor), early(expect))
        for words, factor, expect in (
            ("a fifth more", 1.2, _NAMED_OR_REFUSED),
            ("twice", 2.0, _NAMED_OR_REFUSED),
            ("half", 0.5, _NAMED),
            ("seven tenths", 0.7, _NAMED),
        )
    ),
    # One client that says more than its link carries is refused at once; of two that share a port, one may say so much.
    # On a busy machine a fifth more may be less than the link.
    *(
        Fault(f"lies alike at both ends, {words}", "tool", (LIARS,), tools.lies(factor), early(expect))
        for (words, factor), expect in zip(_LIES, (_NAMED_OR_REFUSED, _REFUSED, _REFUSED), strict=True)
    ),
    Fault("lies alike at both ends, half", "tool", (LIARS,), tools.lies(0.5), early(_NAMED)),
    Fault("lies once", "tool", (LIARS,), tools.lies(2.0, times=2), early(seen(PEER, CONTRADICTED))),
    *(Fault(f"answers {words}", "tool", (CLIENTS,), tools.wrong_tool(how), early(TOOLS)) for words, how in _NONSENSE),
    *(
        Fault(f"answers {words} once", "tool", (CLIENTS,), tools.wrong_tool(how, only="-c", times=1), early(seen(PEER)))
        for words, how in _NONSENSE
        if how != "endless"
    ),
)
_ENDS = (
    Fault("killed", "server", (CLIENTS,), inject.send_signal(KILL, "iperf3", "-s"), {"during": seen(PEER)}),
    Fault("hangs", "server", (CLIENTS,), inject.send_signal(STOP, "iperf3", "-s"), {"during": seen(PEER)}),
    Fault(
        "killed each time",
        "server",
        (CLIENTS,),
        inject.keep_killing("iperf3", "-s"),
        {"before": TOOLS, "during": TOOLS, "between": INCOMPLETE},
    ),
    Fault(
        "its port is taken",
        "server",
        (CLIENTS,),
        inject.listen_on("server"),
        {"before": ends("5201"), "between": INCOMPLETE, "after": FINE},
    ),
    Fault(
        "its port stays down",
        "client",
        (CLIENTS,),
        inject.take_down("c0"),
        {"before": INCOMPLETE, "during": INCOMPLETE, "between": FINE, "after": FINE},
    ),
    Fault("its port flaps", "client", (CLIENTS,), inject.flap("c0"), only_during(seen(LINK))),
    Fault(
        "its port is deleted",
        "client",
        (CLIENTS,),
        inject.delete_port("c0"),
        {"before": INCOMPLETE, "during": INCOMPLETE, "between": FINE, "after": FINE},
    ),
)
_LOCKED, _NO_FOLDER = ends("cannot be written|not perm"), ends("somebody deleted the run folder")
# Files that are open are written to: a run may end with all its results and without a summary.
_LOCKED = replace(_LOCKED, statuses=frozenset({4, 7}))
_FULL = {"early": FULL, **until_after(FULL, FULL_AFTER), "written": UNWRITTEN}
_MACHINE = (
    Fault(
        "full", "disk", EVERY, inject.fill_disk, {"early": FULL, **until_after(FULL, FULL_AFTER), "written": UNWRITTEN}
    ),
    Fault("read-only", "disk", EVERY, inject.make_read_only, early(ends("Read-only file system", 2))),
    Fault(
        "takes no new file",
        "disk",
        EVERY,
        inject.lock_run_folder,
        {**until_after(_LOCKED, _LOCKED), "written": replace(_LOCKED, statuses=frozenset({7}))},
    ),
    Fault(
        "the run folder is deleted", "disk", (CABLES, CLIENTS), inject.delete_run_folder, until_after(*[_NO_FOLDER] * 2)
    ),
    Fault("held by another run", "lease", (CABLES, CLIENTS), inject.hold_machine, early(ends("in use", 3))),
    Fault(
        "its holder is killed",
        "lease",
        (CABLES, CLIENTS),
        inject.hold_machine_for_a_moment,
        early(told("in use|2026-01-01T000000Z-another")),
    ),
    Fault("another run asks for the machine", "lease", (CABLES, CLIENTS), inject.ask_for_machine, until_after(FINE)),
)
_LOST = ends("was lost|the connection", resumes=True)
_SSH = (
    Fault("sshd is killed", "ssh", (FAR,), far.signal_sshd(KILL), until_after(_LOST), far.prepare),
    Fault("half open", "ssh", (FAR,), far.signal_sshd(STOP), until_after(_LOST), far.prepare),
    Fault("halts for a moment", "ssh", (FAR,), far.halt_sshd, only_during(FINE), far.prepare),
    Fault("nobody answers", "ssh", (FAR,), far.close_door, early(ends("ssh to root", 3)), far.prepare),
    Fault("its host key changes", "ssh", (FAR,), far.change_key, early(ends("host key has CHANGED", 3)), far.prepare),
    Fault("killed", "controller", (FAR,), inject.signal_controller(KILL), until_after(SHOT, SHOT), far.prepare),
)
# A machine that is emulated: what it stands still for is long before it is noticed.
_STOOD_STILL = Expect(verdicts=frozenset({"valid", "disturbed", "incomplete"}))
_GUESTS = (
    Fault("killed", "guest", (GUEST,), inject.send_signal(KILL, QEMU), until_after(ends("guest", resumes=True))),
    Fault("hangs", "guest", (GUEST,), inject.send_signal(STOP, QEMU), {"between": ends("guest", resumes=True)}),
    Fault("halts for a moment", "guest", (GUEST,), inject.halt(QEMU), only_during(_STOOD_STILL)),
    Fault("killed", "controller", (GUEST,), inject.signal_controller(KILL), until_after(SHOT, SHOT)),
)
_REAL, _ENGINES = clocks.step("real", 3600.0, -3600.0, 0.5, -0.5), clocks.step("monotonic", 0.1, 2.0)
_TOOLS_CLOCK, _CLOCK = clocks.step("monotonic", 30.0, -0.6), clocks.settable_clock
# Programs in the kernel go by its clock: an engine that is far ahead of it has no frames by `driver: xdp`.
_FINE_OR_TOLD = Expect(frozenset({0, 4}), r"the kernel's clock is|: (valid|disturbed)\b")
_ENGINES_CLOCK = {
    **until_after(_FINE_OR_TOLD),
    "during": replace(_FINE_OR_TOLD, reasons=frozenset({Reason.CLOCK_STEP})),
}
_CLOCKS = (
    Fault("real time is set", "clock", EVERY, _REAL, only_during(FINE), _CLOCK),
    Fault("jumps", "engine's clock", (CABLES, RINGS), _ENGINES, _ENGINES_CLOCK, _CLOCK),
    Fault("jumps", "tool's clock", (CLIENTS,), _TOOLS_CLOCK, only_during(seen(PEER, CONTRADICTED)), _CLOCK),
)

TABLE: Final = (*_PORTS, *_DUT, *_PROCESSES, *_TOOLS, *_ENDS, *_MACHINE, *_SSH, *_GUESTS, *_CLOCKS)


def cases() -> Iterator[Case]:
    """Every cell of the table."""
    for row in TABLE:
        for moment in row.expected:
            for bench in row.benches:
                yield Case(row, bench, moment)
