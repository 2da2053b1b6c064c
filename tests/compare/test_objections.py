"""Pairs of runs, and the objections to comparing them: those that block, and mere notes."""

from __future__ import annotations

from typing import Any

import pytest

from nicbench.compare.entries import Entry
from nicbench.compare.matching import divide_by_ports
from nicbench.compare.objections import Objection, conditions_of, find_objections
from nicbench.core.pattern import Pattern, ways_of
from nicbench.core.result import Result, ResultVerdict

from ._entries import OPTIONS, entry, plan, published, result


def said(*entries: Entry) -> tuple[Objection, ...]:
    return find_objections([conditions_of(one) for one in entries])


def with_trial(**times: float) -> dict[str, Any]:
    return {**OPTIONS, "trial": {**OPTIONS["trial"], **times}}


def with_search(trial_s: float, **search: Any) -> dict[str, Any]:
    return {**with_trial(duration=trial_s), "search": {**OPTIONS["search"], **search}}


def passed_for(seconds: float) -> Result:
    """A result whose rate passed a trial of this length."""
    found = result()
    return found.replace(values={**found.values, "ndr_passed_for_s": seconds})


def with_goals(**goals: float) -> dict[str, Any]:
    return {**OPTIONS, "search": {"goals": goals}}


BLOCKED = {
    "trials of 1 s and of 60 s": (
        entry("A"),
        entry("B", plan=plan(with_trial(duration=1.0))),
        (
            "trials of “throughput” do not last equally long (the longer of trial.duration and search.validation): "
            "60 s (“A”); 1 s (“B”)"
        ),
    ),
    "a validation of 60 s and none": (
        entry("A", plan=plan(with_search(1.0, validation=60.0))),
        entry("B", plan=plan(with_search(1.0, validation=0.0))),
        (
            "trials of “throughput” do not last equally long (the longer of trial.duration and search.validation): "
            "60 s (“A”); 1 s (“B”)"
        ),
    ),
    "trials of a method without a search": (
        entry("A", plan=plan({"trial": {"duration": 60.0}})),
        entry("B", plan=plan({"trial": {"duration": 1.0}})),
        "trials of “throughput” do not last equally long (trial.duration): 60 s (“A”); 1 s (“B”)",
    ),
    "a PDR that allows more loss": (
        entry("A"),
        entry("B", plan=plan(with_goals(NDR=0.0, PDR=0.01))),
        "PDR of “throughput” allows other shares of lost frames: 0.5 % (“A”); 1 % (“B”)",
    ),
    "a port and the sum of two": (
        entry("A"),
        entry("B", result(scope="sum of 2 ports")),
        "rates of “throughput” are not on the same basis: per port (“A”); sum of 2 ports (“B”)",
    ),
    "a simulation and a measurement": (
        entry("A", plan=plan(link_is_nominal=False)),
        entry("B", plan=plan(simulated=True, link_is_nominal=True)),
        "“B” was simulated, “A” not: a simulation measures nothing",
    ),
    "virtual links and a card": (
        entry("A"),
        entry("B", plan=plan(link_is_nominal=True)),
        "“B” was measured over virtual links",
    ),
    "virtual links and a published card": (
        entry("A", plan=plan(link_is_nominal=True)),
        published("P", result(scope="per port")),
        "“A” was measured over virtual links",
    ),
    "frames one way and both ways": (
        entry("A", plan=plan(traffic={"bidirectional": True})),
        entry("B", plan=plan(traffic={"bidirectional": False})),
        "frames did not go the same ways: both ways at once (“A”); one way (“B”)",
    ),
    "a run that is not finished": (entry("A"), entry("B", finished=False), "“B” is not finished"),
    "a run that is incomplete": (entry("A"), entry("B", verdict=ResultVerdict.INCOMPLETE), "“B” is incomplete"),
    "a run whose files were changed": (
        entry("A"),
        entry("B", troubles=("summary.json was changed after the run had finished",)),
        "“B” is not as the run left it: summary.json was changed",
    ),
    "one way and half of the round trip": (
        entry("A", result(method="request-response", name="basis", value="one way")),
        entry("B", result(method="request-response", name="basis", value="half the round trip")),
        "latencies of “throughput” are not of the same way: one way (“A”); half the round trip (“B”)",
    ),
}

