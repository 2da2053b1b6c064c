"""The datasheet: results, then the setup once, with what is known of its machines and a count of what is not."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nicbench import report
from nicbench.core.plan import Layout, Plan
from nicbench.report.gather import gather
from nicbench.report.layouts.datasheet import settings, setup
from nicbench.report.model import Report
from nicbench.store import RunFolder

from . import _editors
from .test_html import parsed


@pytest.fixture(scope="module")
def sheet(whole_run: Path) -> str:
    return report.build(whole_run, Layout.DATASHEET).read_text(encoding="utf-8")


def test_results_come_first_then_setup_once_and_disclosure(sheet: str) -> None:
    parsed(sheet)  # sound HTML
    heads = [re.sub(r"<[^>]*>", "", text) for text in re.findall(r"<h2[^>]*>(.*?)</h2>", sheet)]

    assert heads == ["Results", "Setup", "Disclosure"]


def test_all_loads_of_the_latency_are_one_table(sheet: str) -> None:
    latency = sheet.partition(">Latency</h3>")[2].partition("</table>")[0]

    assert re.findall(r"Latency at \d+ % of the NDR", latency) == [
        "Latency at 100 % of the NDR",
        "Latency at 50 % of the NDR",
    ]


def test_what_is_not_known_is_left_out_and_counted(view: Report) -> None:
    card = setup(view)
    labels = [row.label for row in card.rows]

    assert "BIOS" not in labels
    assert "BIOS" in card.unknown
    assert all(text not in (None, "", "unknown") for row in card.rows for text in row.texts[:1])


def test_the_setup_names_dpdk_tester_dut_and_what_is_cabled(view: Report) -> None:
    rows = {row.label: row.text for row in setup(view).rows}

    assert rows["DPDK"] == "tester 22.11.4"
    assert rows["Device under test (DUT)"] == "kernel IP forwarding"
    assert "One machine, joined by veth pairs" in rows["Test configuration"]


def test_the_settings_have_command_lines_and_the_options_of_the_test(view: Report) -> None:
    rows = {row.label: row for row in settings(view).rows}

    assert rows["Command line of the DUT"].code[1] == "sysctl -w net.ipv4.ip_forward=1"
    assert "--no-pci --no-huge" in rows["EAL arguments of the tester"].code[0]
    assert "Method: latency" in rows["Test “latency”"].text


def test_facts_of_another_form_than_ours_are_not_known(synthetic_run: Callable[..., Any]) -> None:
    run = synthetic_run()
    run.folder.write_json("inventory.json", {"tester": {"cpu": "x", "memory": 3, "drivers": ["y"], "software": 1}})
    run.measure((64,))
    card = setup(gather(RunFolder.open(run.folder.path)))

    assert {"CPU", "RAM", "NIC driver", "Compiler"} <= set(card.unknown)


def test_hostile_settings_are_text(synthetic_run: Callable[..., Any]) -> None:
    run = synthetic_run()
    plan: Plan = run.plan()
    evil = "<script>alert(1)</script>"
    run.folder.write_json("plan.json", plan.replace(dut={"kind": evil, "name": evil, "x": [evil]}))
    run.measure((64,))
    page = report.build(run.folder.path, Layout.DATASHEET).read_text(encoding="utf-8")

    assert evil not in page


def test_a_run_without_results_has_a_page(synthetic_run: Callable[..., Any]) -> None:
    page = report.build(synthetic_run().folder.path, Layout.DATASHEET).read_text(encoding="utf-8")

    assert "No test gave a result." in page


def test_a_study_of_editors_has_its_comparison(tmp_path: Path) -> None:
    page = report.build(_editors.write(tmp_path, _editors.results(runs=2)), Layout.DATASHEET).read_text(
        encoding="utf-8"
    )

    assert "Streams sustained" in page
