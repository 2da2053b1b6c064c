"""Asks hosts for the time, several times over one process, so that no start of a program is in the answer."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterable

from nicbench.errors import HostError
from nicbench.hosts.base import Host, Process
from nicbench.model.clock import ClockOffset, Exchange, offset_of

_EXCHANGES = 10
_ANSWER_TIMEOUT_S = 5.0
# bash (5.0) knows the time itself; otherwise a program is started for each answer, which takes a millisecond.
_TELL_TIME = """
if [ -n "$(bash -c 'echo "$EPOCHREALTIME"' 2>/dev/null)" ]; then
    exec bash -c 'while read -r _; do echo "$EPOCHREALTIME"; done'
fi
while read -r _; do date +%s.%N; done
"""
_TIME = re.compile(r"(\d{9,11})\.(\d{6,9})")


async def compare_clocks(hosts: Iterable[Host]) -> tuple[ClockOffset, ...]:
    """Each host's wall clock against this machine's, in order. HostError where one does not tell the time."""
    return tuple([await clock_of(host) for host in hosts])


async def clock_of(host: Host) -> ClockOffset:
    """One host's. A host on this machine has the same clock."""
    if host.machine.kind == "local":
        return ClockOffset(host=host.name, offset_s=0.0, uncertainty_s=0.0, exchanges=0)
    process = await host.start(("sh", "-c", _TELL_TIME))
    try:
        return offset_of(host.name, [await _ask(process, host) for _ in range(_EXCHANGES)])
    finally:
        await process.close_stdin()
        await process.signal(signal.SIGKILL)
        await process.wait(_ANSWER_TIMEOUT_S)


async def _ask(process: Process, host: Host) -> Exchange:
    sent_ns = time.time_ns()
    await process.write_line("")
    answer = await process.read_line(_ANSWER_TIMEOUT_S)
    received_ns = time.time_ns()
    told = _TIME.fullmatch(answer or "")
    if told is None:
        raise HostError(f"it does not tell the time: {answer!r} {process.stderr_tail()}", place=host.name)
    said_ns = int(told[1]) * 10**9 + int(told[2].ljust(9, "0"))
    return Exchange(sent_ns=sent_ns, said_ns=said_ns, received_ns=received_ns)