TOLD = {
    "simulations alone": (
        entry("A", plan=plan(simulated=True)),
        entry("B", plan=plan(simulated=True)),
        "everything here is simulated: no frame was sent",
    ),
    "a published result": (
        entry("A", result(scope="sum of 2 ports")),
        published("P"),
        "“P” was not measured by nicbench: how long trials were",
    ),
    "links of other speeds": (
        entry("A"),
        entry("B", plan=plan(link_bits_per_s=100e9)),
        "their links are not of the same speed (25 Gb/s (“A”); 100 Gb/s (“B”))",
    ),
    "a disturbed run": (
        entry("A"),
        entry("B", verdict=ResultVerdict.DISTURBED),
        "some results of “B” were disturbed",
    ),
    "a rate for whose validation no trial was left": (
        entry("A", passed_for(60.0), plan=plan(with_search(1.0, validation=60.0))),
        entry("B", passed_for(60.0), passed_for(1.0), plan=plan(with_search(1.0, validation=60.0))),
        "rates of “throughput” have not all passed equally long trials: at least 60 s (“A”); at least 1 s (“B”)",
    ),
    "another number of runs": (
        entry("A"),
        entry("B", result(run=1), result(run=2)),
        "they have different numbers of runs: 1 (“A”); 2 (“B”)",
    ),
    "another tool": (
        entry("A", plan=plan({"workload": {"kind": "iperf3"}})),
        entry("B", plan=plan({"workload": {"kind": "netperf"}})),
        "“throughput” was not measured by the same tool: iperf3 (“A”); netperf (“B”)",
    ),
    "a basis that a source does not say": (
        entry("A"),
        published("P", result(scope="as the source gives them (per port or a sum: it is not said)")),
        "“P” does not say whether rates of “throughput” are per port or a sum of ports",
    ),
    "a test of one name and two methods": (
        entry("A"),
        entry("B", result(method="frame-loss")),
        "“throughput” is of several methods",
    ),
}


@pytest.mark.parametrize(("one", "other", "text"), BLOCKED.values(), ids=BLOCKED)
def test_what_changes_the_meaning_of_a_number_blocks(one: Entry, other: Entry, text: str) -> None:
    blocking = [found.text for found in said(one, other) if found.blocks]
    assert len(blocking) == 1, blocking
    assert blocking[0].startswith(text)


BOTH_WAYS = ways_of(Pattern.ONE_TO_ONE, 2, bidirectional=True).basis


def blocked_per_port(*entries: Entry) -> list[Objection]:
    """What blocks the comparison with --per-port."""
    return [found for found in said(*divide_by_ports(entries)[0]) if found.blocks]


@pytest.mark.parametrize("theirs", [published("theirs"), entry("theirs", result(scope="sum of 2 ports"))])
def test_half_of_a_sum_of_two_ports_is_like_a_port_of_two_that_send_at_once(theirs: Entry) -> None:
    mine = entry("mine", result(scope=BOTH_WAYS))
    [refused] = [found for found in said(mine, theirs) if found.blocks]
    assert refused.next_step == "--per-port divides what is a sum of ports by their number"
    assert blocked_per_port(mine, theirs) == []


def test_half_of_a_sum_of_two_ports_is_not_like_a_port_that_sends_alone() -> None:
    alone = entry("mine", result(scope="per port"))
    [before] = [found for found in said(alone, published("theirs")) if found.blocks]
    assert "compare with a run whose 2 ports send at once" in (before.next_step or "")
    [refused] = blocked_per_port(alone, published("theirs"))
    assert refused.text.endswith("per port (“mine”); per port of 2 that send at once (“theirs”)")
    assert "compare with a run whose 2 ports send at once" in (refused.next_step or "")
    assert "--per-port" not in (refused.next_step or ""), "it was given already"


