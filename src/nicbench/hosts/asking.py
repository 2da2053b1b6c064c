"""Reads from hosts what several packages need: output and files, its clock, and its NUMA nodes."""

from __future__ import annotations

import fnmatch
import re
import shlex
import signal
import time
from collections.abc import Iterable, Mapping
from typing import Final

from nicbench.core.clocks import ClockOffset, Exchange, offset_of
from nicbench.core.errors import HostError, NicbenchError, UnknownFactError
from nicbench.core.machine import NumaNode, RanOn, parse_cpu_list
from nicbench.hosts.base import Host, Process

__all__ = [
    "clock_of",
    "compare_clocks",
    "count_pages",
    "describe_path",
    "join_scripts",
    "numa_nodes",
    "output_of",
    "passes_whole",
    "paths_and_values",
    "read_placement",
    "split_sections",
    "text_of",
    "values_of",
]

_MARK = "=== nicbench section "
_EXCHANGES = 10
_ANSWER_TIMEOUT_S = 5.0
# bash 5.0 and later has the time as a variable; elsewhere each answer starts a program, which takes a millisecond.
_TIME_SERVER = """
if [ -n "$(bash -c 'echo "$EPOCHREALTIME"' 2>/dev/null)" ]; then
    exec bash -c 'while read -r _; do echo "$EPOCHREALTIME"; done'
fi
while read -r _; do date +%s.%N; done
"""
_TIME = re.compile(r"(\d{9,11})\.(\d{6,9})")
_NODES: Final = "/sys/devices/system/node"
_ALLOWED = re.compile(r"^Cpus_allowed_list:\s*(\S+)$", re.MULTILINE)
_PAGES = re.compile(r" N(\d+)=(\d+)")
_GLOB = re.compile(r"[*?\[]")
_LONGEST_PATH: Final = 4096  # PATH_MAX of Linux: no file has a longer one


# Many small readings in one command: each output follows a line with its name.


def join_scripts(scripts: Mapping[str, str]) -> str:
    """Joins scripts into one. A script that fails on a host prints nothing and does not stop the others."""
    return "; ".join(
        f"echo; echo {shlex.quote(_MARK + name)}; {{ {one}; }} 2>/dev/null" for name, one in scripts.items()
    )


def split_sections(text: str) -> dict[str, str]:
    """Splits the output of a script made by ``join_scripts`` into outputs by name."""
    found: dict[str, list[str]] = {}
    lines = []
    for line in text.splitlines():
        if line.startswith(_MARK):
            lines = found.setdefault(line.removeprefix(_MARK), [])
        else:
            lines.append(line)
    return {name: "\n".join(lines) for name, lines in found.items()}


# Clocks: one process answers several times, so that starting a program is not part of the delay.


async def compare_clocks(hosts: Iterable[Host]) -> tuple[ClockOffset, ...]:
    """Measures the offset of each host's wall clock from this machine's, in order. HostError without an answer."""
    return tuple([await clock_of(host) for host in hosts])


async def clock_of(host: Host) -> ClockOffset:
    """Measures the offset of one host's wall clock. A host on this machine has the same clock."""
    if host.machine.kind == "local":
        return ClockOffset(host=host.name, offset_s=0.0, uncertainty_s=0.0, exchanges=0)
    process = await host.start(("sh", "-c", _TIME_SERVER))
    try:
        return offset_of(host.name, [await _exchange(process, host) for _ in range(_EXCHANGES)])
    finally:
        await process.close_stdin()
        await process.signal(signal.SIGKILL)
        await process.wait(_ANSWER_TIMEOUT_S)


async def _exchange(process: Process, host: Host) -> Exchange:
    sent_ns = time.time_ns()
    await process.write_line("")
    answer = await process.read_line(_ANSWER_TIMEOUT_S)
    received_ns = time.time_ns()
    time_match = _TIME.fullmatch(answer or "")
    if time_match is None:
        raise HostError(f"it does not tell the time: {answer!r} {process.stderr_tail()}", place=host.name)
    said_ns = int(time_match[1]) * 10**9 + int(time_match[2].ljust(9, "0"))
    return Exchange(sent_ns=sent_ns, said_ns=said_ns, received_ns=received_ns)


# NUMA: the nodes of a machine, and where a process and its memory are.


async def numa_nodes(host: Host) -> tuple[NumaNode, ...]:
    """Reads the NUMA nodes of the host's machine that have CPUs; none where the kernel is built without NUMA."""
    online = await host.machine.read_file(f"{_NODES}/online")
    if online is None:
        return ()
    found = []
    for number in parse_cpu_list(online.strip()):
        cpus = await host.machine.read_file(f"{_NODES}/node{number}/cpulist")
        if cpus is not None and cpus.strip():
            found.append(NumaNode(number=number, cpus=parse_cpu_list(cpus.strip())))
    return tuple(found)


