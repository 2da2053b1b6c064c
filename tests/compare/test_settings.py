"""What differs between several entries: each setting once, most important first."""

from __future__ import annotations

from nicbench.compare.entries import compare_settings
from nicbench.compare.run_differences import NOT_RECORDED

from ._entries import entry, published


def told(**more: object) -> dict[str, object]:
    return {"": {"dut": {"kind": "bridge"}, **more}, "dut": {"inventory": {"kernel": {"release": "6.1"}}}}


def test_each_setting_is_there_once_with_the_value_of_each() -> None:
    every = [entry("A", told=told()), entry("B", told=told(dut={"kind": "policer"})), entry("C", told=told())]
    found = compare_settings(every)
    [row] = found.main
    assert (row.path, row.values) == ("dut.kind", ("bridge", "policer", "bridge"))
    assert found.of == ("A", "B", "C")


def test_what_changes_results_most_comes_first_and_versions_of_tools_apart() -> None:
    other = {
        "": {"dut": {"kind": "policer"}, "software": {"nicbench": "0.2"}},
        "dut": {"inventory": {"kernel": {"release": "6.18"}, "operating_system": {"name": "Debian"}}},
    }
    found = compare_settings([entry("A", told=told()), entry("B", told=other)])
    assert [row.path for row in found.main][:2] == ["dut.kind", "inventory.kernel.release"]
    assert [row.path for row in found.others] == ["inventory.operating_system", "software"]


def test_those_of_whom_nothing_is_known_are_named_and_make_no_difference() -> None:
    found = compare_settings([entry("A", told=told()), published("P"), entry("B", told=told())])
    assert found.silent == ("P",)
    assert found.main == found.others == ()


def test_a_setting_that_one_does_not_record_is_a_difference() -> None:
    found = compare_settings([entry("A", told=told(traffic={"flows": 8})), entry("B", told=told())])
    assert [(row.path, row.values[1]) for row in found.main] == [("traffic", NOT_RECORDED)]


def test_what_is_another_each_time_is_no_setting() -> None:
    found = compare_settings(
        [entry("A", told=told(plan={"command": ["a"]})), entry("B", told=told(plan={"command": ["b"]}))]
    )
    assert found.main == ()
    assert found.apart == ("plan.command",)
