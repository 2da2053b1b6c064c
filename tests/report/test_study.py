"""The study: a stranger finds question, answer, findings, results, method, disclosure, repeat and history in order."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nicbench import report
from nicbench.core.plan import Layout, Plan, ReportWishes
from nicbench.core.result import ResultVerdict
from nicbench.report import facts
from nicbench.report.document.blocks import plain
from nicbench.report.document.making import inlines
from nicbench.report.facts import differing
from nicbench.report.gather import gather
from nicbench.report.layouts.datasheet import settings, setup
from nicbench.report.model import Report
from nicbench.report.study import Place, findings
from nicbench.store import RunFolder

from . import _editors
from ._sections import searched
from .test_html import parsed

SECTIONS = (
    *("Answer", "Key findings", "Question", "Results", "Method", "Disclosure", "How to repeat it", "Revision history"),
    *("Glossary", "Appendix"),
)


def headings(page: str) -> list[tuple[int, str]]:
    return [
        (int(level), re.sub(r"<[^>]*>", "", text))
        for level, text in re.findall(r"<h([1-6])[^>]*>(.*?)</h\1>", page, re.DOTALL)
    ]


def finished_page(run: Any) -> str:
    return report.build(run.finish(ResultVerdict.VALID)).read_text(encoding="utf-8")


def test_a_stranger_finds_every_section_in_order(page: str) -> None:
    assert tuple(text for level, text in headings(page) if level == 2) == SECTIONS


def test_everything_behind_the_first_screen_is_folded_below_its_heading(page: str) -> None:
    folded = re.findall(r'<section class="folded">\s*<details><summary><h([23]) id="([^"]+)"', page)
    assert [name for level, name in folded if level == "2"] == [
        *("method", "disclosure", "repeat", "revisions", "glossary", "appendix")
    ]
    assert {"throughput", "latency-at-100-of-the-ndr-latency"} & {name for level, name in folded if level == "3"}
    results = page[page.index('id="results"') : page.index('id="method"')]
    assert results.count("<h3") == results.count("<summary><h3")


def test_the_first_screen_has_one_chart_one_table_the_losses_and_the_files(page: str) -> None:
    first = page[page.index('id="answer"') : page.index('id="findings"')]
    assert first.count("<figure") == 1
    (table,) = re.findall(r"<table.*?</table>", first, re.DOTALL)
    heads = [re.sub(r"<[^>]*>", " ", text).strip() for text in re.findall(r"<th[^>]*>(.*?)</th>", table)]
    assert [text.split()[0] for text in heads[:4]] == ["Throughput", "Latency", "Frame", "NDR"]
    assert "Limited by" in heads
    assert any(text.startswith("p50") for text in heads)
    assert 'href="./summary.json"' in first
    assert page.index('class="answer"') < page.index('class="verdict"') < page.index("<figure")


def test_the_contents_lead_to_every_section(page: str) -> None:
    contents = page[page.index("<nav ") : page.index("</nav>")]
    targets = re.findall(r'href="#([^"]+)"', contents)

    assert len(targets) == len(SECTIONS)
    assert all(f'id="{target}"' in page for target in targets)


def test_each_finding_leads_to_the_table_that_has_its_numbers(page: str) -> None:
    findings = page[page.index('<ul class="findings">') : page.index("</section>", page.index('<ul class="findings">'))]
    items = re.findall(r"<li>(.*?)</li>", findings, re.DOTALL)

    assert len(items) == 3  # of the largest frames, and of the latency at both loads
    for item in items:
        found = re.search(r'<a href="#([^"]+)">Table: ([^<]+)</a>', item)
        assert re.search(rf'<h3 id="{found[1]}">{re.escape(found[2])}', page)


def test_the_question_is_made_of_the_tests(page: str) -> None:
    assert "How many frames a second does this machine&#39;s kernel IP forwarding pass without loss" in page
    assert "How long does this machine&#39;s kernel IP forwarding delay frames" in page


def test_what_the_author_adds_stands_where_a_reader_looks(synthetic_run: Callable[..., Any]) -> None:
    run = synthetic_run()
    wishes = {
        "title": "A <b>title</b>",
        "question": "Is it fast?",
        "author": "A. Tester",
        "contact": "lab@example.com",
        "sponsor": "Example Networks",
        "disclaimer": "No warranty.",
        "licence": "CC-BY-4.0",
        "how_to": ["Join both <ports> by a cable of 1 m.", "Set the BIOS to maximum performance."],
        "about": "What it <i>is</i>\nabout.\n\nAnd how.",
        "audience": "Engineers.",
        "revisions": [{"number": "1.1", "date": "2026-02-01", "text": "a typing error mended"}],
    }
    plan = run.plan().replace(report=ReportWishes.model_validate(wishes))
    run.folder.write_json("plan.json", plan)
    run.measure((64,))
    page = finished_page(run)

    assert "<h1>A &lt;b&gt;title&lt;/b&gt;</h1>" in page
    assert '<p class="question">Is it fast?</p>' in page
    assert "How many frames a second" not in page
    assert (
        '<p class="author">A. Tester · lab@example.com · Revision 1.1, 2026-02-01 · Sponsored by Example Networks</p>'
        in page
    )
    assert "<footer>No warranty. Licence: CC-BY-4.0. Made by nicbench" in page
    steps = page[page.index("Steps of the author") :]
    assert steps.index("<ol") < steps.index("Join both &lt;ports&gt;") < steps.index("Set the BIOS")
    assert "<p>What it &lt;i&gt;is&lt;/i&gt; about.</p><p>And how.</p>" in page.replace(">\n<", "><")
    assert page.index('id="about"') < page.index('id="audience"') < page.index('id="question"')
    history = page[page.index('id="revisions"') :]
    assert history.index("Started by nicbench 0.1.0") < history.index("Revision 1.1: a typing error mended")


def test_every_test_says_its_steps_its_standard_and_its_parameters(page: str) -> None:
    method = page[page.index('id="method"') : page.index('id="disclosure"')]

    assert "RFC 2544 section 26.1" in method
    assert "Parameters of test “throughput”" in method
    assert "docs/studies.md" not in page


def test_of_configurations_the_question_asks_in_what_they_differ_and_findings_lead_to_their_tables(
    tmp_path: Path,
) -> None:
    found = _editors.results(configurations=("one", "four"), directions=("read", "write"), instances=(1, 2), runs=2)
    page = report.build(_editors.write(tmp_path, found, ("one", "four"))).read_text(encoding="utf-8")

    assert "How do “one” and “four” differ?" in page
    assert '<a href="#sustained-frames">Table: Streams sustained</a>' in page
    assert '<h3 id="sustained-frames">' in page


def test_of_several_configurations_every_finding_says_of_which(view: Report) -> None:
    first = searched(view)
    other = replace(first, configuration="another card")
    told = findings(replace(view, sections=(first, other), details=()))

    assert [finding.text[:22] for finding in told] == ["“another card” passes "]
    assert told[0].place == Place("throughput-throughput-another-card", "Throughput (another card)")


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
    labels = [label for label, _ in card.rows]

    assert "BIOS" not in labels
    assert "BIOS" in card.unknown
    assert all(text not in (None, "", "unknown") for _, texts in card.rows for text in texts[:1])


def test_the_setup_names_dpdk_tester_dut_and_what_is_cabled(view: Report) -> None:
    rows = dict(setup(view).rows)

    assert rows["DPDK"] == ("tester 22.11.4",)
    assert rows["Device under test (DUT)"] == ("kernel IP forwarding",)
    assert "One machine, joined by veth pairs" in str(rows["Test configuration"])


def test_the_settings_have_command_lines_and_the_options_of_the_test(view: Report) -> None:
    rows = {label: plain(inlines(*texts)) for label, texts in settings(view).rows}

    assert rows["Command line of the DUT"].split("; ")[1] == "sysctl -w net.ipv4.ip_forward=1"
    assert "--no-pci --no-huge" in rows["EAL arguments of the tester"]
    assert "Method: latency" in rows["Test “latency”"]


def test_facts_of_another_form_than_ours_are_not_known(synthetic_run: Callable[..., Any]) -> None:
    run = synthetic_run()
    run.folder.write_json("inventory.json", {"tester": {"cpu": "x", "memory": 3, "drivers": ["y"], "software": 1}})
    run.measure((64,))
    card = setup(gather(RunFolder.open(run.folder.path)))

    assert {"CPU", "RAM", "NIC driver", "Compiler"} <= set(card.unknown)


def test_a_run_without_results_has_a_page(synthetic_run: Callable[..., Any]) -> None:
    page = report.build(synthetic_run().folder.path, Layout.DATASHEET).read_text(encoding="utf-8")

    assert "No test gave a result." in page


def test_a_study_of_editors_has_its_comparison(tmp_path: Path) -> None:
    page = report.build(_editors.write(tmp_path, _editors.results(runs=2)), Layout.DATASHEET).read_text(
        encoding="utf-8"
    )

    assert "Streams sustained" in page


PLAN = Plan(
    run_id="r",
    title="t",
    nicbench_version="0.1.0",
    seed=1,
    command=("/opt/tools/bin/nicbench", "run", "examples/kernel-forward.yaml", "--output", "/home/me/runs", "--quiet"),
    lab={"kind": "veth", "mtu": 1500},
    facts={"lab": "veth", "mtu": 1500, "tester_gro": "on"},
    cores={"worker": 3},
    tester={
        "command": ["/opt/engine/nicbench-packets", "--x"],
        "burst": 32,
        "options": {"worker_cpu": None, "burst": 32},
    },
)


def test_the_command_names_neither_the_directory_of_the_program_nor_that_of_the_output() -> None:
    assert facts.command(PLAN) == ("nicbench", "run", "examples/kernel-forward.yaml", "--quiet")


def test_an_option_of_the_lab_is_listed_once() -> None:
    assert facts.lab(PLAN) == {"kind": "veth", "mtu": 1500, "tester_gro": "on"}


def test_the_tester_is_named_without_its_directory_and_with_the_cpu_that_was_chosen() -> None:
    shown = facts.tester(PLAN)

    assert shown["command"] == ["nicbench-packets", "--x"]
    assert "burst" not in shown
    assert shown["options"] == {"worker_cpu": "chosen: CPU 3", "burst": 32}


def test_a_threshold_names_the_shortest_pause_that_counts() -> None:
    why = "sum of the pauses over the gap floor: the load came in bursts"

    assert facts.threshold_why(why, 100_000) == "sum of the pauses longer than 0.1 ms: the load came in bursts"
    assert facts.threshold_why(why, None) == why


def test_what_configurations_share_is_disclosed_once() -> None:
    def plan(name: str, dut: str, hz: float, **more: object) -> Plan:
        tester = {"options": {"burst": 32}, "clock": {"hz": hz}}
        content = {"run_id": "x", "title": "x", "nicbench_version": "0", "seed": 1, "configuration": name, **more}
        return Plan.model_validate({**content, "dut": {"kind": dut}, "tester": tester})

    others = [plan("b", "bridge", 2.2e9), plan("c", "policer", 2.3e9)]
    whole = plan("a", "policer", 2.1e9, compared=["c", "b", "a"], others=others)
    assert [names for names, _ in facts.of_configurations(whole, "tester")] == [""]
    assert [names for names, _ in facts.of_configurations(whole, "dut")] == ["c, a", "b"]


def test_of_a_further_configuration_what_it_has_otherwise_and_what_it_lacks_is_shown() -> None:
    first, other = {"flows": 1, "vlan": {"id": 7, "priority": 2}, "vni": 3}, {"flows": 1, "vlan": {"id": 8}}
    assert differing(first, other) == {"vni": "not given", "vlan": {"priority": "not given", "id": 8}}
