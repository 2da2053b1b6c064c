"""Slurm's commands: what they are asked, and what they say. Options and output as of Slurm 22.05."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from nicbench.core.errors import HostError, NotReadyError, UsageError
from nicbench.core.frozen import frozen

# Which machines can have which roles: what is asked of Slurm, and who is who among the machines that it gave. Pure.

Roles = Mapping[str, frozenset[str]]
"""Of each role the features that its machine must have."""


@frozen
class Machine:
    """A node of Slurm: its name, its address, and its features (``card=cx5``)."""

    name: str
    address: str
    features: frozenset[str]

    def values_of(self, feature: str) -> frozenset[str]:
        """The values that it has of a feature: one machine may be at the ends of two cables."""
        return frozenset(each for each in self.features if each.startswith(f"{feature}="))


def bind(roles: Roles, machines: Iterable[Machine], joined_by: str | None) -> dict[str, Machine] | None:
    """Gives each role a machine of its own; None where that is impossible. The same machines give the same answer.

    With ``joined_by`` all of them have one value of that feature in common.
    """
    ordered = sorted(machines, key=lambda machine: machine.name)
    if joined_by is None:
        return _assign(roles, ordered)
    for value in sorted({value for machine in ordered for value in machine.values_of(joined_by)}):
        found = _assign(roles, [machine for machine in ordered if value in machine.features])
        if found is not None:
            return found
    return None


def bind_given(roles: Roles, machines: list[Machine], joined_by: str | None) -> dict[str, Machine]:
    """Binds the roles to machines that Slurm gave; HostError where these cannot have them."""
    found = bind(roles, machines, joined_by)
    if found is None:
        had = "; ".join(f"{machine.name} has {', '.join(sorted(machine.features)) or 'none'}" for machine in machines)
        raise HostError(
            f"these machines cannot have the roles {', '.join(roles)}: {had}",
            next_step="features of nodes were changed since the fleet was submitted: submit it again",
        )
    return found


def constraint_of(roles: Roles, machines: Iterable[Machine], joined_by: str | None, place: str) -> str:
    """What Slurm is asked for with ``--constraint``, with as many nodes as roles.

    UsageError at ``place`` where no machines of the cluster can have these roles, or Slurm cannot be asked for them.
    """
    machines = list(machines)
    if bind(roles, machines, joined_by) is None:
        raise UsageError(
            _why_none(roles, machines, joined_by),
            place=place,
            next_step="`nicbench fleet features` on a machine prints what it has; slurm.conf says what Slurm knows",
        )
    common = frozenset.intersection(*roles.values())
    if joined_by is None:
        return "&".join(sorted(common)) if len(set(roles.values())) == 1 else _by_counts(roles)
    groups = {
        value: [machine for machine in machines if value in machine.features]
        for value in sorted({value for machine in machines for value in machine.values_of(joined_by)})
    }
    fitting = {value: group for value, group in groups.items() if bind(roles, group, joined_by=None) is not None}
    wide = [value for value, group in fitting.items() if len(group) > len(roles)]
    if wide and len(fitting) == 1:
        return f"{wide[0]}&{_by_counts(roles)}"
    if wide:
        raise UsageError(
            f"{wide[0]} joins {len(fitting[wide[0]])} machines, and {len(fitting) - 1} other groups will do as well: "
            "Slurm cannot be asked for one of several groups and for roles within it",
            place=place,
            next_step=f"give each pair of machines a {joined_by} of its own, or have the roles name one group",
        )
    # A feature in front of the brackets holds for every machine; the roles within a group are bound afterwards.
    return "&".join([*sorted(common), f"[{'|'.join(fitting)}]"])


def _assign(roles: Roles, machines: list[Machine]) -> dict[str, Machine] | None:
    """A matching by augmenting paths: a machine is taken over where the role that has it can have another."""
    role_of: dict[str, str] = {}

    def give(role: str, tried: set[str]) -> bool:
        for machine in machines:
            if roles[role] <= machine.features and machine.name not in tried:
                tried.add(machine.name)
                if machine.name not in role_of or give(role_of[machine.name], tried):
                    role_of[machine.name] = role
                    return True
        return False

    if not all(give(role, set()) for role in roles):
        return None
    found = {role_of[machine.name]: machine for machine in machines if machine.name in role_of}
    return {role: found[role] for role in roles}


def _by_counts(roles: Roles) -> str:
    """Asks for a number of machines of each kind; Slurm takes counts within brackets alone."""
    counts = Counter("&".join(sorted(features)) for features in roles.values() if features)
    return f"[{'&'.join(f'({features})*{count}' for features, count in counts.items())}]"


def _why_none(roles: Roles, machines: list[Machine], joined_by: str | None) -> str:
    for role, features in roles.items():
        if not any(features <= machine.features for machine in machines):
            lacking = [each for each in sorted(features) if not any(each in machine.features for machine in machines)]
            what = f": none has {', '.join(lacking)}" if lacking else ""
            return f"no machine has what the role {role} needs ({', '.join(sorted(features))}){what}"
    if joined_by is not None and bind(roles, machines, None) is not None:
        return f"no machines that could have the roles {', '.join(roles)} have the same {joined_by}"
    return f"there are too few machines for the roles {', '.join(roles)} at once"


_LONGEST_S: Final = 120.0
_FIELD: Final = re.compile(r"(\w+)=(\S*)")
_NUMBER: Final = re.compile(r"[^_]*_([0-9]{1,9})")
_EXIT_CODE: Final = re.compile(r"([0-9]{1,3}):")
_MOST_NAMES: Final = 64
"""The most names in one question: a command line has a limit."""


@frozen
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
    """Runs a command of Slurm and gives what it prints. NotReadyError if it is not installed, HostError if it fails."""
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
        accounted = {}
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

    Waiting runs are listed singly by the queue alone: accounting has them as one line, ``7_[3-9]``.
    """
    found = {}
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
    """Returns the number within its array: 7 of ``12_7``; None for anything but a single run of an array."""
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
