"""The system configuration table: a line a subject, a column a machine, and nothing invented."""

from __future__ import annotations

import json
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from nicbench.core.described import NOTHING, Shape
from nicbench.report.facts import inventory_shapes
from nicbench.report.system_table import SystemTable, subjects, system_table, tuned_rows
from nicbench.system.inventory.base import collect_host

from ._documents import page_of
from ._golden_machine import golden_machine
from ._synthetic import SyntheticRun


def texts(table: SystemTable) -> dict[str, str | None]:
    return {row.label: row.texts[0] for row in table.rows}


async def test_a_server_is_told_in_the_words_of_the_table() -> None:
    table = texts(system_table({"tester": await collect_host(golden_machine(), ("enp59s0f0",))}))
    assert table["BIOS"] == "Dell Inc. 2.19.1, 06/04/2023"
    assert table["Machine"] == "Dell Inc. PowerEdge R740, board Dell Inc. 0WRPXK, rack mount chassis"
    assert table["Memory modules"] == (
        "6 \u00d7 32 GiB, Samsung M393A4K40DB3-CWE, DDR4 DIMM, rated 3200 MT/s, running at 2933 MT/s; "
        "6 of 24 slots; Multi-bit ECC"
    )
    assert table["C-states"] == (
        "POLL (0 \u00b5s), C1 (2 \u00b5s), C1E (10 \u00b5s, disabled on CPUs 2, 3), "
        "C6 (133 \u00b5s, disabled); intel_idle"
    )
    assert table["Frequency policy"] == "800 MHz to 3.700 GHz, governor performance, intel_pstate, boost off"
    assert table["Fans"] == "4, 6600 to 7200 per minute"
    assert "2 \u00d7 DELL PWR SPLY,750W,RDNT,DELTA" in (table["Power supplies"] or "")


def test_a_card_is_told_with_driver_firmware_link_and_slot() -> None:
    link = {"speed_gt_per_s": 8.0, "lanes": 16, "bandwidth_bits_per_s": 1.26e11}
    facts = {
        "interfaces": {"enp59s0f0": {"kind": "hardware", "mtu_bytes": 9000}},
        "drivers": {
            "enp59s0f0": {"name": "mlx5_core", "version": "6.1", "firmware": "16.35.2000", "bus": "0000:3b:00.0"}
        },
        "pci_adapters": {"0000:3b:00.0": {"vendor": "Mellanox Technologies", "model": "ConnectX-5", "link": link}},
        "link_settings": {"enp59s0f0": {"speed_bits_per_s": 100_000_000_000}},
    }
    assert texts(system_table({"tester": facts}))["Network adapters"] == (
        "enp59s0f0: Mellanox Technologies ConnectX-5, driver mlx5_core 6.1, firmware 16.35.2000, 100 Gb/s, "
        "PCI Express 8 GT/s x16, MTU 9000"
    )


def test_a_subject_that_no_machine_tells_is_named_with_the_reason() -> None:
    table = system_table(
        {"tester": {"kernel": {"release": "6.1"}, "reasons_null": {"memory_modules": "dmidecode: not found"}}}
    )
    assert dict(table.unknown)["Memory modules"] == "dmidecode: not found"
    assert "Memory modules" not in texts(table)


def test_machines_that_are_alike_share_a_column_unless_something_else_is_declared_of_them() -> None:
    facts = {"operating_system": "Debian"}
    assert system_table({"tester": facts, "dut": facts}).machines == ("Tester and DUT",)
    table = system_table({"tester": facts, "dut": facts}, {"dut": {"BIOS profile": "Performance"}, "switch": "none"})
    assert table.machines == ("Tester", "DUT")
    assert (table.rows[-1].label, table.rows[-1].texts, table.rows[-1].declared) == (
        "BIOS profile",
        (None, "Performance"),
        True,
    )
    assert table.declared_things == (("switch", (("", "none"),)),)


_plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_FACTS = (
    "firmware",
    "kernel",
    "cpu",
    "memory_modules",
    "drives",
    "fans",
    "idle_states",
    "mitigations",
    "interfaces",
    "tuned",
)


@given(st.dictionaries(st.sampled_from(_FACTS), _plain))
def test_an_inventory_of_any_shape_breaks_no_report(facts: dict[str, object]) -> None:
    table = system_table({"tester": facts})
    told = {row.label for row in table.rows} | {label for label, _ in table.unknown}
    assert told >= {label for label, (_, subject) in subjects().items() if subject.is_everywhere}


