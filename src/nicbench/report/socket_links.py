"""What each socket sent to the others over the links between them, by phase of the run, from monitor.parquet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_SENT, _USED, _POSSIBLE = "link_transmit_bytes", "link_used_flits", "link_possible_flits"
METRICS: Final = (_SENT, _USED, _POSSIBLE)


@dataclass(frozen=True, slots=True)
class MeanAndGreatest:
    """The mean over a phase, and the greatest value of one sample."""

    mean: float
    greatest: float


@dataclass(frozen=True, slots=True)
class SocketLinks:
    """All links of one socket during one phase, in the direction away from it.

    ``sent_bytes_per_s`` is data alone. ``used`` is the share, 0 to 1, of the flits that the links could have carried,
    of data and of all else; None where the processor does not tell it.
    """

    phase: str
    socket: str
    sent_bytes_per_s: MeanAndGreatest
    used: MeanAndGreatest | None


def socket_links(
    columns: Mapping[str, Sequence[object]], host: str, phase_of: Callable[[str | None], str]
) -> tuple[SocketLinks, ...]:
    """Returns a row for each phase and socket, in the order of the recording, the time between trials last.

    ``columns`` are those of monitor.parquet. ``phase_of`` returns the phase to which the id of a trial belongs, None
    being the time between trials.
    """
    samples: dict[tuple[str, str], dict[tuple[object, object], _Sample]] = {}
    names = ("host", "session", "at_s", "interval_ns", "trial", "of", "metric", "value")
    for of_host, session, at_s, interval_ns, trial, of, metric, value in zip(
        *(columns[name] for name in names), strict=True
    ):
        if of_host != host or value is None:
            continue
        phase = phase_of(None if trial is None else str(trial))
        at = samples.setdefault((phase, str(of)), {})
        sample = at.setdefault((session, at_s), _Sample(int(str(interval_ns)) / 1e9, {}))
        sample.counts[str(metric)] = float(str(value))
    rows = (_row(phase, socket, list(at.values())) for (phase, socket), at in samples.items())
    between = phase_of(None)
    return tuple(sorted((row for row in rows if row is not None), key=lambda row: row.phase == between))


@dataclass(frozen=True, slots=True)
class _Sample:
    duration_s: float
    counts: dict[str, float]


def _row(phase: str, socket: str, samples: Sequence[_Sample]) -> SocketLinks | None:
    sent = _ratio((each.counts.get(_SENT), each.duration_s) for each in samples)
    used = _ratio((each.counts.get(_USED), each.counts.get(_POSSIBLE)) for each in samples)
    return SocketLinks(phase, socket, sent, used) if sent else None


def _ratio(samples: Iterable[tuple[float | None, float | None]]) -> MeanAndGreatest | None:
    known = [(part, whole) for part, whole in samples if part is not None and whole]
    if not known:
        return None
    mean = sum(part for part, _ in known) / sum(whole for _, whole in known)
    return MeanAndGreatest(mean, max(part / whole for part, whole in known))
