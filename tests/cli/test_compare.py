"""``nicbench compare``: what it refuses and why, and what the page, the terminal and programs get."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import make_run
from tests.cli.conftest import result_json as result

from nicbench.store import manifest
from nicbench.store.folder import RunFolder
from nicbench.store.marks import add_tag

Make = Callable[..., RunFolder]
SIZES = (64, 512, 1518)


@pytest.fixture
def make(nicbench: Any) -> Make:
    """Makes run folders under ``runs``, each as fast as it is told."""

    def made(name: str, rate: float = 1e6, *results: dict[str, Any], **different: Any) -> RunFolder:
        rows = list(results) or [result(size, rate / (size / 64)) for size in SIZES]
        plan = {
            "title": different.get("title", f"Run {name}"),
            "lab": {"kind": "veth"},
            "dut": {"kind": different.get("dut", "bridge")},
            "link_bits_per_s": 10e9,
            "link_is_nominal": True,
        }
        more = {}
        if names := different.get("configurations"):
            plan["compared"] = more["configurations"] = list(names)
            rows = [{**row, "id": f"{of}/1/{row['id']}", "configuration": of, "run": 1} for of in names for row in rows]
        options = {"search": {"goals": {"NDR": 0.0}}, "trial": {"duration": different.get("duration", 60.0)}}
        machine = {"kernel": different.get("kernel", "6.1"), "cpu": "EPYC"}
        return make_run(name, rows, plan, options, **machine, finished=different.get("finished", True), **more)

    return made


def test_two_runs_become_a_page_a_table_and_a_sentence(make: Make, nicbench: Any) -> None:
    make("01", 1e6)
    make("02", 2e6, kernel="6.18")
    ended = nicbench("compare", "2026-01-01", "2026-01-02")
    assert ended.status == 0
    assert "“Run 02” passes 1.98 to 2.02 times as much as “Run 01”" in ended.stdout
    assert "inventory.kernel.release: 6.1 (Run 01); 6.18 (Run 02)" in ended.stdout
    assert "throughput: NDR [Mpps], per port" in ended.stdout
    page = Path("comparison.html").read_text()
    assert "--force" not in page
    for text in ("Run 01", "Run 02", "inventory.<wbr>kernel.<wbr>release", "1.98 to 2.02 times", "<svg"):
        assert text in page


def test_a_difference_is_claimed_only_where_intervals_do_not_overlap(make: Make, nicbench: Any) -> None:
    make("01", 1e6)
    make("02", 1.005e6)
    ended = nicbench("compare", "2026-01-01", "2026-01-02")
    assert "show no difference: their intervals overlap" in ended.stdout
    assert "there is one run of each" in ended.stdout.lower()


def test_the_page_goes_where_it_is_told_and_never_into_a_run(make: Make, nicbench: Any) -> None:
    folder = make("01")
    make("02")
    assert nicbench("compare", "2026-01-01", "2026-01-02", "--out", "pages").status == 0
    assert nicbench("compare", "2026-01-01", "2026-01-02", "--out", "pages/mine.html").status == 0
    assert sorted(path.name for path in Path("pages").iterdir()) == ["comparison.html", "mine.html"]
    for place in (folder.path, folder.path / "raw.html", "pages/mine.html/x.html", "pages/mine.txt"):
        ended = nicbench("compare", "2026-01-01", "2026-01-02", "--out", str(place))
        assert ended.status == 2
        assert "next:" in ended.stderr
    assert not (folder.path / "comparison.html").exists()


def test_the_page_is_a_pdf_or_markdown_where_that_is_asked_for(make: Make, nicbench: Any) -> None:
    make("01")
    make("02", 2e6)
    assert nicbench("compare", "2026-01-01", "2026-01-02", "--out", "mine.md").status == 0
    assert "“Run 02” passes 1.98 to 2.02 times as much" in Path("mine.md").read_text()
    assert nicbench("compare", "2026-01-01", "2026-01-02", "--format", "html,pdf").status == 0
    assert Path("comparison.pdf").read_bytes().startswith(b"%PDF")
    assert Path("comparison.html").exists()
    assert nicbench("compare", "2026-01-01", "2026-01-02", "--format", "docx").status == 2


REFUSED = {
    "one run": (["2026-01-01"], "one run alone is no comparison"),
    "the same run twice": (["2026-01-01", "latest:default", "2026-01-01"], "is named twice"),
    "an unknown run": (["2026-01-01", "nothing"], "'nothing'"),
    "an unknown data set": (["2026-01-01", "reference:connectx6"], "there is no built-in data set 'connectx6'"),
    "a data set without results": (["2026-01-01", "reference:snapio-findings"], "cannot become a run"),
    "an unknown configuration": (["2026-01-01:fast", "2026-01-02"], "there is no such configuration: 'fast'"),
    "no common test": (["2026-01-01", "reference:nsfnic4-transfers"], "they have no point in common"),
}


@pytest.mark.parametrize(("runs", "text"), REFUSED.values(), ids=REFUSED)
def test_wrong_words_are_refused_with_a_next_step(runs: list[str], text: str, make: Make, nicbench: Any) -> None:
    make("01")
    make("02")
    ended = nicbench("compare", *runs)
    assert ended.status == 2
    assert text in ended.stderr
    assert "next:" in ended.stderr
    assert not Path("comparison.html").exists()


def test_runs_of_other_frame_sizes_are_told_which_sizes_each_has(make: Make, nicbench: Any) -> None:
    make("01", 1e6, result(64, 1e6), result(512, 1e6))
    make("02", 1e6, result(1518, 1e6))
    ended = nicbench("compare", "2026-01-01", "2026-01-02")
    assert "they have no point in common" in ended.stderr
    assert "Run 01: throughput (64, 512 bytes); Run 02: throughput (1518 bytes)" in ended.stderr
    assert "nicbench diff" in ended.stderr


def test_what_is_not_comparable_is_refused_with_every_reason(make: Make, nicbench: Any) -> None:
    make("01")
    make("02", duration=1.0, finished=False)
    ended = nicbench("compare", "2026-01-01", "2026-01-02")
    assert ended.status == 2
    for text in ("do not last equally long", "is not finished", "nicbench resume", "--force"):
        assert text in ended.stderr
    assert not Path("comparison.html").exists()


def test_forced_it_says_so_in_red_at_its_top(make: Make, nicbench: Any) -> None:
    make("01")
    make("02", duration=1.0)
    ended = nicbench("compare", "2026-01-01", "2026-01-02", "--force")
    assert ended.status == 0
    assert "not comparable, forced:" in ended.stdout
    page = Path("comparison.html").read_text()
    main = page[page.index("<main>") :]
    assert main.index('class="forced"') < main.index('class="answer"')
    assert "do not last equally long" in main


def test_a_damaged_run_is_an_error_of_its_own(make: Make, nicbench: Any) -> None:
    make("01")
    (make("02").path / "summary.json").write_text("{")
    ended = nicbench("compare", "2026-01-01", "2026-01-02", "--force")
    assert ended.status == 4
    assert "summary.json" in ended.stderr


def test_a_run_whose_files_were_changed_is_compared_by_force_alone(make: Make, nicbench: Any) -> None:
    make("01")
    path = make("02").path / "summary.json"
    path.write_text(path.read_text().replace("1000000", "2000000"))
    ended = nicbench("compare", "2026-01-01", "2026-01-02")
    assert ended.status == 4
    assert "quarantine" in ended.stderr
    ended = nicbench("compare", "2026-01-01", "2026-01-02", "--force")
    assert ended.status == 0
    assert "is not as the run left it: summary.json was changed" in ended.stdout


def tagged(make: Make, tag: str, *rates: float, first: int = 1, **different: Any) -> list[str]:
    """The ids of runs with this tag, as fast as they are told."""
    folders = [make(f"{day:02}", rate, **different) for day, rate in enumerate(rates, first)]
    for folder in folders:
        add_tag(folder.path, tag)
    return [folder.run_id for folder in folders]


def test_a_tag_is_all_its_runs_together_and_a_name_may_be_given(make: Make, nicbench: Any) -> None:
    tagged(make, "before", 1e6, 1e6)
    make("03")
    ended = nicbench("compare", "old=before", "new=latest", "--json")
    assert ended.status == 0
    assert [(one["name"], one["runs"]) for one in json.loads(ended.stdout)["entries"]] == [("old", 2), ("new", 1)]
    alone = nicbench("compare", "before", "--json")
    assert [one["runs"] for one in json.loads(alone.stdout)["entries"]] == [1, 1]


def test_of_two_tags_a_difference_is_claimed_by_all_their_runs(make: Make, nicbench: Any) -> None:
    before = tagged(make, "before", 1e6, 1.01e6, 0.99e6, 1e6, kernel="6.1")
    tagged(make, "after", 0.94e6, 0.95e6, 0.93e6, 0.94e6, first=5, kernel="6.12")
    ended = nicbench("compare", "before", "after")
    assert "median of 4 runs" in ended.stdout
    assert "“before” is 1.06 times as fast as “after” [" in ended.stdout
    assert "inventory.kernel.release: 6.1 (before); 6.12 (after)" in ended.stdout
    document = json.loads(nicbench("compare", "before", "after", "--json").stdout)
    assert document["entries"][0]["of_tag"] == before
    page = Path("comparison.html").read_text()
    assert "4 runs, 2026-01-01 to 2026-01-04" in page


def test_runs_of_a_tag_that_may_not_be_compared_are_refused(make: Make, nicbench: Any) -> None:
    tagged(make, "before", 1e6, 1e6)
    add_tag(make("03", duration=1.0).path, "before")
    tagged(make, "after", 1e6, first=4)
    ended = nicbench("compare", "before", "after")
    assert ended.status == 2
    assert "do not last equally long" in ended.stderr
    assert "1 s (“2026-01-03”)" in ended.stderr
    add_tag(Path("runs/2026-01-04"), "before")
    assert "named twice" in nicbench("compare", "before", "after").stderr


def test_where_runs_of_a_tag_differ_all_their_settings_are_told(make: Make, nicbench: Any) -> None:
    add_tag(make("01", kernel="6.1").path, "before")
    add_tag(make("02", kernel="6.2").path, "before")
    make("03", kernel="6.12")
    assert "6.1 / 6.2 (before); 6.12 (Run 03)" in nicbench("compare", "before", "latest").stdout
    path = Path("runs/2026-01-02/inventory.json")
    path.write_text(json.dumps({"dut": {"cpu": {"model": "EPYC"}}}))
    manifest.write(path.parent)
    shown = nicbench("compare", "before", "latest").stdout
    assert "not recorded" in shown
    assert "<object" not in shown


def test_a_configuration_is_chosen_by_its_name_or_a_part_of_it(make: Make, nicbench: Any) -> None:
    make("01", configurations=("bare", "with rules"))
    make("02")
    ended = nicbench("compare", "2026-01-01:rules", "2026-01-02", "--json")
    assert ended.status == 0
    assert [one["configuration"] for one in json.loads(ended.stdout)["entries"]] == ["with rules", "default"]
    ended = nicbench("compare", "2026-01-01", "--json")
    assert [one["name"] for one in json.loads(ended.stdout)["entries"]] == ["bare", "with rules"]


def test_configurations_stand_in_the_order_of_the_bench_file(make: Make, nicbench: Any) -> None:
    """Turns are made in a random order; every change is told from the first entry."""
    path = make("01", configurations=("bare", "with rules")).path
    summary = json.loads((path / "summary.json").read_text())
    summary["results"].reverse()
    (path / "summary.json").write_text(json.dumps(summary))
    manifest.write(path)
    ended = nicbench("compare", "2026-01-01", "--json")
    assert [one["name"] for one in json.loads(ended.stdout)["entries"]] == ["bare", "with rules"]


def test_points_of_one_alone_are_listed(make: Make, nicbench: Any) -> None:
    make("01", 1e6, result(64, 1e6), result(9000, 1e5))
    make("02", 1e6, result(64, 1e6))
    ended = nicbench("compare", "2026-01-01", "2026-01-02", "--json")
    [only] = json.loads(ended.stdout)["only"]
    assert (only["parameters"], only["entries"]) == ({"frame_bytes": 9000}, ["Run 01"])
    assert "frame 9000" in Path("comparison.html").read_text()


def test_programs_get_every_main_value_of_each(make: Make, nicbench: Any) -> None:
    make("01", 1e6)
    make("02", 2e6, dut="policer")
    document = json.loads(nicbench("compare", "2026-01-01", "2026-01-02", "--json").stdout)
    assert document["comparable"] is True
    [first, *_] = document["values"]
    assert first["value"] == "ndr_frames_per_s"
    assert first["parameters"]["frame_bytes"] == 64
    assert first["entries"]["Run 02"]["value"] == 2e6
    assert [row["path"] for row in document["differences"]] == ["dut.kind"]


def test_a_published_result_is_named_marked_and_never_claimed_against(make: Make, nicbench: Any) -> None:
    card = "reference:connectx5-zero-loss:25GbE, bare"
    make("01", 1e7, *(result(size, 64e7 / size, scope="per port of 2 that send at once") for size in SIZES))
    refused = nicbench("compare", "latest", card)
    assert refused.status == 2
    assert "--per-port divides" in refused.stderr
    assert "virtual links" in refused.stderr
    again = nicbench("compare", "latest", card, "--per-port")
    assert "virtual links" in again.stderr
    assert "--per-port" not in again.stderr
    assert "same basis" not in again.stderr
    ended = nicbench("compare", "latest", card, "--per-port", "--force")
    assert ended.status == 0
    page = Path("comparison.html").read_text()
    for text in (
        "ConnectX-5 25GbE, bare metal (published 2019)",
        "Mellanox NICs Performance Report with DPDK 19.08",
        "Not measured by nicbench",
        "no claim: how exact the published one is",
        "divided by their number",
        "2 x 25 Gb/s",
    ):
        assert text in page
    claims = page[page.index("Results side by side</h2>") :]
    assert "their intervals do not overlap" not in claims
    assert "by the search intervals" not in claims


@pytest.mark.parametrize("count", [3, 8])
def test_many_runs_are_rows_and_every_one_is_there(count: int, make: Make, nicbench: Any) -> None:
    for number in range(count):
        make(f"{number:02}", 1e6 * (1 + number))
    runs = [f"2026-01-{number:02}" for number in range(count)]
    ended = nicbench("compare", *runs)
    assert ended.status == 0
    page = Path("comparison.html").read_text()
    assert all(f"Run {number:02}" in page for number in range(count))
    assert f"“Run {count - 1:02}” passes the most" in ended.stdout
    assert "is shown to pass more than all others" in ended.stdout


def test_hostile_names_do_no_harm(make: Make, nicbench: Any) -> None:
    make("01", title="<script>alert(1)</script>")
    make("02", title="\x1b[31mred 02:cd:62")
    ended = nicbench("compare", "2026-01-01", "2026-01-02")
    assert ended.status == 0
    assert "<script>" not in Path("comparison.html").read_text()
    assert "\x1b" not in ended.stdout
    assert "red 02:cd:62" in ended.stdout


def test_the_runs_of_a_published_study_stay_apart(nicbench: Any) -> None:
    done = nicbench("compare", "reference:frametest-sums:1x100", "reference:frametest-sums:4x25")
    assert done.status == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "sustained 9 editors at 24 frames/s each" in said
    assert "sustained 2 editors in each of 15 imported runs, 4 in the median run" in said


def test_what_a_source_prints_over_its_runs_is_no_further_run(nicbench: Any) -> None:
    document = json.loads(nicbench("compare", "reference:frametest-statistics", "--json").stdout)
    assert [one["runs"] for one in document["entries"]] == [15, 15]
    assert "in each of 15 imported runs" in document["answer"][0]
