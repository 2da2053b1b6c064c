"""How busy a machine was during a round, from its monitor's lines as they come."""

from __future__ import annotations

import json
from typing import Any, Final

from nicbench.core.round import MachineCpu
from nicbench.stats.cpu import BUSY, Spent, added, utilisation

_CPU: Final = "cpu_"
_STATES: Final = (*BUSY, "idle", "iowait", "steal")
_OWN: Final = "monitor_cpu_ns"
_SHORTEST_NS: Final = 100_000_000
"""Ten of the kernel's ticks: the share of a shorter sample is too coarse to be a minimum or maximum."""


class CpuWatch:
    """Between ``begin`` and ``end`` every sample counts; the first of them ends where the round begins."""

    def __init__(self) -> None:
        self._series: dict[int, tuple[str, str]] = {}
        self._samples: list[dict[str, Spent]] | None = None
        self._own_ns = 0

    def heard(self, line: str) -> None:
        """A line of the monitor; one that is no event of its kind says nothing here."""
        if self._samples is None and not line.startswith('{"event":"series"'):
            return
        try:
            event = json.loads(line)
        except ValueError:
            return
        if event.get("event") == "series":
            self._series.update({each["series"]: (each["metric"], each["of"]) for each in event.get("series", ())})
        elif event.get("event") == "sample" and self._samples is not None:
            self._sample(event)

    def begin(self) -> None:
        """Starts to count: the round begins now."""
        self._samples, self._own_ns = [], 0

    def end(self, machine: str) -> MachineCpu:
        """The round is over; unknown where no sample came."""
        samples, self._samples = self._samples or [], None
        if not samples:
            return MachineCpu(machine=machine)
        whole = [added(sample.values()) for sample in samples]
        long = [each for each in whole if each.total_ns >= _SHORTEST_NS * len(samples[0])] or whole
        mean, extremes = utilisation(whole), utilisation(long)
        cpus = {cpu: added(sample[cpu] for sample in samples if cpu in sample) for cpu in samples[0]}
        busiest = max((share for spent in cpus.values() if (share := spent.share(*BUSY)) is not None), default=None)
        total_ns = added(whole).total_ns
        return MachineCpu(
            machine=machine,
            mean=mean.mean if mean else None,
            minimum=extremes.minimum if extremes else None,
            maximum=extremes.maximum if extremes else None,
            busiest_core=busiest,
            steal=added(whole).share("steal"),
            samples=len(samples),
            cpus=len(samples[0]),
            monitor=self._own_ns / total_ns if total_ns else None,
        )

    def _sample(self, event: dict[str, Any]) -> None:
        spent: dict[str, dict[str, int]] = {}
        for series, value in event.get("values", ()):
            metric, of = self._series.get(series, ("", ""))
            if value is None:
                continue
            state = metric.removeprefix(_CPU).removesuffix("_ns")
            if metric == _OWN:
                self._own_ns += int(value)
            elif metric.startswith(_CPU) and state in _STATES:
                spent.setdefault(of, {})[state] = int(value)
        if spent and self._samples is not None:
            self._samples.append({cpu: Spent(states) for cpu, states in spent.items()})
