"""What the methods of connections have in common: who asks whom, and a result for each point."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nicbench.core.base import WorkloadChoice
from nicbench.core.connections import ConnectionsSpec
from nicbench.core.result import Result
from nicbench.core.round import JobSpec
from nicbench.methods.base import Misfit, Objection, RoundContext, RoundMethod
from nicbench.methods.connections._options import (
    WORKLOAD,
    ConnectionOptions,
    Way,
    misfits_of,
    objection_to,
    way_of,
)


class ConnectionMethod(RoundMethod):
    """Base of methods of connections. Subclasses say which points there are, and measure one of them."""

    options: ConnectionOptions

    @abstractmethod
    def _list_points(self) -> Iterator[tuple[Any, ...]]:
        """Yields what distinguishes each point: the version of TLS, and what is asked for."""

    @abstractmethod
    def _greatest_spec(self, *point: Any) -> ConnectionsSpec:
        """Returns the most that a client is asked for at a point."""

    @abstractmethod
    async def _measure(self, context: RoundContext, way: Way, *point: Any) -> Result:
        """Measures one point."""

    def points(self) -> int:
        return sum(1 for _ in self._list_points())

    def job_specs(self) -> tuple[tuple[WorkloadChoice, JobSpec], ...]:
        seconds = self.options.duration
        specs = (self._greatest_spec(*point) for point in self._list_points())
        return tuple(
            (WORKLOAD, JobSpec(operation="connections", duration_s=seconds, connections=spec)) for spec in specs
        )

    def find_misfits(self, clients: Mapping[str, Sequence[str]], hosts: Sequence[str]) -> Iterator[Misfit]:
        yield from misfits_of(self.options, clients)

    def objection(self, context: RoundContext) -> Objection | None:
        return objection_to(context, self.options)

    async def run(self, context: RoundContext) -> tuple[Result, ...]:
        way = way_of(context, self.options)
        if way is None:  # ``objection`` has said so
            return ()
        results = []
        for point in self._list_points():
            results.append(await self._measure(context, way, *point))
            context.publish(results[-1])
        return tuple(results)