def test_a_setting_shows_what_was_asked_for_before_and_during() -> None:
    common = {"host": "dut", "device": "eth1", "item": "rings", "source": "bench file", "outcome": "changed"}
    states = {"before": {"rx_frames": 512, "tx_frames": 256}, "asked": {"rx_frames": 4096}}
    changed = {**common, **states, "during": {"rx_frames": 4096}, "after": {"rx_frames": 512}}
    strayed = {**changed, "item": "coalescing", "during": {"rx_frames": 2048}}
    left = {**changed, "after": {"rx_frames": 4096}}
    rows = tuned_rows({"settings": [changed, strayed, left]})
    assert (rows[0].setting, rows[0].place) == ("Rings: Rx", "DUT, eth1")
    assert (rows[0].place, rows[0].before, rows[0].during) == ("DUT, eth1", "512 frames", "4\u202f096 frames")
    assert (rows[0].outcome, rows[0].wrong) == ("changed, put back", False)
    assert rows[1].wrong
    assert (rows[2].outcome, rows[2].wrong) == ("changed, not put back", True)
    assert tuned_rows(None) == ()


def test_a_value_that_its_item_takes_for_the_same_is_neither_wrong_nor_left_by_the_undo() -> None:
    setting = {
        "item": "packet_steering",
        "outcome": "changed",
        "before": {"rps_cpus": "0"},
        "asked": {"rps_cpus": "a"},
        "during": {"rps_cpus": "00000000,0000000a"},
        "after": {"rps_cpus": "00000000,00000000"},
    }
    (same,) = tuned_rows({"settings": [{**setting, "strayed": [], "not_restored": []}]})
    assert (same.outcome, same.wrong) == ("changed, put back", False)
    (strayed,) = tuned_rows({"settings": [{**setting, "strayed": ["rps_cpus"], "not_restored": []}]})
    assert (strayed.outcome, strayed.wrong) == ("changed, put back", True)
    (of_an_earlier_version,) = tuned_rows({"settings": [setting]})
    assert of_an_earlier_version.wrong


def test_the_report_prints_settings_and_what_is_declared(tmp_path) -> None:  # type: ignore[no-untyped-def]
    run = SyntheticRun(tmp_path)
    run.start()
    run.folder.write_json("inventory.json", {"tester": {"operating_system": "Debian"}})
    row = {
        "host": "tester",
        "item": "sysctls",
        "outcome": "changed",
        "before": {"vm.swappiness": 60},
        "asked": {"vm.swappiness": 0},
    }
    run.folder.write_json("tuning.json", {"settings": [row]})
    declared = {"switch": {"model": "Arista 7060CX-32S"}, "tester": {"BIOS profile": "Performance"}}
    run.folder.write_json("plan.json", run.plan().replace(declared=declared))
    page = page_of(run.finish())
    for words in (
        "System configuration",
        "Settings made for the test",
        "Arista 7060CX-32S",
        "BIOS profile",
        "declared",
    ):
        assert words in page
    assert json.loads((run.folder.path / "plan.json").read_text())["declared"] == declared


async def test_every_value_of_a_machine_is_declared() -> None:
    facts = await collect_host(golden_machine(), ("enp59s0f0",))
    undeclared = [
        path
        for kind, value in facts.items()
        if kind != "reasons_null"
        for path in _undeclared(value, inventory_shapes()[kind], kind)
    ]

    assert undeclared == []


def _undeclared(value: object, shape: Shape, path: str) -> Iterator[str]:
    if isinstance(value, list):
        yield from (each for item in value for each in _undeclared(item, shape, path))
    if isinstance(value, dict):
        for name, inner in value.items():
            part = shape.entries or shape.fields.get(name)
            if part is None:
                yield f"{path}.{name}"
            elif part is not NOTHING and inner is not None:
                yield from _undeclared(inner, part, f"{path}.{name}")


def test_facts_bring_their_subjects_and_no_two_stand_in_one_place() -> None:
    places = [subject.place for _, subject in subjects().values()]
    assert list(subjects())[:3] == ["Machine", "BIOS", "BIOS settings"]
    assert places == sorted(set(places))
