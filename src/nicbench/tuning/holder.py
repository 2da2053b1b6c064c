"""Who holds a machine or ports of it: the content of a lease, and how it is told to whoever has to wait."""

from __future__ import annotations

import getpass
import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pydantic import ValidationError

from nicbench.core.base import Frozen
from nicbench.core.errors import BusyError
from nicbench.core.units import format_duration_s


class Lease(Frozen):
    """Whose a lease is. ``silence_s``: so long after the controller was last heard of it ends by itself."""

    run_id: str
    user: str
    machine: str
    pid: int
    silence_s: float | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """A lease as it was found; None where what its file says is no lease.

    ``age_s`` is by the clock of the machine that it is of; ``ports`` are empty where it is of the whole machine.
    """

    lease: Lease | None
    age_s: float | None = None
    ports: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """Run, user, machine and process."""
        if self.lease is None:
            return "somebody whose lease cannot be read"
        return (
            f"run {_plain(self.lease.run_id)} of {_plain(self.lease.user)}@{_plain(self.lease.machine)} "
            f"(process {self.lease.pid})"
        )

    def describe(self, now: datetime) -> str:
        """The same with what it holds, since when and until when; ``now`` is by the clock of whoever reads it."""
        what = f"port {', '.join(map(_plain, self.ports))}" if self.ports else "the whole machine"
        since = ""
        if self.age_s is not None and self.age_s >= 0:
            begun = now - timedelta(seconds=self.age_s)
            since = f" since {begun:%Y-%m-%d %H:%M:%S} UTC ({format_duration_s(self.age_s)})"
        silence_s = None if self.lease is None else self.lease.silence_s
        silence = "" if silence_s is None else f", or {silence_s:g} s after its controller was last heard of"
        return f"{self.words} holds {what}{since}, until it ends{silence}"


def lease_of_this_process(run_id: str, silence_s: float | None = None) -> Lease:
    """This process as a holder; behind sudo the person, not root."""
    try:
        user = os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())  # a user without a name
    return Lease(run_id=run_id, user=user, machine=platform.node(), pid=os.getpid(), silence_s=silence_s)


def lease_text(lease: Lease, ports: Sequence[str]) -> tuple[str, ...]:
    """The lines of a lease's file, but for the time that stands before them."""
    return (json.dumps(lease.model_dump()), *ports)


def standing_of(text: str, now_s: int | None) -> Standing:
    """Reads a lease's file, whose lines may have become words of one line: time, lease, ports. Whatever it holds."""
    since, _, rest = text.strip().partition(" ")
    try:
        content, end = json.JSONDecoder().raw_decode(rest)
        lease = Lease.model_validate(content)
    except (ValueError, ValidationError, RecursionError):
        return Standing(None)
    age_s = float(now_s - int(since)) if now_s is not None and since.isdigit() else None
    return Standing(lease, age_s, tuple(rest[end:].split()))


def busy(holders: Sequence[Standing], place: str, step: str | None = None) -> BusyError:
    """The error of a lease that others hold, with each of them."""
    now = datetime.now(UTC)
    told = "; ".join(holder.describe(now) for holder in holders) or "another run is starting"
    step = step or "wait until it has ended (--wait 10min does), or end it where it was started"
    return BusyError(f"in use: {told}", place=place, next_step=step)


def _plain(text: str) -> str:
    """What a stranger wrote, fit for a terminal."""
    return "".join(character if character.isprintable() else "?" for character in text[:100])
