"""A link that failed during a round: how long each connection was silent, as figures and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from nicbench.core.bond import FlowSilence, LinkFailureOutcome
from nicbench.core.round import Job, Round
from nicbench.core.units import format_digits

LEAST_BYTES: Final = 10_000
"""A connection that moved less in a whole round is taken for a control connection (as iperf3's)."""


@dataclass(frozen=True, slots=True)
class Look:
    """The bytes of each connection at one time, both directions together, by what identifies a connection."""

    at_s: float
    moved: Mapping[tuple[str, int, str, int], int]


@dataclass(frozen=True, slots=True)
class Silence:
    """The longest time without a byte while the link was down, and after it came back. None is unknown."""

    down_s: float | None
    back_s: float | None
    went_on: bool


def step_s(looks: Sequence[Look], from_s: float, until_s: float) -> float | None:
    """Returns the longest time between two looks in this period: shorter silences cannot be told from that one."""
    times = [look.at_s for look in looks]
    steps = [later - earlier for earlier, later in pairwise(times) if later > from_s and earlier < until_s]
    return max(steps, default=None)


def silence_of(
    looks: Sequence[Look], key: tuple[str, int, str, int], down_s: float, up_s: float | None, until_s: float
) -> Silence | None:
    """Measures the silences of a connection; None where it hardly moved, or was not seen, before the link failed.

    A silence begins at the last look at which bytes had come, at the earliest when the link went down, and ends at the
    first look with more bytes. ``until_s`` is the end of the round.
    """
    seen = [(look.at_s, look.moved[key]) for look in looks if key in look.moved and look.at_s <= until_s]
    before = [moved for at_s, moved in seen if at_s <= down_s]
    if not before or max(before) < LEAST_BYTES:
        return None
    progress = [(earlier_s, at_s) for (earlier_s, earlier), (at_s, moved) in pairwise(seen) if moved > earlier]
    moments = [at_s for _, at_s in progress if at_s > down_s]
    back_s = until_s if up_s is None else min(up_s, until_s)
    ends = [at_s for at_s in moments if at_s <= back_s]
    later = [at_s for at_s in moments if at_s > back_s]
    # A silence that begins while the link is down counts in full, even if it lasts beyond that.
    first_later = later[:1] or [until_s]
    silent_down = _longest([down_s, *ends, *(first_later if not ends else [])])
    silent_back = (
        None if up_s is None or up_s >= until_s else _longest([back_s, *later, *([until_s] if not later else [])])
    )
    return Silence(down_s=silent_down, back_s=silent_back, went_on=bool(moments))


def _longest(times_s: Sequence[float]) -> float | None:
    gaps = [later - earlier for earlier, later in pairwise(times_s)]
    return max(gaps, default=None)


def failure_note(one: Round) -> str | None:
    """Describes the failure and each connection, without the last full stop; None where no failure was asked for."""
    failed = one.failure
    if failed is None:
        return None
    head = when_words(failed)
    if failed.down_at_s is None:
        return head
    # Connections of one client that behaved the same are described once.
    flows = list(dict.fromkeys(describe_flow(flow, one.request.jobs, failed) for flow in failed.flows))
    if not flows:
        return f"{head}; how long connections stood still is not known"
    looked = f" (looks were at most {format_digits(failed.step_s, 2)} s apart)" if failed.step_s else ""
    return f"{head}. {'; '.join(flows)}{looked}"


def failure_summary(failed: LinkFailureOutcome) -> str:
    """Summarises, in one sentence without its full stop, when the link was down and how many connections went on."""
    head = when_words(failed)
    if failed.down_at_s is None or not failed.flows:
        return head
    of, stopped = len(failed.flows), sum(1 for flow in failed.flows if flow.went_on is False)
    if stopped:
        return f"{head}: {stopped} of {of} connections stood still from then on"
    known = [
        silent for flow in failed.flows for silent in (flow.silent_down_s, flow.silent_back_s) if silent is not None
    ]
    longest = f", silent for {_format_silence(max(known), failed)}" if known else ""
    return f"{head}: {'the connection' if of == 1 else f'all {of} connections'} went on{longest}"


def when_words(failed: LinkFailureOutcome) -> str:
    """Describes when the link was down: "link 2 of s0 (s0p2) was down on purpose from 3.0 s to 7.0 s"."""
    asked = failed.asked
    link = f"link {asked.link} of {asked.port} ({failed.link})"
    if failed.down_at_s is None:
        return f"{link} was to fail and did not: {failed.trouble or 'the round was over before'}"
    until = "to the end" if failed.up_at_s is None else f"to {failed.up_at_s:.1f} s"
    by = "" if failed.taken_down == failed.link else f", taken down at {failed.taken_down}"
    return f"{link} was down on purpose from {failed.down_at_s:.1f} s {until}{by}"


def describe_flow(flow: FlowSilence, jobs: tuple[Job, ...], failed: LinkFailureOutcome) -> str:
    """Describes a connection: "c0a (by s0p2) was silent for 0.31 s, and 0.12 s when the link was back"."""
    who = who_words(flow, jobs)
    way = describe_ports(flow)
    if not flow.went_on:
        return f"{who}{way} stood still from then on"
    down = _format_silence(flow.silent_down_s, failed)
    back = (
        ""
        if flow.silent_back_s is None
        else f", and {_format_silence(flow.silent_back_s, failed)} when the link was back"
    )
    return f"{who}{way} was silent for {down}{back}"


def who_words(flow: FlowSilence, jobs: tuple[Job, ...]) -> str:
    """Names the client; both, where a connection may belong to either of two."""
    return " or ".join(dict.fromkeys(jobs[job - 1].label or jobs[job - 1].client for job in flow.jobs))


def describe_ports(flow: FlowSilence) -> str:
    """Names the ports of a connection: " (by s0p2, then predicted s0p3)"; empty where they are not known."""
    if flow.port_before is None:
        return ""
    if flow.port_down is None or flow.port_down == flow.port_before:
        return f" (by {flow.port_before})"
    return f" (by {flow.port_before}, then predicted {flow.port_down})"


def _format_silence(seconds: float | None, failed: LinkFailureOutcome) -> str:
    """Formats a silence no more precisely than the looks at the connection allow."""
    if seconds is None:
        return "an unknown time"
    if failed.step_s is not None and seconds <= failed.step_s:
        return f"at most {format_digits(failed.step_s, 2)} s"
    return f"{format_digits(seconds, 2)} s"
