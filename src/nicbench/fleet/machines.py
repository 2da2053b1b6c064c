"""Which machines can have which roles: what is asked of Slurm, and who is who among the machines that it gave. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nicbench.core.errors import HostError, UsageError

Roles = Mapping[str, frozenset[str]]
"""Of each role the features that its machine must have."""


@dataclass(frozen=True, slots=True)
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
    """So many machines of each kind: counts hold within brackets alone."""
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
