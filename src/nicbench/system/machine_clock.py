"""The highest clock that each machine has shown, kept in the user's cache folder from run to run.

What is kept belongs to a machine, by its id and the model of its CPU, and lies with the controller whatever host the
machine is. It is a convenience: whatever cannot be read or written, or makes no sense, is as if nothing were kept.
"""

from __future__ import annotations

import hashlib
import re
from datetime import date
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import Field, ValidationError

from nicbench.core.base import Frozen
from nicbench.core.cache import cache_folder
from nicbench.core.clocks.reference_clock import ReferenceClock
from nicbench.core.errors import NicbenchError, UnknownFactError
from nicbench.hosts.asking import text_of
from nicbench.hosts.base import Host
from nicbench.store.files import write_atomically

HIGHEST_HZ: Final = 10e9
LOWEST_HZ: Final = 0.1e9
"""No core runs faster, or is measured while it runs slower."""
_MODEL: Final = re.compile(r"^model name\s*:\s*(\S.*)$", re.MULTILINE)


class Machine(NamedTuple):
    """What tells one machine from another, and from itself with another CPU."""

    id: str
    cpu_model: str


class _Kept(Frozen):
    """The content of a machine's file."""

    cpu_model: str
    clock_hz: float = Field(ge=LOWEST_HZ, le=HIGHEST_HZ)
    seen_on: date


async def identify(host: Host) -> Machine | None:
    """Returns the machine of a host; None where it has no id, or does not say which CPU it has."""
    try:
        machine_id = (await text_of(host, "/etc/machine-id")).strip()
        model = _MODEL.search(await text_of(host, "/proc/cpuinfo"))
    except UnknownFactError:
        return None
    return Machine(machine_id, model[1].strip()) if machine_id and model else None


def read_reference(machine: Machine, cache: Path | None = None) -> ReferenceClock | None:
    """Returns the clock kept for a machine; None where there is none, or one of another CPU, or an absurd one."""
    try:
        kept = _Kept.model_validate_json(_file_of(machine, cache).read_bytes())
    except (OSError, ValidationError):
        return None
    if kept.cpu_model != machine.cpu_model or kept.seen_on > date.today():
        return None
    return ReferenceClock(clock_hz=kept.clock_hz, seen_on=kept.seen_on)


def keep_highest(machine: Machine, clock_hz: float, cache: Path | None = None) -> None:
    """Keeps a clock that was seen today if it is the highest of its machine; never fails."""
    if not LOWEST_HZ <= clock_hz <= HIGHEST_HZ:
        return
    known = read_reference(machine, cache)
    if known is not None and known.clock_hz >= clock_hz:
        return
    kept = _Kept(cpu_model=machine.cpu_model, clock_hz=clock_hz, seen_on=date.today())
    path = _file_of(machine, cache)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, kept.model_dump_json().encode() + b"\n")
    except (OSError, NicbenchError):
        return


def _file_of(machine: Machine, cache: Path | None) -> Path:
    # The id of a machine is confidential (machine-id(5)): the name of the file must not give it away.
    name = hashlib.sha256(f"nicbench clock {machine.id}".encode()).hexdigest()[:16]
    return (cache or cache_folder()) / "clocks" / f"{name}.json"
