"""Figures of rounds of connections: counts of all clients together, percentiles of all histograms, and failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from nicbench.core.connections import ConnectionFigures, ConnectionTimes
from nicbench.core.result import Bounded, LimitedBy
from nicbench.core.round import Round
from nicbench.core.table import Column
from nicbench.methods._round_figures import loads_of
from nicbench.methods.base import Values
from nicbench.stats.latency import add_histograms, percentiles_ns

CLIENT_FAILURES: Final = frozenset({"no_ports", "no_files"})
"""Failures of the client itself, which say nothing of DUT or server."""
ANSWER_FAILURES: Final = frozenset({"reset", "short", "status", "length", "content", "not_http", "lost"})
"""Failures after a connection stood: a server or a DUT that is broken has them at every load."""
LATEST_START_NS: Final = 100_000_000
"""A client that begins one of a hundred later than this is not on time: its rate was not offered."""
FAILURE_RATIO: Final = 1e-5
"""RFC 9411 allows 0.001 % of transactions and of connections to fail."""
IN_TIME_RATIO: Final = 0.99
"""The share of what was due in the sustain phase that must be complete before it ends: what falls behind is no rate."""
_TIMES: Final = ("connect", "handshake", "first_byte", "last_byte")
_WORDS: Final = {
    "no_ports": "no local port was free",
    "no_files": "the client may open no more files",
    "refused": "refused",
    "unreachable": "unreachable",
    "connect_timeout": "not connected in time",
    "tls": "TLS failed",
    "tls_timeout": "no TLS session in time",
    "reset": "reset",
    "short": "closed before the answer was complete",
    "response_timeout": "not answered in time",
    "status": "another status than 200",
    "length": "another length",
    "content": "another content",
    "not_http": "no HTTP/1.1",
    "lost": "ended while held",
}


def figures_of(one: Round) -> tuple[ConnectionFigures, ...] | None:
    """Returns the figures of every client; None where one has none."""
    found = [outcome.figures.connections if outcome.figures else None for _, outcome in loads_of(one)]
    known = tuple(each for each in found if each is not None)
    return known if known and len(known) == len(found) else None


class Outcome:
    """What all clients of a round counted together."""

    def __init__(self, figures: Sequence[ConnectionFigures], duration_s: float, *, is_of_held: bool = False) -> None:
        self.figures = tuple(figures)
        self.is_of_held = is_of_held
        self.due = sum(each.sustain.due for each in figures)
        self.completed = sum(each.sustain.completed for each in figures)
        self.in_time = sum(each.in_time for each in figures)
        self.held = sum(each.held for each in figures)
        self.failed: Counter[str] = Counter()
        for each in figures:
            for counts in (each.ramp, each.sustain):
                self.failed.update(counts.failed)
        self.bits_per_s = 8.0 * sum(each.bytes for each in figures) / duration_s
        self.busiest_thread = max(
            (each.busiest_thread_ns / each.wall_ns for each in figures if each.wall_ns), default=0
        )

    @property
    def starts_late(self) -> bool:
        """Whether a client did not begin on time what was due."""
        return any(each.lateness_p99_ns > LATEST_START_NS for each in self.figures)

    @property
    def is_late(self) -> bool:
        """Whether a client did not begin on time what was due, or had no ports or files left."""
        return self.starts_late or any(self.failed[kind] for kind in CLIENT_FAILURES)

    @property
    def is_limited_by_client(self) -> bool:
        """Whether a client did not offer what was asked, and no more failed than RFC 9411 allows."""
        return self.is_late and self.failures <= FAILURE_RATIO * self.due

    @property
    def failures(self) -> int:
        """How many failed by DUT or server, in the ramp or after it."""
        return sum(count for kind, count in self.failed.items() if kind not in CLIENT_FAILURES)

    @property
    def asked(self) -> int:
        """How many were due, in the ramp or after it."""
        return sum(each.ramp.due + each.sustain.due for each in self.figures)

    @property
    def wrong_answers(self) -> int:
        """How many failed although their connection stood."""
        return sum(self.failed[kind] for kind in ANSWER_FAILURES)

    @property
    def keeps_up(self) -> bool:
        """Whether nothing fails beyond what RFC 9411 allows, and what is due does not pile up."""
        return self.due > 0 and self.failures <= FAILURE_RATIO * self.due and self.in_time >= IN_TIME_RATIO * self.due

    @property
    def words(self) -> str:
        """What went wrong, in words: "12 not connected in time, 3 reset"; "" where nothing did."""
        counted = (f"{count} {_WORDS.get(kind, kind)}" for kind, count in self.failed.most_common() if count)
        late = f"the client is late (its busiest thread: {100 * self.busiest_thread:.0f} %)" if self.starts_late else ""
        behind = not self.is_of_held and self.in_time < IN_TIME_RATIO * self.due and not self.failures
        piled = f"only {self.in_time} of {self.due} were complete in time" if behind else ""
        return "; ".join(part for part in (", ".join(counted), piled, late) if part)

    def times(self) -> Values:
        """Percentiles of each kind of time, over all clients: ``connect_p50_ns`` and so on."""
        values: Values = {}
        for kind in _TIMES:
            known: list[ConnectionTimes | None] = [getattr(each, kind) for each in self.figures]
            values |= _percentiles(kind, known)
        return values


def _percentiles(kind: str, known: Sequence[ConnectionTimes | None]) -> Values:
    complete = [each for each in known if each is not None]
    joined = add_histograms([each.histogram for each in complete]) if complete else None
    maximum_ns = max((each.maximum_ns for each in complete), default=None)
    found = percentiles_ns(joined, maximum_ns=maximum_ns) if joined is not None else {}
    return {
        f"{kind}_p50_ns": found.get("50"),
        f"{kind}_p99_ns": found.get("99"),
        f"{kind}_maximum_ns": maximum_ns,
    }


def bounded(passed: int, failed: int | None, limited_by: LimitedBy, why: str) -> Bounded:
    """The result of a search over whole numbers: what passed, and the least that did not."""
    if failed is None:
        return Bounded(value=passed or None, lower=passed, limited_by=limited_by, reason_null=None if passed else why)
    if passed == 0:
        return Bounded(value=None, upper=failed, limited_by=LimitedBy.DUT, reason_null=f"{failed} already fail: {why}")
    return Bounded(value=passed, lower=passed, upper=failed, limited_by=LimitedBy.DUT)


def columns_of_times(kinds: Iterable[str] = ("connect", "handshake", "first_byte")) -> tuple[Column, ...]:
    """Columns of the times beside a rate; those that no result has are left out."""
    heads = {"connect": "Connect", "handshake": "TLS handshake", "first_byte": "First byte", "last_byte": "Last byte"}
    return tuple(
        Column(
            value=f"{kind}_{which}_ns",
            head=head,
            name=f"{heads[kind]}, {head}",
            form="microseconds",
            group=heads[kind],
            is_optional=True,
        )
        for kind in kinds
        for which, head in (("p50", "median"), ("p99", "99 %"))
    )


def interval_of(column: Column) -> Column:
    """Returns the column of the interval of a searched value."""
    return Column(
        value=column.value, head="Interval", unit=column.unit, form=column.form, aspect="interval", is_minor=True
    )
