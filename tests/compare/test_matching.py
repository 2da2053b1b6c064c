"""The same points of several entries, whatever their tests are called and whatever else their source says."""

from __future__ import annotations

import pytest

from nicbench.compare.entries import Entry, name_entries
from nicbench.compare.matching import divide_by_ports, match_points, merge_summaries, plan_of_all, unify_scopes
from nicbench.core.result import Bounded, ImportedRow, Spread

from ._entries import OPTIONS, entry, plan, published, rate, result


def test_a_test_of_another_name_and_the_same_method_is_laid_beside_it_and_told() -> None:
    found = match_points([entry("A"), entry("B", result(test="search"), plan=plan(tests={"search": "throughput"}))])
    assert len(found.common) == 1
    assert found.remarks == (
        "the test “search” of B is laid beside “throughput” of A: both are of the method throughput",
    )
    assert [one.plan.tests[0].name for one in found.entries if one.plan] == ["throughput", "throughput"]


def test_where_an_entry_has_two_tests_of_a_method_names_decide() -> None:
    found = match_points([entry("A", result(test="a"), result(test="b")), entry("B", result(test="b"))])
    assert [point.test for point in found.common] == ["b"]
    assert [point.test for point in found.lonely] == ["a"]


def test_what_only_a_source_says_of_its_points_does_not_keep_them_apart() -> None:
    found = match_points([entry("A"), published("P", result(value=Bounded(value=2e6), link="2 x 25 Gb/s"))])
    assert len(found.common) == 1
    assert found.remarks == ("throughput: A does not say “link”",)


def test_entries_of_different_links_are_laid_beside_each_other_and_that_is_told() -> None:
    found = match_points([published("P", result(link="2 x 25 Gb/s")), published("Q", result(link="100 Gb/s"))])
    assert len(found.common) == 1
    assert found.remarks == ("throughput: links are not the same: 2 x 25 Gb/s (P); 100 Gb/s (Q)",)


def test_what_tells_points_of_an_entry_apart_is_kept() -> None:
    found = match_points([entry("A"), published("P", result(link="10 Mb/s"), result(link="100 Mb/s"))])
    assert found.common == ()
    assert "so that its points are not those of the others" in found.remarks[0]


def test_whole_numbers_are_the_same_however_they_are_written() -> None:
    assert len(match_points([entry("A", result(load_percent=100.0)), entry("B", result(load_percent=100))]).common) == 1


def test_a_point_of_one_alone_is_listed_and_in_no_table() -> None:
    found = match_points([entry("A", result(64), result(128)), entry("B", result(64))])
    assert {point.words: names for point, names in found.lonely.items()} == {"throughput: with 128-byte frames": ("A",)}
    assert {one.parameters["frame_bytes"] for one in merge_summaries(found, "t").results} == {64}


def test_entries_are_configurations_in_their_order_and_several_runs_are_medians() -> None:
    several = entry("B", *(result(value=rate(1e6 * run), run=run) for run in (1, 2, 3)))
    summary = merge_summaries(match_points([entry("A"), several]), "t")
    assert summary.configurations == ("A", "B")
    of_a, of_b = summary.beside_each_other
    assert isinstance(of_a.values["ndr_frames_per_s"], Bounded)
    assert isinstance(of_b.values["ndr_frames_per_s"], Spread)
    assert of_b.values["ndr_frames_per_s"].n == 3


def test_forced_bases_are_all_named() -> None:
    found = match_points([entry("A"), entry("B", result(scope="sum of 2 ports"))])
    scopes = {one.scope for one in unify_scopes(merge_summaries(found, "t")).results}
    assert scopes == {"not all on the same basis (per port; sum of 2 ports)"}
    both = "per port of 2 that send at once"
    beside = published("P", result(scope="per port").replace(imported=ImportedRow(line=1, printed={})))
    found = match_points([entry("A", result(scope=both)), beside])
    scopes = {one.scope for one in unify_scopes(merge_summaries(found, "t")).results}
    assert scopes == {"per port (of 2 that send at once; of published ones it is not said how many did)"}


def test_a_loss_ratio_on_which_they_do_not_agree_is_not_said() -> None:
    other = plan({**OPTIONS, "search": {"goals": {"NDR": 0.0, "PDR": 0.01}}})
    [test] = plan_of_all([entry("A"), entry("B", plan=other)], "t").tests
    assert test.options["search"]["goals"] == {"NDR": 0.0}


