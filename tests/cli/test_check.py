"""``nicbench check``: the exit status that CI sees, and the reason that a person sees."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console
from tests.cli.conftest import make_run
from tests.cli.conftest import result_json as result

from nicbench.cli.main import main
from nicbench.store.folder import RunFolder
from nicbench.store.marks import add_tag

Make = Callable[..., RunFolder]


@pytest.fixture
def make(nicbench: Any) -> Make:
    """Makes run folders under ``runs``."""

    def made(name: str, *results: dict[str, Any], **different: Any) -> RunFolder:
        plan = {"lab": {"kind": different.get("lab", "veth")}, "traffic": {"flows": different.get("flows", 8)}}
        options = different.get("options", {"frame_bytes": [64], "trial": {"duration": 60.0}})
        machine = {key: different[key] for key in ("kernel", "cpu") if key in different}
        return make_run(name, results, plan, options, **machine)

    return made


def test_a_slower_run_ends_with_6_and_says_by_how_much_and_what_else_differs(make: Make, nicbench: Any) -> None:
    make("01", result(64, 100.0), result(1518, 50.0))
    make("02", result(64, 80.0), result(1518, 50.0), kernel="6.18")
    ended = nicbench("check", "latest", "--against", "2026-01-01")
    assert ended.status == 6
    assert "1 of 2 values are worse" in ended.stderr
    assert "nicbench diff 2026-01-01 2026-01-02" in ended.stderr
    for text in ("-20.0 %", "do not overlap", "inventory.kernel.release"):
        assert text in ended.stdout


def test_what_may_explain_a_change_is_told_where_it_is_and_where_long_values_differ(make: Make, nicbench: Any) -> None:
    long = "console=ttyS0 " * 10
    make("01", result(64, 100.0), kernel=f"{long}quiet", cpu="one")
    add_tag(make("02", result(64, 100.0), kernel=f"{long}quiet").path, "good")
    add_tag(make("03", result(64, 100.0), kernel=f"{long}quiet").path, "good")
    make("04", result(64, 80.0), kernel=f"{long}nosmt")
    asked = ("check", "2026-01-04", "--against", "good")
    ended = nicbench(*asked)
    assert "What differs from 2026-01-03, the newest of 2, and may explain it (1 setting):" in ended.stdout
    (told,) = [line for line in ended.stdout.splitlines() if "inventory.kernel.release" in line]
    assert told.startswith("  inventory.kernel.release (dut): …")
    assert "quiet before" in told
    assert "nosmt now" in told
    (difference,) = json.loads(nicbench(*asked, "--json").stdout)["differences"]
    assert (difference["before"], difference["after"]) == (f"{long}quiet", f"{long}nosmt")


def test_results_of_others_are_compared_by_whatever_parameters_they_have(make: Make, nicbench: Any) -> None:
    strange = [
        {**result(64, 100.0), "id": f"x/{number}", "parameters": {"frame_bytes": 64, "sizes": [number]}}
        for number in (1, 2)
    ]
    frames = {**result(64, 100.0), "id": "f", "method": "frames", "parameters": {"direction": [1]}}
    unknown = {**result(64, 100.0), "id": "u", "method": "not-installed", "parameters": {"colour": "red"}}
    make("01", *strange, frames, unknown)
    make("02", *strange, frames, unknown)
    ended = nicbench("check", "2026-01-02", "--against", "2026-01-01")
    assert ended.status == 0
    for words in ("sizes [1]", "sizes [2]"):
        assert f"with 64-byte frames, {words}" in ended.stdout


def test_a_load_of_100_percent_is_written_without_a_point(make: Make, nicbench: Any) -> None:
    at = {"parameters": {"frame_bytes": 64, "load_percent": 100.0}}
    make("01", result(64, 1e6, **at))
    make("02", result(64, 1e6, **at))
    assert "at a load of 100 %" in nicbench("check", "2026-01-02", "--against", "2026-01-01").stdout.replace("\n", " ")


def test_a_narrow_terminal_breaks_no_name_apart(
    make: Make, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make("01", result(64, 100.0))
    make("02", result(64, 80.0))
    monkeypatch.setattr("nicbench.cli.commands.check.results", lambda: Console(width=80))
    main(["check", "2026-01-02", "--against", "2026-01-01"])
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("throughput: with 64-byte frames")
    assert lines[at + 1] == "  NDR [frames/s]: 100.0 before, 80.00 now (-20.0 %): worse"


def test_a_run_in_which_every_load_failed_is_worse_and_shown_below_its_bound(make: Make, nicbench: Any) -> None:
    below = {"value": None, "upper": 50_004.0, "limited_by": "dut", "reason_null": "no load that was tried passed"}
    make("01", result(64, 1e6))
    make("02", {**result(64, 1.0), "values": {"ndr_frames_per_s": below}})
    ended = nicbench("check", "2026-01-02", "--against", "2026-01-01")
    assert ended.status == 6
    assert "< 50,010" in ended.stdout
    [row] = json.loads(nicbench("check", "2026-01-02", "--against", "2026-01-01", "--json").stdout)["values"]
    assert (row["before"], row["after"], row["before_below"], row["after_below"]) == (1e6, None, None, 50_004.0)


def test_a_run_that_is_as_good_or_better_ends_with_0(make: Make, nicbench: Any) -> None:
    make("01", result(64, 100.0), result(128, 100.0))
    make("02", result(64, 99.0), result(128, 120.0), result(256, 1.0))
    ended = nicbench("check", "latest", "--against", "2026-01-01")
    assert ended.status == 0
    assert "1 better, 1 within the tolerance" in ended.stdout
    assert "not measured before: throughput: with 256-byte frames" in ended.stdout


def test_the_tolerance_is_the_users(make: Make, nicbench: Any) -> None:
    make("01", result(64, 100.0))
    make("02", result(64, 90.0))
    assert nicbench("check", "latest", "--against", "2026-01-01", "--tolerance", "15").status == 0
    assert nicbench("check", "latest", "--against", "2026-01-01", "--tolerance", "9").status == 6
    assert nicbench("check", "latest", "--against", "2026-01-01", "--tolerance", "15 %").status == 0
    for wrong in ("101", "nan", "-1", "0,5"):
        ended = nicbench("check", "latest", "--against", "2026-01-01", f"--tolerance={wrong}")
        assert ended.status == 2
        assert "no percentage from 0 to 100" in " ".join(ended.stderr.split()).replace("│ │ ", "")


@pytest.mark.parametrize("verdict", ["disturbed", "incomplete"])
def test_what_cannot_be_relied_on_is_no_regression_and_not_well_either(verdict: str, make: Make, nicbench: Any) -> None:
    make("01", result(64, 100.0), result(128, 100.0))
    make("02", result(64, 10.0, verdict), result(128, 100.0))
    ended = nicbench("check", "latest", "--against", "2026-01-01", "--json")
    assert ended.status == 5
    document = json.loads(ended.stdout)
    assert (document["outcome"], document["exit_status"]) == ("cannot be told", 5)
    assert [row["outcome"] for row in document["values"]] == ["cannot be told", "no difference shown"]
    assert verdict in document["values"][0]["why"]


def test_a_point_that_is_missing_now_cannot_be_told(make: Make, nicbench: Any) -> None:
    make("01", result(64, 100.0), result(128, 100.0))
    make("02", result(64, 100.0))
    ended = nicbench("check", "latest", "--against", "2026-01-01")
    assert ended.status == 5
    assert "this run did not measure it" in ended.stdout


def test_all_runs_of_a_tag_are_the_other_side(make: Make, nicbench: Any) -> None:
    for day, rate in enumerate((100.0, 101.0, 99.0, 100.5), 1):
        add_tag(make(f"0{day}", result(64, rate)).path, "nightly")
    latest = make("09", *(result(64, rate, run=run) for run, rate in enumerate((90.0, 90.5, 89.5, 90.2), 1)))
    add_tag(latest.path, "nightly")
    document = json.loads(nicbench("check", "latest", "--against", "nightly", "--json").stdout)
    assert document["against"] == [f"2026-01-0{day}" for day in range(1, 5)]
    assert document["outcome"] == "worse"
    assert "4 runs against 4: ratio of medians" in document["values"][0]["why"]


def test_all_runs_of_a_tag_are_checked_and_ci_has_a_case_for_each_value(make: Make, nicbench: Any) -> None:
    for day, rate in enumerate((100.0, 101.0, 99.0, 100.5, 90.0, 90.5, 89.5, 90.2), 1):
        tag = "before" if day < 5 else "after"
        add_tag(make(f"0{day}", result(64, rate), result(1518, 50.0), result(512, rate, "disturbed")).path, tag)
    ended = nicbench("check", "after", "--against", "before", "--junit", "ci/check.xml")
    assert ended.status == 6
    assert "4 runs, 2026-01-05 to 2026-01-08 against 4 runs, 2026-01-01 to 2026-01-04" in ended.stdout
    suites = ElementTree.parse("ci/check.xml").getroot()
    assert (suites.get("tests"), suites.get("failures")) == ("3", "1")
    (failure,) = suites.iter("failure")
    assert "4 runs against 4: ratio of medians" in str(failure.get("message"))
    assert len(list(suites.iter("skipped"))) == 1
    assert nicbench("check", "before", "--against", "before").status == 2


@pytest.mark.parametrize(
    ("different", "reason"),
    [
        ({"lab": "interfaces"}, "another lab: veth instead of interfaces"),
        ({"flows": 1}, "traffic.flows is 8 instead of 1"),
        ({"cpu": "another CPU"}, "another processor"),
        (
            {"options": {"frame_bytes": [64], "trial": {"duration": 1.0}}},
            "throughput.trial.duration is 60.0 instead of 1.0",
        ),
    ],
)
def test_what_is_not_comparable_is_refused_with_the_reason_unless_forced(
    different: dict[str, Any], reason: str, make: Make, nicbench: Any
) -> None:
    make("01", result(64, 100.0), **{"cpu": "a CPU", **different})
    make("02", result(64, 80.0), cpu="a CPU")
    ended = nicbench("check", "latest", "--against", "2026-01-01")
    assert ended.status == 2
    assert reason in ended.stderr
    assert "--force" in ended.stderr
    forced = nicbench("check", "latest", "--against", "2026-01-01", "--force")
    assert forced.status == 6
    assert f"not comparable, forced: {reason}" in forced.stdout


def test_more_points_and_another_kernel_are_comparable(make: Make, nicbench: Any) -> None:
    make("01", result(64, 100.0), kernel="5.10", options={"frame_bytes": [64, 128], "trial": {"duration": 60.0}})
    make("02", result(64, 100.0))
    assert nicbench("check", "latest", "--against", "2026-01-01").status == 0


def test_a_run_that_is_not_finished_cannot_be_told(make: Make, nicbench: Any) -> None:
    make("01", result(64, 100.0))
    (make("02", result(64, 100.0)).path / "MANIFEST.json").unlink()
    ended = nicbench("check", "2026-01-02", "--against", "2026-01-01")
    assert ended.status == 5
    assert "nicbench resume" in ended.stderr
    assert nicbench("check", "2026-01-01", "--against", "2026-01-02").status == 5


def test_a_summary_changed_by_hand_is_not_believed(make: Make, nicbench: Any) -> None:
    make("01", result(64, 100.0))
    changed = make("02", result(64, 100.0))
    summary = changed.path / "summary.json"
    summary.write_text(summary.read_text().replace("100.0", "200.0"))
    ended = nicbench("check", "latest", "--against", "2026-01-01")
    assert ended.status == 4
    assert "summary.json was changed after the run had finished" in ended.stderr


def test_a_name_that_is_neither_run_nor_tag_ends_with_2(make: Make, nicbench: Any) -> None:
    make("01", result(64, 100.0))
    ended = nicbench("check", "latest", "--against", "nothing")
    assert ended.status == 2
    assert "neither a run nor a tag" in ended.stderr
    assert nicbench("check", "latest", "--against", "latest").status == 2