async def read_placement(host: Host, pid: int) -> RanOn | None:
    """Reads the CPUs that a process may run on and the nodes of its memory; None where it ended or may not be read."""
    try:
        status = await host.read_file(f"/proc/{pid}/status")
        maps = await host.read_file(f"/proc/{pid}/numa_maps")
    except HostError:
        return None
    allowed = _ALLOWED.search(status or "")
    if allowed is None:
        return None
    return RanOn(cpus=parse_cpu_list(allowed[1]), pages=None if maps is None else count_pages(maps))


def count_pages(maps: str) -> dict[int, int]:
    """Counts anonymous pages by node in /proc/PID/numa_maps (numa(7)).

    Pages of files are left out: they are on the node of the process that read the file first.
    """
    found: dict[int, int] = {}
    for line in maps.splitlines():
        if " anon=" in line:
            for node, pages in _PAGES.findall(line):
                found[int(node)] = found.get(int(node), 0) + int(pages)
    return found


# Texts: the output of a command, a file, or many small files at once.


def _headers_of_echo(address: str) -> int:
    return 48 if ":" in address else 28  # IP and ICMP


async def passes_whole(host: Host, address: str, size: int) -> bool:
    """Whether packets of ``size`` bytes, IP header included, reach an address and return in one piece (ping(8)).

    HostError where ping is missing or fails.
    """
    echo = str(size - _headers_of_echo(address))
    command = ("ping", "-n", "-q", "-M", "do", "-c", "2", "-i", "0.2", "-W", "1", "-s", echo, address)
    done = await host.run(command, check=False)
    if done.status not in (0, 1):  # 1: no answer came, or the interface does not take packets of this size
        raise HostError(f"ping: {done.reason}", place=host.name)
    return done.status == 0


async def describe_path(host: Host, device: str | None, address: str) -> str:
    """Describes which packets reach an address unfragmented, by echo requests. HostError where ping fails."""
    mtu = await text_of(host, f"/sys/class/net/{device}/mtu") if device else ""
    dropped = int(mtu) if mtu.strip().isdecimal() else 1500
    if await passes_whole(host, address, dropped):
        return f"the path to {address} carries echo requests, also of {dropped} bytes"
    passed = _headers_of_echo(address) + 8
    if not await passes_whole(host, address, passed):
        return f"{address} does not answer echo requests"
    while dropped - passed > 1:
        middle = (passed + dropped) // 2
        passed, dropped = (middle, dropped) if await passes_whole(host, address, middle) else (passed, middle)
    return f"the path to {address} drops packets of more than {passed} bytes"


async def output_of(host: Host, *command: str) -> str:
    """Runs a command and returns its output. UnknownFactError where it is missing, fails, or prints nothing."""
    try:
        done = await host.run(command, check=False)
    except NicbenchError as error:
        raise UnknownFactError(error.message) from error
    if done.status != 0 or not done.stdout.strip():
        reason = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise UnknownFactError(f"{' '.join(command)}: {reason}")
    return done.stdout


async def text_of(host: Host, path: str) -> str:
    """Reads a file. UnknownFactError where it does not exist or cannot be read."""
    try:
        text = await host.read_file(path)
    except NicbenchError as error:
        raise UnknownFactError(error.message) from error
    if text is None:
        raise UnknownFactError(f"{path} does not exist")
    return text


async def values_of(host: Host, paths: Iterable[str]) -> dict[str, str]:
    """Reads small files under /proc and /sys by path or pattern; files that cannot be read are left out."""
    patterns = tuple(paths)
    try:
        # The shell of that host expands the patterns, in its namespace; callers quote the names in them.
        done = await host.run(("sh", "-c", f'grep -sH "" {" ".join(patterns)}'), check=False)
    except NicbenchError as error:
        raise UnknownFactError(error.message) from error
    found = paths_and_values(done.stdout, patterns)
    if not found:
        others = f" (nor any of {len(patterns) - 1} beside it)" if len(patterns) > 1 else ""
        raise UnknownFactError(f"{patterns[0]} cannot be read{others}")
    return found


def paths_and_values(text: str, patterns: Iterable[str] = ()) -> dict[str, str]:
    """Parses the output of ``grep -H ""`` over files of one line (``path:value``).

    Folders may have colons, as PCI addresses do: the path ends at the first colon before which it fits one of the
    ``patterns`` of the shell, and where it fits none, at the first colon of the line.
    """
    asked = [_unquote(pattern) for pattern in patterns]
    globs = [pattern.split("/") for pattern in asked if _GLOB.search(pattern)]
    exact = set(asked)

    def fits(path: str) -> bool:
        parts = path.split("/")
        return path in exact or any(
            len(parts) == len(glob) and all(map(fnmatch.fnmatchcase, parts, glob)) for glob in globs
        )

    found = {}
    for line in text.splitlines():
        colons = [at.start() for at in re.finditer(":", line[:_LONGEST_PATH])]
        end = next((at for at in colons if fits(line[:at])), colons[0]) if colons else None
        if end is not None:
            found[line[:end]] = line[end + 1 :].strip()
    return found


def _unquote(pattern: str) -> str:
    """Returns a pattern without the quotation marks of the shell; a pattern that the shell does not parse is returned
    unchanged.
    """
    try:
        return "".join(shlex.split(pattern))
    except ValueError:
        return pattern
