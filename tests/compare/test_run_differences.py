"""Two runs side by side: the setting that was changed comes first, apart from what changes by itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nicbench.cli.main import main
from nicbench.compare.entries import compare_settings
from nicbench.compare.run_differences import (
    NOT_RECORDED,
    find_differences,
    importance_of,
    is_identity,
    is_volatile,
    read_settings,
    shorten,
)
from nicbench.core.plan import Plan
from nicbench.core.redaction import Redactor
from nicbench.store.folder import RunFolder

from ._entries import entry, published


def folder(parent: Path, name: str, inventory: Any = None, tuning: Any = None) -> RunFolder:
    """A run folder with what a comparison reads."""
    path = parent / name
    path.mkdir(parents=True)
    (path / "bench.yaml").write_text("nicbench: 1\n")
    run = RunFolder(path)
    if inventory is not None:
        run.write_json("inventory.json", inventory)
    if tuning is not None:
        run.write_json("tuning.json", {"format": 1, "settings": tuning})
    return run


def test_what_changes_results_most_stands_above_versions_of_tools(tmp_path: Path) -> None:
    def machine(kernel: str, governor: str, gcc: str, free: int, mitigation: str) -> dict[str, Any]:
        return {
            "tester": {
                "software": {"gcc": gcc},
                "kernel": {"release": kernel},
                "mitigations": {"spectre_v2": mitigation},
                "core_clock_policy": {"governor": [governor]},
                "memory": {"available_bytes": free},
                "reasons_null": {"fans": f"reason {free}"},
            }
        }

    found = find_differences(
        folder(tmp_path, "a", machine("6.1", "performance", "12.2", 1, "Mitigation: Retpolines")),
        folder(tmp_path, "b", machine("6.12", "powersave", "14.1", 2, "Vulnerable")),
    )
    assert [row.path for row in found.settings] == [
        "inventory.core_clock_policy.governor",
        "inventory.mitigations.spectre_v2",
        "inventory.kernel.release",
        "inventory.software.gcc",
    ]
    assert [row.path for row in found.volatile] == ["inventory.memory.available_bytes"]


def test_an_option_of_the_lab_is_one_setting_though_its_testbed_repeats_it(tmp_path: Path) -> None:
    def run(name: str, capacity: float) -> RunFolder:
        made = folder(tmp_path, name, {})
        plan = {"run_id": name, "title": name, "nicbench_version": "0", "seed": 1, "traffic": {}, "tests": []}
        lab = {"kind": "simulated", "capacity": capacity}
        made.write_json("plan.json", {**plan, "lab": lab, "facts": {"lab": "simulated", "capacity": capacity}})
        return made

    [row] = find_differences(run("a", 5e5), run("b", 6e5)).settings
    assert (row.path, row.values) == ("lab.capacity", (5e5, 6e5))


def test_whole_numbers_are_written_without_a_point() -> None:
    assert shorten(500000.0, "lab.capacity") == "500000"
    assert shorten([100.0, 2.5], "tests.latency.loads") == "[100, 2.5]"
    assert shorten({"rate": 1e3}, "lab") == '{"rate": 1000}'


def test_a_fact_that_one_run_does_not_know_is_one_difference(tmp_path: Path) -> None:
    found = find_differences(
        folder(tmp_path, "a", {"tester": {"smt": None}}),
        folder(tmp_path, "b", {"tester": {"smt": {"active": True, "control": "on"}, "iommu": {"active": False}}}),
    )
    assert [(row.path, row.values[0]) for row in found.settings] == [
        ("inventory.smt", None),
        ("inventory.iommu", NOT_RECORDED),
    ]


def test_one_difference_of_two_machines_is_told_once(tmp_path: Path) -> None:
    one, other = {"irqbalance_running": True}, {"irqbalance_running": False}
    found = find_differences(
        folder(tmp_path, "a", {"tester": one, "dut": one}), folder(tmp_path, "b", {"tester": other, "dut": other})
    )
    assert [row.places for row in found.settings] == [("tester", "dut")]


def test_another_specimen_of_the_same_kind_is_no_other_setting(tmp_path: Path) -> None:
    found = find_differences(
        folder(tmp_path, "a", {"tester": {"firmware": {"serial": "A1", "bios_version": "2"}}}),
        folder(tmp_path, "b", {"tester": {"firmware": {"serial": "B2", "bios_version": "2"}}}),
    )
    assert found.equal
    assert [row.path for row in found.identities] == ["inventory.firmware.serial"]


def test_redacted_values_are_not_compared(tmp_path: Path) -> None:
    facts = {"tester": {"kernel": {"command_line": "root=UUID=3f1f1c3e-5b1e-4a4f-9d2b-8a0f6a2a77c1"}}}
    found = find_differences(*(folder(tmp_path, name, Redactor()(facts)) for name in "ab"))
    assert found.equal
    assert [row.path for row in found.redacted] == ["inventory.kernel.command_line"]


def test_a_run_that_ended_before_its_inventory_is_not_called_equal(tmp_path: Path) -> None:
    found = find_differences(folder(tmp_path, "a", {"tester": {}}), folder(tmp_path, "b"))
    assert found.lacking == ("b has no inventory.json",)
    assert not found.equal


def test_every_fact_that_matters_has_a_reason() -> None:
    assert (
        importance_of("tuning.rings.eth0.rx_frames").rank < importance_of("inventory.core_clock_policy.governor").rank
    )
    assert importance_of("inventory.offloads.eth0.gro").rank < importance_of("inventory.software.gcc").rank
    assert importance_of("inventory.rings.eth0.rx").rank < importance_of("inventory.operating_system").rank
    assert importance_of("something.new").why == "not known to matter"
    assert is_volatile("inventory.fans.speed_per_minute.FAN1")
    assert is_identity("inventory.interfaces.eth0.mac")
    assert not is_volatile("inventory.core_clock_policy.governor")


def test_a_setting_that_only_one_run_tuned_is_named_by_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"host": "dut", "device": "eth1", "item": "rings", "outcome": "changed", "during": {"rx_frames": 4096}}
    runs = [folder(tmp_path, "a", {"dut": {}}, [row]), folder(tmp_path, "b", {"dut": {}})]
    found = find_differences(*runs)
    assert [(row.path, row.values) for row in found.settings] == [("tuning.rings.eth1.rx_frames", (4096, NOT_RECORDED))]
    assert main(["diff", *(str(run.path) for run in runs)]) == 0
    assert "not tuned" in capsys.readouterr().out


def test_why_a_fact_is_unknown_is_no_difference(tmp_path: Path) -> None:
    def rings(why: str) -> dict[str, Any]:
        return {"tester": {"rings": {"eth0": None, "reasons_null": {"eth0": why}}}}

    assert find_differences(folder(tmp_path, "a", rings("one")), folder(tmp_path, "b", rings("other"))).equal


def test_two_runs_of_which_nothing_is_known_are_not_called_alike(tmp_path: Path) -> None:
    found = find_differences(folder(tmp_path, "a"), folder(tmp_path, "b"))
    assert not found.equal
    assert found.lacking == ("neither run has plan.json or inventory.json: how they were made is not known",)


def test_one_run_named_twice_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = folder(tmp_path, "a", {"tester": {}})
    assert main(["diff", str(run.path), str(run.path)]) == 2
    assert "both names refer to the same run" in capsys.readouterr().err


def planned(run: RunFolder, capacity: int, *names: str) -> RunFolder:
    def plan(name: str, capacity: int, **more: Any) -> Plan:
        lab = {"kind": "simulated", "capacity": capacity}
        return Plan(run_id="r", title="t", nicbench_version="1", seed=1, lab=lab, configuration=name, **more)

    first, *others = names or ("default",)
    further = tuple(plan(name, capacity + 10 * place) for place, name in enumerate(others, 1))
    run.write_json("plan.json", plan(first, capacity, compared=names, others=further).model_dump(mode="json"))
    return run


def test_a_run_without_configurations_is_laid_beside_each_of_another(tmp_path: Path) -> None:
    plain = planned(folder(tmp_path, "a", {"tester": {"kernel": {"release": "6.1"}}}), 500)
    facts = {f"tester, {name}": {"kernel": {"release": "6.1"}} for name in ("base", "big")}
    compared = planned(folder(tmp_path, "b", facts), 500, "base", "big")
    (row,) = find_differences(plain, compared).settings
    assert (row.path, row.places, row.values) == ("lab.capacity", ("big",), (500, 510))
    (row,) = find_differences(compared, plain).settings
    assert row.values == (510, 500)
    assert read_settings(compared, "big")["tester"] == {"inventory": {"kernel": {"release": "6.1"}}}


def test_runs_that_were_repeated_otherwise_are_not_made_the_same_way(tmp_path: Path) -> None:
    once, often = (planned(folder(tmp_path, name, {}), 500) for name in "ab")
    plan = json.loads((often.path / "plan.json").read_text())
    (often.path / "plan.json").write_text(json.dumps(plan | {"runs": {"at_least": 5, "at_most": 5}}))
    (row,) = find_differences(once, often).settings
    assert (row.path, row.values, row.why) == ("runs", ("1", "5"), "measured in another way")


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
