"""The findings of changes on the path: what somebody else changed there is never charged to the DUT. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from nicbench.core.reading import Change, ChangeAction, ChangeKind, PathChanges
from nicbench.core.verdict import Finding, Reason

OF_A_LINK: Final = frozenset({ChangeKind.LINK, ChangeKind.ADDRESS, ChangeKind.ROUTE, ChangeKind.NEIGHBOUR})
"""What follows by itself where a link goes down and comes up."""
_MOST_NAMED: Final = 3
_NOUNS: Final[Mapping[ChangeKind, str]] = MappingProxyType(
    {
        ChangeKind.LINK: "interface",
        ChangeKind.ADDRESS: "address",
        ChangeKind.ROUTE: "route",
        ChangeKind.RULE: "routing rule",
        ChangeKind.NEIGHBOUR: "neighbour",
        ChangeKind.QUEUEING: "queueing discipline",
        ChangeKind.FILTER: "traffic control filter",
        ChangeKind.RULESET: "nftables ruleset",
        ChangeKind.XDP: "XDP program",
        ChangeKind.TCX: "tcx program",
        ChangeKind.SETTING: "setting",
    }
)


def leave_out(seen: PathChanges | None, kinds: Collection[ChangeKind]) -> PathChanges | None:
    """Returns the changes without those of these kinds, which are known to be made on purpose."""
    if seen is None or not kinds:
        return seen
    return seen.replace(changes=tuple(each for each in seen.changes if each.kind not in kinds))


def leave_out_programs(seen: PathChanges | None, devices: Collection[str]) -> PathChanges | None:
    """Returns the changes without those of XDP programs at these devices, which the tester attaches itself."""
    if seen is None or not devices:
        return seen
    kept = (each for each in seen.changes if each.kind is not ChangeKind.XDP or each.device not in devices)
    return seen.replace(changes=tuple(kept))


def find_changes(seen: PathChanges | None) -> Iterator[Finding]:
    """Yields one finding for all changes; none where nothing changed, or nobody could watch."""
    if seen is None:
        return
    count = len(seen.changes) + seen.more
    if count:
        named = [describe(each) for each in seen.changes[:_MOST_NAMED]]
        left = count - len(named)
        more = [f"and {left} more change{'s' if left > 1 else ''}"] if left else []
        yield _finding(count, f"somebody changed the path of the frames: {'; '.join((*named, *more))}")
    for network in seen.overflowed:
        yield _finding(1, f"more was changed in the network {network} than its kernel could tell")


def describe(change: Change) -> str:
    """Returns what changed, where, when and by whom: ``in dut, v1: mtu changed from 1500 to 1400 after 0.52 s``."""
    place = change.network if change.device is None else f"{change.network}, {change.device}"
    parts = [f"in {place}: {_subject(change)} {change.action}"]
    if change.action is ChangeAction.CHANGED and change.before is not None:
        parts.append(f"from {change.before}")
    if change.after is not None:
        parts.append(f"to {change.after}" if change.action is ChangeAction.CHANGED else f"({change.after})")
    parts.append("meanwhile" if change.after_ns is None else f"after {change.after_ns / 1e9:.2f} s")
    if change.process is not None:
        parts.append(f"by {change.process}" + ("" if change.pid is None else f" (process {change.pid})"))
    elif change.pid is not None:
        parts.append(f"by process {change.pid}")
    return " ".join(parts)


def _subject(change: Change) -> str:
    if change.kind is ChangeKind.SETTING or (change.kind is ChangeKind.LINK and change.what is not None):
        return change.what or _NOUNS[change.kind]
    if change.kind is ChangeKind.RULESET:
        return _NOUNS[change.kind] + (f" (table {change.what})" if change.what else "")
    return f"{_NOUNS[change.kind]} {change.what or ''}".rstrip()


def _finding(count: int, text: str) -> Finding:
    return Finding(reason=Reason.CHANGED, threshold="changed", value=float(count), limit=0.0, text=text)
