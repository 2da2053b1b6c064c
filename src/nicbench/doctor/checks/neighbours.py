"""Noisy neighbours: who else uses the physical cores that a lab would measure on, looked at for a second.

A neighbour on the other hyperthread, or another virtual machine, is seen by its effect: the core runs slower.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from nicbench.core.errors import HostError, NicbenchError
from nicbench.core.judging import Thresholds
from nicbench.doctor.base import Check, Examination, ok, warning
from nicbench.doctor.checks._files import measuring_cpus
from nicbench.engine.binaries import find_binary
from nicbench.hosts.base import Host

_NAME, _MEND = "noisy neighbours", "make install"
_WARM_UP_S, _LOOK_S, _ANSWER_S = 0.3, 1.0, 5.0
"""A core that was idle is slow at first; that is no neighbour."""
_STEAL = 7  # proc(5), /proc/stat
_MAY_TAKE = 0.01


@dataclass(frozen=True, slots=True)
class Looks:
    """``slow`` of the ``looks`` at a CPU found its physical core in use by somebody else too."""

    cpu: int
    looks: int
    slow: int


class Neighbours(Examination):
    """From ``nicbench-packets measure sharing`` and the stolen time in ``/proc/stat``."""

    kind = "neighbours"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        cpus = await measuring_cpus(host)
        try:
            before = await host.read_file("/proc/stat") or ""
            looks = await look_at(host, cpus, _LOOK_S)
        except NicbenchError as error:
            return (warning(_NAME, f"cannot be looked for: {error.message}", _MEND),)
        return (judge(looks, stolen_ratio(before, await host.read_file("/proc/stat") or "", cpus)),)


async def look_at(host: Host, cpus: Sequence[int], duration_s: float) -> tuple[Looks, ...]:
    """What looks at these CPUs found for so long; HostError where the host cannot look."""
    process = await host.start((str(find_binary("nicbench-packets")), "measure", "sharing", *map(str, cpus)))
    try:
        await process.write_line("")
        await process.read_line(_ANSWER_S)
        await asyncio.sleep(_WARM_UP_S)
        await process.write_line("")
        await process.read_line(_ANSWER_S)
        await asyncio.sleep(duration_s)
        await process.write_line("")
        return parse_looks(await process.read_line(_ANSWER_S) or "")
    finally:
        with suppress(HostError):
            await process.close_stdin()
            await process.wait(_ANSWER_S)


def parse_looks(line: str) -> tuple[Looks, ...]:
    """One answer of ``measure sharing``; HostError where it is none."""
    try:
        return tuple(Looks(int(cpu["cpu"]), int(cpu["looks"]), int(cpu["slow"])) for cpu in json.loads(line)["cpus"])
    except (ValueError, LookupError, TypeError) as error:
        raise HostError(f"`measure sharing` answers {line[:80]!r}", next_step=_MEND) from error


def stolen_ratio(before: str, after: str, cpus: Sequence[int]) -> float | None:
    """Share of the time between two texts of ``/proc/stat`` that a hypervisor took from these CPUs; None unknown."""
    first, last = _times(before, cpus), _times(after, cpus)
    if first is None or last is None or sum(last) <= sum(first):
        return None
    return (last[_STEAL] - first[_STEAL]) / (sum(last) - sum(first))


def _times(stat: str, cpus: Sequence[int]) -> list[int] | None:
    names = {f"cpu{cpu}" for cpu in cpus}
    rows = [row.split()[1 : _STEAL + 2] for row in stat.splitlines() if row.split()[:1] and row.split()[0] in names]
    if not rows or any(len(row) <= _STEAL or not all(value.isdecimal() for value in row) for row in rows):
        return None
    return [sum(int(row[column]) for row in rows) for column in range(_STEAL + 1)]


def judge(looks: Sequence[Looks], steal: float | None) -> Check:
    """By the threshold that spoils a trial, ``dut_contended_share``."""
    limit = Thresholds().dut_contended_share
    shares = {look.cpu: look.slow / look.looks for look in looks if look.looks}
    if not shares:
        return warning(_NAME, "the measuring cores could not be sampled: other programs keep them busy")
    seen = ", ".join(
        f"{100 * shares[look.cpu]:.0f} % of {look.looks} samples of CPU {look.cpu}" for look in looks if look.looks
    )
    text = f"within a second, {seen} found another tenant on the physical core"
    if steal is not None and steal > _MAY_TAKE:
        text += f", and the hypervisor took {100 * steal:.1f} % of their time"
    elif max(shares.values()) <= limit:
        return ok(_NAME, text)
    return warning(
        _NAME,
        f"{text}. Above {100 * limit:.0f} % a trial is `disturbed`: stop other programs, pin other guests away "
        "from these cores, or use a dedicated machine",
    )
