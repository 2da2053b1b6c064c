"""Roles and machines: what Slurm is asked for, and who is who among the machines that it gave."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nicbench.core.errors import HostError, UsageError
from nicbench.fleet.slurm import Machine, Roles, bind, bind_given, constraint_of

ROLES: Roles = {"tester": frozenset({"role=tester"}), "dut": frozenset({"role=dut", "card=cx6"})}


def machine(name: str, *features: str) -> Machine:
    return Machine(name, f"10.0.0.{name[1:]}", frozenset(features))


PAIRS = [
    machine("n1", "role=tester", "card=cx5", "cable=c1"),
    machine("n2", "role=dut", "card=cx5", "cable=c1"),
    machine("n3", "role=tester", "card=cx6", "cable=c2"),
    machine("n4", "role=dut", "card=cx6", "cable=c2"),
    machine("n5", "role=tester", "card=cx5", "cable=c3"),
    machine("n6", "role=dut", "card=cx6", "cable=c3"),
]


def names(bound: dict[str, Machine] | None) -> dict[str, str] | None:
    return None if bound is None else {role: one.name for role, one in bound.items()}


def test_joined_machines_are_asked_for_by_the_cables_that_will_do() -> None:
    assert constraint_of(ROLES, PAIRS, "cable", "f") == "[cable=c2|cable=c3]"


def test_what_all_roles_need_stands_in_front() -> None:
    both = {role: features | {"card=cx6"} for role, features in ROLES.items()}
    assert constraint_of(both, PAIRS, "cable", "f") == "card=cx6&[cable=c2]"


def test_machines_that_are_not_joined_are_asked_for_by_counts() -> None:
    assert constraint_of(ROLES, PAIRS, None, "f") == "[(role=tester)*1&(card=cx6&role=dut)*1]"


def test_machines_of_one_kind_are_asked_for_without_counts() -> None:
    assert constraint_of({"one": frozenset({"card=cx5"})}, PAIRS, None, "f") == "card=cx5"
    two = {"one": frozenset({"card=cx5"}), "other": frozenset({"card=cx5"})}
    assert constraint_of(two, PAIRS, None, "f") == "card=cx5"


def test_one_fabric_is_asked_for_with_counts_of_its_roles() -> None:
    fabric = [
        machine(f"n{number}", "fabric=f1", "role=tester" if number % 2 else "role=dut", "card=cx6")
        for number in range(6)
    ]
    assert constraint_of(ROLES, fabric, "fabric", "f") == "fabric=f1&[(role=tester)*1&(card=cx6&role=dut)*1]"


def test_one_of_two_fabrics_cannot_be_asked_for() -> None:
    fabrics = [
        machine(f"n{number}", f"fabric=f{number % 2}", role, "card=cx6")
        for number in range(6)
        for role in ("role=tester", "role=dut")
    ]
    with pytest.raises(UsageError, match="fabric=f0 joins 6 machines, and 1 other groups will do as well"):
        constraint_of(ROLES, fabrics, "fabric", "f")


@pytest.mark.parametrize(
    ("needed", "joined_by", "why"),
    [
        ({"role=dut", "card=cx9"}, "cable", "no machine has what the role dut needs .*: none has card=cx9"),
        ({"role=dut", "cable=c1"}, "speed", "no machines that could have the roles tester, dut have the same speed"),
    ],
)
def test_machines_that_are_not_there_are_said(needed: set[str], joined_by: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        constraint_of({**ROLES, "dut": frozenset(needed)}, PAIRS, joined_by, "fleet.yaml, a cell")


def test_too_few_machines_are_said() -> None:
    many = {f"tester{number}": frozenset({"role=tester"}) for number in range(4)}
    with pytest.raises(UsageError, match="there are too few machines"):
        constraint_of(many, PAIRS, None, "f")


def test_roles_are_bound_to_machines_on_one_cable() -> None:
    assert names(bind(ROLES, PAIRS, "cable")) == {"tester": "n3", "dut": "n4"}
    assert names(bind(ROLES, [PAIRS[0], PAIRS[3]], "cable")) is None
    assert names(bind(ROLES, [PAIRS[0], PAIRS[3]], None)) == {"tester": "n1", "dut": "n4"}


def test_a_machine_that_can_have_two_roles_leaves_one_to_the_other() -> None:
    every = machine("n1", "role=tester", "role=dut", "card=cx6")
    tester = machine("n2", "role=tester")
    assert names(bind(ROLES, [every, tester], None)) == {"tester": "n2", "dut": "n1"}


def test_machines_that_cannot_have_the_roles_are_refused_with_what_they_have() -> None:
    with pytest.raises(HostError, match="n1 has cable=c1, card=cx5, role=tester; n2 has"):
        bind_given(ROLES, PAIRS[:2], "cable")


@given(
    st.dictionaries(st.sampled_from("abcd"), st.frozensets(st.sampled_from("xyz")), min_size=1),
    st.lists(st.frozensets(st.sampled_from("xyz")), max_size=6),
)
def test_a_binding_is_found_where_there_is_one(
    roles: dict[str, frozenset[str]], features: list[frozenset[str]]
) -> None:
    from itertools import permutations

    machines = [Machine(f"n{number}", "", each) for number, each in enumerate(features)]
    possible = any(
        all(roles[role] <= one.features for role, one in zip(roles, chosen, strict=True))
        for chosen in permutations(machines, len(roles))
    )
    found = bind(roles, machines, None)
    assert (found is not None) == possible
    if found is not None:
        assert len({one.name for one in found.values()}) == len(roles) == len(found)
        assert all(roles[role] <= one.features for role, one in found.items())
