"""Over a bond: what an instance had, by how many instances were on its port. So a halved rate is explained."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass

from nicbench.report.editors.study import OneWay
from nicbench.report.editors.words import rate_decimals, rate_text, share_text
from nicbench.stats.frames_runs import RATE, Ran, Tried, number_of


@dataclass(frozen=True, slots=True)
class SharingRow:
    """Instances of all runs that were ``together`` on a port of the bond, so many; rates are in frames/s."""

    configuration: str
    together: int
    instances: int
    least: str
    median: str
    greatest: str
    met: str


def sharing_rows(way: OneWay) -> tuple[SharingRow, ...]:
    """Of the runs in which the port of every instance is known for sure; nothing without a bond."""
    rows = []
    for name in way.configurations:
        by_together: dict[int, list[tuple[float, bool | None]]] = {}
        for of, count in way.columns:
            if of == name:
                for together, rate, met in _shared(way.at[of, count]):
                    by_together.setdefault(together, []).append((rate, met))
        decimals = rate_decimals(rate for each in by_together.values() for rate, _ in each)
        for together, each in sorted(by_together.items()):
            rates = [rate for rate, _ in each]
            judged = [one for _, one in each if one is not None]
            rows.append(
                SharingRow(
                    configuration=name,
                    together=together,
                    instances=len(each),
                    least=rate_text(min(rates), decimals),
                    median=rate_text(statistics.median(rates), decimals),
                    greatest=rate_text(max(rates), decimals),
                    met=share_text(sum(judged) / len(judged) if judged else None),
                )
            )
    return tuple(rows)


def _shared(tried: Tried) -> list[tuple[int, float, bool | None]]:
    """How many were on the port of each instance, itself among them; its rate; whether it met the target."""
    found = []
    for ran in tried.runs:
        ports = _ports(ran)
        on_port = Counter(ports)
        for port, one in zip(ports, ran.instances, strict=False):
            rate = None if one is None else number_of(one, RATE)
            if rate is not None:
                found.append((on_port[port], rate, tried.target.is_met(rate) if tried.target else None))
    return found


def _ports(ran: Ran) -> list[tuple[str, str]]:
    """Of every instance, with whose bond it is of; none where one of them is only predicted, or has several."""
    known = [one.values for one in ran.instances if one is not None]
    ports = [(values.get("bond_end"), values.get("bond_port")) for values in known]
    sure = [(str(end), port) for end, port in ports if isinstance(port, str) and len(port.split()) == 1]
    return sure if len(sure) == len(ran.instances) else []