def test_where_nothing_brings_two_bases_together_nothing_is_advised() -> None:
    four = entry("B", result(scope="per port of 4 that send at once"))
    [refused] = blocked_per_port(published("A"), four)
    assert refused.next_step is None


def test_a_rate_published_as_per_port_is_compared_with_a_port_of_a_run_both_ways() -> None:
    mine, theirs = entry("mine", result(scope=BOTH_WAYS)), published("theirs", result(scope="per port"))
    found = said(mine, theirs)
    assert not any(one.blocks for one in found)
    assert (
        "rates of “throughput” are compared as frames of one port in one direction: “theirs” has them per port, "
        "without a word on whether other ports sent at once; of the others 2 ports did, which is more work for the "
        "device than one port alone"
    ) in [one.text for one in found]


@pytest.mark.parametrize("scope", ["per port of 2 that send at once", "sum of 2 ports"])
def test_a_rate_of_which_it_is_known_that_a_port_sent_alone_is_refused_beside_others(scope: str) -> None:
    alone, both = entry("alone", result(scope="per port")), entry("both", result(scope=scope))
    assert any(one.blocks for one in said(alone, both))
    assert any(one.blocks for one in said(alone, both, published("theirs", result(scope="per port"))))


def test_a_published_rate_per_port_beside_a_sum_needs_the_sum_divided() -> None:
    theirs, mine = published("theirs", result(scope="per port")), entry("mine", result(scope="sum of 2 ports"))
    [refused] = [one for one in said(mine, theirs) if one.blocks]
    assert refused.next_step == "--per-port divides what is a sum of ports by their number"
    assert blocked_per_port(mine, theirs) == []


def test_a_published_rate_per_port_is_refused_beside_ports_that_send_to_one() -> None:
    incast = entry("mine", result(scope="the sum of 3 ports that send to one"))
    assert [one for one in said(incast, published("theirs", result(scope="per port"))) if one.blocks]


@pytest.mark.parametrize(("one", "other", "text"), TOLD.values(), ids=TOLD)
def test_what_may_be_the_very_thing_that_is_compared_is_told(one: Entry, other: Entry, text: str) -> None:
    found = said(one, other)
    assert not [one for one in found if one.blocks]
    assert any(one.text.startswith(text) for one in found), [one.text for one in found]


def test_short_trials_with_a_validation_are_like_long_trials() -> None:
    validated = entry("A", passed_for(60.0), plan=plan(with_search(1.0, validation=60.0)))
    long = entry("B", passed_for(60.0), plan=plan(with_search(60.0, validation=60.0)))
    assert said(validated, long) == said(entry("A"), entry("B"))


def test_nothing_is_said_against_two_runs_of_one_bench_file() -> None:
    several = [result(run=1), result(run=2)]
    assert said(entry("A", *several), entry("B", *several)) == ()


def test_of_single_runs_it_is_told_that_there_is_no_second() -> None:
    [found] = said(entry("A"), entry("B"))
    assert not found.blocks
    assert found.text.startswith("there is one run of each")


def test_what_nobody_says_is_no_difference() -> None:
    unknown = plan({"search": {}}, link_bits_per_s=None)
    assert said(entry("A"), entry("B", plan=unknown), entry("C", plan=None)) == said(entry("A"), entry("B"))


def test_a_goal_that_one_alone_has_is_no_objection() -> None:
    assert said(entry("A"), entry("B", plan=plan({**with_goals(NDR=0.0)}))) == said(entry("A"), entry("B"))


def test_of_many_entries_some_are_named_and_the_others_counted() -> None:
    short = [entry(f"short {number}", plan=plan(with_trial(duration=1.0))) for number in range(30)]
    found = said(*short, entry("long"))[0]
    assert found.text.endswith("1 s (“short 0”, “short 1”, “short 2”, “short 3” and 26 more); 60 s (“long”)")


def test_what_blocks_comes_first() -> None:
    found = said(entry("A", verdict=ResultVerdict.DISTURBED), entry("B", plan=plan(with_trial(duration=1.0))))
    assert [one.blocks for one in found] == [True, False, False]