def test_a_sum_of_ports_is_divided_where_it_is_asked_for() -> None:
    entries, told = divide_by_ports([entry("A"), published("P")])
    [one] = entries[1].results
    assert one.scope == "per port of 2 that send at once"
    assert one.values["ndr_frames_per_s"] == Bounded(value=1e6)
    assert entries[0] == entry("A")
    assert "“P”" in told[0]
    assert "--per-port" in told[0]


def test_names_are_as_short_as_tells_entries_apart() -> None:
    one = entry("", title="Bare", moment="2026-01-01 10:00:07")
    again = entry("", title="Rules", moment="2026-01-02 10:00:07")
    assert [each.name for each in name_entries([one, again])] == ["Bare", "Rules"]
    same = [entry("", title="T", run_id=f"r{day}", moment=f"2026-01-0{day} 10:00:07") for day in (1, 2)]
    assert [each.name for each in name_entries(same)] == ["2026-01-01 10:00", "2026-01-02 10:00"]
    at_once = [entry("", title="T", run_id=f"r{second}", moment=f"2026-01-01 10:00:0{second}") for second in (1, 2)]
    assert [each.name for each in name_entries(at_once)] == ["2026-01-01 10:00:01", "2026-01-01 10:00:02"]
    both = [entry("", configuration="x", run_id=one.run_id, moment=one.moment) for one in at_once]
    assert [each.name for each in name_entries(both)] == ["x, 2026-01-01 10:00:01", "x, 2026-01-01 10:00:02"]
    tagged = [entry("", title="T", tags=(tag, "nightly")) for tag in ("before", "after")]
    assert [each.name for each in name_entries(tagged)] == ["before", "after"]
    configurations = [entry("", run_id="r", configuration=name) for name in ("x", "y")]
    assert [each.name for each in name_entries(configurations)] == ["x", "y"]
    twins = [entry("", title="T", run_id="r", moment="2026-01-01 10:00:07") for _ in range(2)]
    assert len({each.name for each in name_entries(twins)}) == 2


def of_queue(frames: int, mtu: int = 1500, **more: dict[str, object]) -> Entry:
    """An entry whose run tells the length of its queue and its MTU, and more settings."""
    told = {"dut": {"mtu": mtu}, "lab": {"queue_frames": frames}, **more}
    moment = f"2026-01-01 {frames % 24:02}:00:07"
    return entry("", title="T", run_id=f"{frames}-{mtu}", moment=moment, told={"": told})


def test_runs_of_one_title_are_named_by_the_only_setting_in_which_they_differ() -> None:
    def names(*entries: Entry) -> list[str]:
        return [each.name for each in name_entries(entries)]

    assert names(of_queue(64), of_queue(512), of_queue(1024)) == [
        "queue frames 64",
        "queue frames 512",
        "queue frames 1024",
    ]
    repeated = [of_queue(frames, testbed={"queue_frames": frames}) for frames in (64, 512)]
    assert names(*repeated) == ["queue frames 64", "queue frames 512"]
    of_a_fact = [of_queue(64, inventory={"smt": {"active": is_on}}) for is_on in (True, False)]
    assert names(*of_a_fact) == ["smt active yes", "smt active no"]
    assert names(of_queue(64), entry("", title="T", moment="2026-01-02 10:00:07"))[0] == "2026-01-01 16:00"


@pytest.mark.parametrize(
    "entries",
    [
        (of_queue(64), of_queue(512, 9000)),
        (of_queue(64), of_queue(64), of_queue(512)),
        (of_queue(64, 64), of_queue(512, 512)),
        (of_queue(64, software={"nicbench": "1"}), of_queue(512, software={"nicbench": "2"})),
        (of_queue(64), of_queue(512, title=[1])),
    ],
    ids=["two differ", "two runs have it alike", "two have the same values", "another version", "no plain value"],
)
def test_runs_are_not_named_by_a_setting_that_is_not_all_that_differs(entries: tuple[Entry, ...]) -> None:
    assert not any("queue" in each.name for each in name_entries(entries))


def test_what_was_not_measured_here_says_so_in_its_name() -> None:
    assert (
        name_entries([entry("A"), published("", configuration="ConnectX-5")])[1].name == "ConnectX-5 (published 2019)"
    )


def test_a_name_that_the_user_gives_stays() -> None:
    assert name_entries([entry("old", is_named=True), published("theirs", is_named=True)])[1].name == "theirs"
