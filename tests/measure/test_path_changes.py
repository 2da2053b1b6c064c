"""What others change on the path of frames: told in words, never charged to the device."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nicbench.core.judging import Reason, Thresholds
from nicbench.core.reading import Change, ChangeAction, ChangeKind, PathChanges
from nicbench.core.trial import Trial
from nicbench.measure.trial_verdict import Evidence, describe, find_changes, judge, leave_out

MakeTrial = Callable[..., Trial]
MTU = Change(
    network="dut",
    kind=ChangeKind.LINK,
    action=ChangeAction.CHANGED,
    device="d1",
    what="mtu",
    before="1500",
    after="1300",
    after_ns=520_000_000,
)
ROUTE = Change(
    network="dut", kind=ChangeKind.ROUTE, action=ChangeAction.ADDED, what="10.1.0.0/16", after="blackhole", pid=7
)
RULESET = Change(
    network="dut",
    kind=ChangeKind.RULESET,
    action=ChangeAction.CHANGED,
    what="filter",
    after_ns=1_000_000_000,
    pid=4711,
    process="nft",
)
SETTING = Change(
    network="dut",
    kind=ChangeKind.SETTING,
    action=ChangeAction.CHANGED,
    what="net.ipv4.conf.all.forwarding",
    after="0",
    after_ns=0,
)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (MTU, "in dut, d1: mtu changed from 1500 to 1300 after 0.52 s"),
        (ROUTE, "in dut: route 10.1.0.0/16 added (blackhole) meanwhile by process 7"),
        (RULESET, "in dut: nftables ruleset (table filter) changed after 1.00 s by nft (process 4711)"),
        (SETTING, "in dut: net.ipv4.conf.all.forwarding changed to 0 after 0.00 s"),
    ],
)
def test_a_change_says_what_where_when_and_by_whom(change: Change, words: str) -> None:
    assert describe(change) == words


def test_a_trial_in_which_the_path_changed_is_invalid_and_counts_every_change(trial: MakeTrial) -> None:
    reading = trial(0).reading.replace(changes=PathChanges(changes=(MTU, ROUTE, RULESET, SETTING)))
    verdict = judge(Evidence.of(reading), Thresholds(), adjusts=True)
    assert not verdict.valid
    (finding,) = verdict.findings
    assert (finding.reason, finding.value) == (Reason.CHANGED, 4.0)
    assert "mtu" in finding.text
    assert finding.text.endswith("and 1 more change")


@pytest.mark.parametrize("seen", [None, PathChanges()])
def test_nothing_is_found_where_nothing_changed_or_nobody_watched(seen: PathChanges | None) -> None:
    assert not list(find_changes(seen))


def test_what_a_trial_does_on_purpose_is_no_fault_of_the_path(trial: MakeTrial) -> None:
    reading = trial(0).reading.replace(changes=PathChanges(changes=(MTU,)))
    assert not Evidence.of(reading, link_may_change=True).changes


def test_what_the_device_changes_by_itself_is_left_out() -> None:
    left = leave_out(PathChanges(changes=(MTU, ROUTE)), {ChangeKind.ROUTE})
    assert left is not None
    assert left.changes == (MTU,)


def test_more_than_the_kernel_could_tell_is_a_change_too() -> None:
    (finding,) = find_changes(PathChanges(overflowed=("dut",)))
    assert finding.reason is Reason.CHANGED
