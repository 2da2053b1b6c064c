"""Links and their senders in a round: failures, the sum of what jobs moved over one link, and how senders react."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import pairwise
from typing import Final, NamedTuple

from nicbench.core.bond import FlowSilence, LinkFailureOutcome
from nicbench.core.frozen import frozen
from nicbench.core.round import EndpointFacts, Flow, Job, JobOutcome, Round, SenderLook, SenderTrace
from nicbench.core.units import format_digits
from nicbench.stats.rounds import rate_together, span_of, what_of

# A link that failed during a round: how long each connection was silent, as figures and in words.


LEAST_BYTES: Final = 10_000
"""A connection that moved less in a whole round is taken for a control connection (as iperf3's)."""


@frozen
class Look:
    """The bytes of each connection at one time, both directions together, by what identifies a connection."""

    at_s: float
    moved: Mapping[tuple[str, int, str, int], int]


@frozen
class Silence:
    """The longest time without a byte while the link was down, and after it came back. None is unknown."""

    down_s: float | None
    back_s: float | None
    went_on: bool


def step_s(looks: Sequence[Look], from_s: float, until_s: float) -> float | None:
    """Returns the longest time between two looks in this period: shorter silences look the same."""
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


# What jobs that run at once say of a link together, held against what it carries. Pure.


_MARGIN: Final = 0.01
_START_S: Final = 0.01
"""The longest time after which a client begins to send after another, where both begin at once."""
_SEND_BUFFER_BYTES: Final = 4 * 1024 * 1024
"""What a sender's socket may hold at its end (tcp_wmem), for tools that count only what was sent."""


def find_beyond_links(facts: Mapping[str, EndpointFacts], pairs: Sequence[tuple[Job, JobOutcome]]) -> Iterator[str]:
    """Yields a sentence for each direction of a link that carries less than several jobs say together.

    ``facts`` are of all endpoints, by their names.
    """
    at_link: dict[tuple[str, bool], list[tuple[Job, JobOutcome]]] = defaultdict(list)
    for job, outcome in pairs:
        for flow in () if outcome.figures is None else outcome.figures.flows:
            for name, is_inward in _links(job, flow, facts):
                at_link[name, is_inward].append((job, _only(outcome, flow)))
    for (name, is_inward), jobs in at_link.items():
        link_bits_per_s = facts[name].link_bits_per_s
        rate = rate_together([outcome for _, outcome in jobs])
        if len(jobs) < 2 or link_bits_per_s is None or rate is None:
            continue
        most = link_bits_per_s * (1 + _MARGIN) + _beyond_rate(jobs, link_bits_per_s, facts[name])
        if rate > most:
            yield (
                f"{name}: {len(jobs)} jobs say {_megabits(rate)} together {'to' if is_inward else 'from'} the measured "
                f"host, and the link carries {_megabits(link_bits_per_s)}"
            )


def _links(job: Job, flow: Flow, facts: Mapping[str, EndpointFacts]) -> Iterator[tuple[str, bool]]:
    """Yields each link that the flow crosses, by its endpoint, and whether it goes towards the measured host there."""
    client, server = facts.get(job.client), facts.get(job.server or "")
    if client is None or server is None or client.host == server.host:
        return
    if job.ask.transport == "udp" and flow.received_bits_per_s is None:
        return  # a sender's host drops what its link does not take
    is_forward = flow.direction == "forward"
    for end, is_inward in ((client, is_forward), (server, is_forward if server.port is None else not is_forward)):
        if end.port is not None:
            yield from ((name, is_inward) for name in (end.name, end.port) if name in facts)
    if server.port is None and server.name != client.port:
        yield server.name, is_forward


def _only(outcome: JobOutcome, flow: Flow) -> JobOutcome:
    figures = outcome.figures
    return outcome.replace(figures=figures and figures.replace(flows=(flow,)))


def _beyond_rate(jobs: Sequence[tuple[Job, JobOutcome]], link_bits_per_s: float, end: EndpointFacts) -> float:
    """Returns by how much more than its rate a link may seem to carry: tokens that wait, what is sent and not arrived,
    and clients that begin a moment apart.
    """
    span_s = span_of([outcome for _, outcome in jobs]) or min(job.ask.duration_s or 1.0 for job, _ in jobs)
    held = sum(
        job.ask.streams * max(job.ask.window_bytes or 0, _SEND_BUFFER_BYTES)
        for job, outcome in jobs
        for flow in (outcome.figures.flows if outcome.figures else ())
        if flow.received_bits_per_s is None
    )
    return (8 * (held + (end.bucket_bytes or 0)) + link_bits_per_s * _START_S) / span_s


def _megabits(rate: float) -> str:
    return f"{format_digits(rate / 1e6, 4)} Mb/s"


# The reaction of a sender over time: whether and when its rate settles, and what it makes of marks.


STEP_S: Final = 0.5
"""The time over which a rate is averaged before it is compared with the settled one."""
_WITHIN: Final = 0.1
_GROWN: Final = 1.5
"""Data in flight of the last quarter over that of the first: a sender that obeys marks does not let it grow so far."""
_OBEYS: Final = 0.1
"""The window of a sender that obeys falls in this share of the times between two looks that saw marks, or more."""
_LEAST_LOOKS: Final = 4
_P95: Final = 0.95


class Reaction(Enum):
    """What a sender made of marks, in words."""

    REACTS = "reacts to marks"
    UNSETTLED = "reacts to marks, its rate does not settle"
    NOT_TOLD = "was not told: ECN not negotiated"
    NOT_MARKED = "was not marked"
    UNKNOWN = "has marks that its kernel does not tell"
    IGNORES = "was marked and did not slow down"


@frozen
class Settling:
    """What a sender did in a period. Everything but ``settles_after_s`` is of the time after it settled.

    Where it did not settle (``settles_after_s`` is ``None``), it is of the last half of the period.
    """

    settles_after_s: float | None
    """Seconds from the beginning of the period."""
    rate_bits_per_s: float
    """Payload that was acknowledged."""
    marked_share: float | None
    """Of the segments delivered."""
    resent: int
    """Segments sent again."""
    round_trip_median_ns: float | None
    round_trip_p95_ns: float | None
    reaction: Reaction


@frozen
class Step:
    """The mean of one step of time, which ends ``at_s``."""

    at_s: float
    rate_bits_per_s: float
    marked_share: float | None
    round_trip_ns: float | None


def steps_of(looks: Sequence[SenderLook], step_s: float) -> list[Step]:
    """Splits looks at the multiples of ``step_s``, the same for all senders; a rest is left out."""
    found, first = list[Step](), 0
    ended = math.floor(looks[0].at_s / step_s + 1e-9) if looks else 0
    for number, look in enumerate(looks):
        now = math.floor(look.at_s / step_s + 1e-9)
        if now > ended:
            part = looks[first : number + 1]
            trips = [one.round_trip_ns for one in part[1:] if one.round_trip_ns is not None]
            found.append(
                Step(
                    at_s=now * step_s,
                    rate_bits_per_s=_rate(part),
                    marked_share=_marked_share(part),
                    round_trip_ns=statistics.median(trips) if trips else None,
                )
            )
            first, ended = number, now
    return found


def settling_of(trace: SenderTrace, from_s: float, until_s: float) -> Settling | None:
    """Judges the period; None where there are too few looks in it.

    The rate is compared with its mean over the last half of the period: it settles at the first time after which each
    mean over half a second stays within 10 % of that, and does not settle where one in the last half is farther away.
    """
    looks = [look for look in trace.looks if from_s <= look.at_s <= until_s]
    late = [look for look in looks if look.at_s >= (from_s + until_s) / 2]
    if len(late) < _LEAST_LOOKS or late[-1].at_s <= late[0].at_s:
        return None
    reference = _rate(late)
    settled_at_s: float | None = looks[0].at_s
    for step in steps_of(looks, STEP_S):
        if abs(step.rate_bits_per_s - reference) > _WITHIN * reference:
            settled_at_s = step.at_s
    if settled_at_s is not None and settled_at_s > late[0].at_s:
        settled_at_s = None
    settled = late if settled_at_s is None else [look for look in looks if look.at_s >= settled_at_s]
    trips = sorted(look.round_trip_ns for look in settled if look.round_trip_ns is not None)
    share = _marked_share(settled)
    return Settling(
        settles_after_s=None if settled_at_s is None else max(0.0, settled_at_s - from_s),
        rate_bits_per_s=_rate(settled),
        marked_share=share,
        resent=settled[-1].resent - settled[0].resent,
        round_trip_median_ns=statistics.median(trips) if trips else None,
        round_trip_p95_ns=trips[min(len(trips) - 1, int(_P95 * len(trips)))] if trips else None,
        reaction=_reaction(trace.ecn, settled, share, is_settled=settled_at_s is not None),
    )


def _reaction(ecn: bool | None, looks: Sequence[SenderLook], share: float | None, *, is_settled: bool) -> Reaction:
    if ecn is False:
        return Reaction.NOT_TOLD
    if ecn is None or share is None:
        return Reaction.UNKNOWN
    if share == 0:
        return Reaction.NOT_MARKED
    # A stream may overshoot as it begins: what counts is the last half.
    if (looks[-1].resent > looks[len(looks) // 2].resent or _grows(looks)) and not _obeys(looks):
        return Reaction.IGNORES
    return Reaction.REACTS if is_settled else Reaction.UNSETTLED


def _obeys(looks: Sequence[SenderLook]) -> bool:
    """Whether the congestion window fell in a tenth or more of the times that saw marks and no loss."""
    fell = [
        later.window < earlier.window
        for earlier, later in pairwise(looks)
        if earlier.window is not None
        and later.window is not None
        and later.resent == earlier.resent
        and (later.delivered_marked or 0) > (earlier.delivered_marked or 0)
    ]
    return bool(fell) and statistics.fmean(fell) >= _OBEYS


def _grows(looks: Sequence[SenderLook]) -> bool:
    """Whether rate times round trip, which is the data in flight, is much more at the end than at the beginning."""
    flights = [
        (later.acked_bytes - earlier.acked_bytes) / (later.at_s - earlier.at_s) * later.round_trip_ns
        for earlier, later in pairwise(looks)
        if later.round_trip_ns is not None and later.at_s > earlier.at_s
    ]
    quarter = len(flights) // 4
    if quarter == 0:
        return False
    return statistics.fmean(flights[-quarter:]) > _GROWN * statistics.fmean(flights[:quarter])


def _rate(looks: Sequence[SenderLook]) -> float:
    return 8.0 * (looks[-1].acked_bytes - looks[0].acked_bytes) / (looks[-1].at_s - looks[0].at_s)


def _marked_share(looks: Sequence[SenderLook]) -> float | None:
    """Of the segments delivered between the first look and the last; None where that is not known."""
    first, last = looks[0], looks[-1]
    if None in (first.delivered, last.delivered, first.delivered_marked, last.delivered_marked):
        return None
    delivered = (last.delivered or 0) - (first.delivered or 0)
    return ((last.delivered_marked or 0) - (first.delivered_marked or 0)) / delivered if delivered > 0 else None


# Rounds in which a link failed, and what their clients transferred meanwhile, for the report.


class MovedInterval(NamedTuple):
    """What a client transferred in one interval that its tool reports; times are seconds since the clients began."""

    who: str
    begin_s: float
    end_s: float
    bits_per_s: float


def list_failed_links(rounds: Iterable[Round], used: Collection[str]) -> tuple[Round, ...]:
    """Returns each round in which a link went down, in order. Only rounds that results rest on count (``used``, their
    ids).
    """
    return tuple(one for one in rounds if one.id in used and one.failure and one.failure.down_at_s is not None)


def failed_link_sentence(one: Round) -> str:
    """Returns the sentence about a link that failed among the findings."""
    return f"In {one.id} ({what_of(one)}) {failure_summary(one.failure)}." if one.failure else ""


def moved_intervals(one: Round) -> Iterator[MovedInterval]:
    """Yields what each client transferred over time, one client after the other."""
    for job, outcome in zip(one.request.jobs, one.outcomes, strict=False):
        began_s = outcome.began_s or 0.0
        intervals = outcome.figures.intervals if outcome.figures else ()
        # Before the first one seconds may have been omitted.
        begin_s = max(0.0, 2 * intervals[0][0] - intervals[1][0]) if len(intervals) > 1 else 0.0
        for end_s, bits_per_s in intervals:
            yield MovedInterval(job.label or job.client, began_s + begin_s, began_s + end_s, bits_per_s)
            begin_s = end_s
