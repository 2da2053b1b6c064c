"""Slurm's commands: what they are asked, and what they say. Options and output as of Slurm 22.05."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from nicbench.core.errors import HostError, NotReadyError
from nicbench.fleet.machines import Machine

_LONGEST_S: Final = 120.0
_FIELD: Final = re.compile(r"(\w+)=(\S*)")
_NUMBER: Final = re.compile(r"[^_]*_([0-9]{1,9})")
_EXIT_CODE: Final = re.compile(r"([0-9]{1,3}):")
_MOST_NAMES: Final = 64
"""The most names in one question: a command line has a limit."""


@dataclass(frozen=True, slots=True)
class JobState:
    """What Slurm says of one run: its state (``PENDING``, ``TIMEOUT``), why it waits, and where it is or was."""

    job: str
    state: str
    nodes: str = ""
    reason: str = ""
    exit_status: int | None = None

    @property
    def is_alive(self) -> bool:
        """Whether it waits, runs, or is about to end."""
        return self.state in _ALIVE


_ALIVE: Final = frozenset(
    {"PENDING", "RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED", "REQUEUED", "REQUEUE_HOLD", "RESIZING", "STOPPED"}
)
States = dict[tuple[str, int], JobState]
"""By the name of the array, and the number in it."""


def call(command: Sequence[str], given: str | None = None) -> str:
    """Runs a command of Slurm and gives what it prints. NotReadyError where there is none, HostError where it fails."""
    try:
        done = subprocess.run(
            command,
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=_LONGEST_S,
            stdin=None if given else subprocess.DEVNULL,
        )
    except FileNotFoundError as error:
        step = "install Slurm's commands (Debian: slurm-client), or run this on a machine of the cluster"
        raise NotReadyError(f"the command {command[0]} is not installed", next_step=step) from error
    except subprocess.TimeoutExpired as error:
        step = "`scontrol ping` says whether its controller answers"
        raise HostError(
            f"{command[0]} did not answer within {_LONGEST_S:.0f} s", place="Slurm", next_step=step
        ) from error
    if done.returncode:
        said = done.stderr.strip() or f"exit status {done.returncode}"
        raise HostError(
            f"{command[0]}: {said}",
            place="Slurm",
            next_step="`scontrol ping` says whether its controller answers, slurmctld.log what it refused",
        )
    return done.stdout


def list_machines(names: Iterable[str] = ()) -> list[Machine]:
    """Every node of the cluster, or those of these names."""
    return parse_nodes(call(("scontrol", "show", "node", "-o", *((",".join(names),) if names else ()))))


def list_names(nodes: str) -> list[str]:
    """The names that a list of Slurm stands for: ``n[1-2]`` are two."""
    return call(("scontrol", "show", "hostnames", nodes)).split()


def largest_array() -> int:
    """How many runs one array may have."""
    found = re.search(r"^MaxArraySize\s*=\s*(\d+)", call(("scontrol", "show", "config")), re.MULTILINE)
    return int(found[1]) if found else 1001


def states_of(names: Sequence[str], since: datetime) -> tuple[States, bool]:
    """What the queue and the accounting know of the arrays of these names; and whether there is accounting."""
    found: States = {}
    known = True
    for first in range(0, len(names), _MOST_NAMES):
        asked = ",".join(names[first : first + _MOST_NAMES])
        accounted: States = {}
        try:
            began = since.astimezone().strftime("%Y-%m-%dT%H:%M:%S")
            fields = "JobID,JobName,State,ExitCode,NodeList"
            told = call(("sacct", "-n", "-X", "-P", f"--name={asked}", "-S", began, "-o", fields))
            accounted = parse_accounting(told)
        except HostError:
            known = False
        fields = "%i|%j|%T|%r|%N"
        queue = parse_queue(call(("squeue", "-h", "-r", "-t", "all", f"--name={asked}", "-o", fields)))
        # A killed controller forgets the jobs of its last seconds, which accounting shows as running for ever.
        found |= {key: state for key, state in accounted.items() if not state.is_alive} | queue
    return found, known


def cancel(names: Iterable[str]) -> None:
    """Cancels what waits or runs of the arrays of these names; runs undo their changes before they end."""
    for name in names:
        call(("scancel", f"--name={name}"))


def parse_nodes(text: str) -> list[Machine]:
    """The nodes that ``scontrol show node -o`` lists."""
    found = []
    for line in text.splitlines():
        fields = dict(_FIELD.findall(line))
        if "NodeName" in fields:
            features = fields.get("AvailableFeatures", "(null)")
            names = frozenset() if features == "(null)" else frozenset(features.split(","))
            found.append(Machine(fields["NodeName"], fields.get("NodeAddr") or fields["NodeName"], names))
    return found


def parse_queue(text: str) -> States:
    """What ``squeue -r`` says in the fields id, name, state, reason and nodes.

    Of a run that was submitted again, the array that lives or else the later one: squeue lists ended jobs for minutes,
    and behind others.
    """
    found: States = {}
    for line in text.splitlines():
        job, name, state, reason, nodes = (*line.split("|"), "", "", "", "")[:5]
        if (number := _number_of(job)) is None:
            continue
        told = JobState(job, state, nodes, "" if reason == "None" else reason)
        known = found.get((name, number))
        if known is None or _recency(told) >= _recency(known):
            found[name, number] = told
    return found


def _recency(state: JobState) -> tuple[bool, int]:
    return state.is_alive, int(state.job.partition("_")[0])


def parse_accounting(text: str) -> States:
    """What ``sacct -X -P`` says in the fields id, name, state, exit code and nodes; the last of a repeated run.

    Runs that wait are told by the queue alone: accounting has them as one line, ``7_[3-9]``.
    """
    found: States = {}
    for line in text.splitlines():
        job, name, state, status, nodes = (*line.split("|"), "", "", "", "")[:5]
        if (number := _number_of(job)) is None:
            continue
        code = _EXIT_CODE.match(status)
        nodes = "" if nodes == "None assigned" else nodes
        exit_status = int(code[1]) if code else None
        found[name, number] = JobState(job, state.partition(" ")[0], nodes, "", exit_status)
    return found


def submit_command(
    name: str, numbers: Sequence[int], nodes: int, constraint: str, limit_min: int, log: str, options: Mapping[str, str]
) -> tuple[str, ...]:
    """The call of sbatch for one array; its script comes by standard input. ``options`` are further ones by name."""
    return (
        "sbatch",
        "--parsable",
        f"--job-name={name}",
        f"--array={_ranges(numbers)}",
        f"--nodes={nodes}",
        *((f"--constraint={constraint}",) if constraint else ()),
        f"--time={limit_min}",
        "--exclusive",
        "--requeue",
        "--open-mode=append",
        f"--output={log}",
        *(f"--{option}={value}" for option, value in options.items()),
    )


def _number_of(job: str) -> int | None:
    """The number within its array: 7 of ``12_7``; None of what is no single run of an array."""
    found = _NUMBER.fullmatch(job)
    return int(found[1]) if found else None


def _ranges(numbers: Sequence[int]) -> str:
    """``1-3,7`` for 1, 2, 3 and 7."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)
