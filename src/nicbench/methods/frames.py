"""Frames: how many editors can one server feed? (docs/studies.md).

The study of a published report (2022), which compared one 100 Gb/s port with a bond of four of 25 Gb/s. Steps, for each
direction and each number of instances: what was written before is removed, the commands of the bench file are run, the
servers of the DUT's shares restarted, the caches dropped; a pause; then so many processes at once, each of which writes
or reads frames of film in a directory of its own, one file a frame, held to a number of frames a second. The frames
that are read are written beforehand. Verified: a read compares the stamp of every 4096 bytes; a frame that is not
complete when it is due is a dropped one, and counts from when it was due; a server that ends during a round makes it
invalid. Deviation from the published study: its limiter let through 5 % more than was asked, this one exactly what was
asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from nicbench.core.base import WorkloadChoice
from nicbench.core.result import Result
from nicbench.core.round import FrameFigures, JobSpec
from nicbench.core.table import ImportTable, ResultTable
from nicbench.methods._failures import (
    bond_failure_misfits,
    failure_misfits,
    failure_objection,
    port_of_job,
    silence_of_job,
)
from nicbench.methods._frame_jobs import WORKLOAD, can_restart, job_spec_of, preparation_of, round_request, round_s
from nicbench.methods._frame_options import FramesOptions, Seat, Task, assign_seats
from nicbench.methods._frame_results import (
    SCOPE,
    believed_figures,
    explain_beyond_links,
    instance_values,
    parameters_of,
    run_values,
    sums_of_runs,
    target_of,
)
from nicbench.methods._frame_tables import IMPORTS, TABLES, frames_of_import
from nicbench.methods._round_figures import PlayedRounds
from nicbench.methods.base import Misfit, Objection, RoundContext, RoundMethod, Values
from nicbench.stats.frames import RUNS


class Frames(RoundMethod):
    """Frames of film that instances read or write at once, each in a directory of its own, against a target rate."""

    kind: ClassVar[str] = "frames"
    question: ClassVar[str] = "How many editors or recorders does {subject} serve at once, each at its frame rate?"
    runs_servers = False
    Options = FramesOptions
    options: FramesOptions

    def points(self) -> int:
        return len(self.options.direction) * len(self.options.instances)

    def estimate_s(self) -> float:
        """Returns an estimate without the time to write the frames that are read, which is not known in advance."""
        every = sum(round_s(self.options, instances) for instances in self.options.instances)
        return len(self.options.direction) * every

    def job_specs(self) -> tuple[tuple[WorkloadChoice, JobSpec], ...]:
        choice = WorkloadChoice(kind=WORKLOAD)
        return tuple((choice, job_spec_of(self.options, direction, "/", 1)) for direction in self.options.direction)

    def find_misfits(self, clients: Mapping[str, Sequence[str]], hosts: Sequence[str]) -> Iterator[Misfit]:
        """Yields misfits for clients and hosts that do not exist."""
        names = [name for of_port in clients.values() for name in of_port]
        for place in self.options.directories or ():
            if place.client is not None and place.client not in names:
                step = f"write one of {', '.join(f'`{name}`' for name in names)}"
                message = f"there is no port of a client called `{place.client}`"
                yield Misfit(option=("directories",), message=message, next_step=step)
        for command in self.options.before_each:
            if command.host not in hosts:
                step = f"write one of {', '.join(f'`{name}`' for name in hosts)}"
                message = f"there is no host `{command.host}`"
                yield Misfit(option=("before_each",), message=message, next_step=step)
        yield from failure_misfits(self.options.failure, clients)

    def find_bond_misfits(self, links: Mapping[str, int | None]) -> Iterator[Misfit]:
        yield from bond_failure_misfits(self.options.failure, links)

    def share_count(self) -> int:
        return 0 if self.options.directories is not None else max(self.options.instances)

    def objection(self, context: RoundContext) -> Objection | None:
        if self.options.restart_servers and not can_restart(context):
            kinds = ", ".join(sorted({mount.kind for mount in context.mounts}))
            why = f"mounts of {kinds} do not survive it" if kinds else "the DUT serves none of them"
            return Objection(
                message=f"the servers of the shares cannot be restarted before each round: {why}",
                next_step="leave `restart_servers` out, or write what restarts them into `before_each`",
            )
        wanted, there = self.share_count(), len(context.mounts)
        if wanted <= there:
            return failure_objection(self.options.failure, context)
        if not there:
            return Objection(
                message="nobody says where frames are to be: the DUT serves no shares, and `directories` is not given",
                next_step="write `directories: /mnt/d{instance}`, or `dut: {kind: file-server, shares: N}`",
            )
        return Objection(
            message=f"{wanted} instances are asked for, and the DUT serves {there} shares",
            next_step=f"write `shares: {wanted}` under `dut`, or fewer `instances`",
        )

    async def run(self, context: RoundContext) -> tuple[Result, ...]:
        everyone = assign_seats(self.options.directories, max(self.options.instances), context)
        context.prepare(preparation_of(self.options, self.name, everyone, context))
        results: list[Result] = []
        for direction in self.options.direction:
            for instances in self.options.instances:
                for result in await self._play(context, direction, everyone[:instances]):
                    context.publish(result)
                    results.append(result)
        return tuple(results)

    async def _play(self, context: RoundContext, direction: Task, working: Sequence[Seat]) -> tuple[Result, ...]:
        point = {"part": "runs", "direction": direction, "instances": len(working)}
        played = PlayedRounds()
        asked = round_request(self.options, self.name, direction, working, context)
        played.add(await context.play({"direction": direction, "instances": len(working)}, asked))
        (one,) = played.rounds
        values, run = run_values(one, working, self.options, context)
        figures = believed_figures(one, working, context)
        beyond = explain_beyond_links(one, working, context)
        whole = self._result(played, point, values, beyond, is_known=run.sum_frames_per_s is not None)
        return (whole, *self._instances(played, figures, beyond, direction, working))

    def _instances(
        self,
        played: PlayedRounds,
        every: Sequence[FrameFigures | None],
        beyond: Sequence[str],
        direction: Task,
        working: Sequence[Seat],
    ) -> Iterator[Result]:
        target, (one,) = target_of(self.options), played.rounds
        for job, (seat, figures) in enumerate(zip(working, every, strict=True), 1):
            where = {"file_system": one.outcomes[job - 1].file_system}
            yield self._result(
                played,
                parameters_of(seat, direction, len(working)),
                {**instance_values(figures, target), **where, **port_of_job(one, job), **silence_of_job(one, job)},
                beyond if figures is None else (),
                is_known=figures is not None,
            )

    def _result(
        self, played: PlayedRounds, point: dict[str, Any], values: Values, beyond: Sequence[str], *, is_known: bool
    ) -> Result:
        place = (
            self.name,
            point["direction"],
            point["instances"],
            *([point["instance"]] if "instance" in point else []),
        )
        return Result(
            id="/".join(map(str, place)),
            method=self.kind,
            scope=f"instance {point['instance']}" if "instance" in point else SCOPE,
            parameters=point,
            values=values,
            verdict=played.verdict(not is_known),
            disturbances=(*played.disturbances, *beyond),
            trials=played.round_ids,
        )

    @classmethod
    def main_values(cls, result: Result) -> tuple[str, ...]:
        """Returns the values that runs are repeated for: those of all instances together."""
        return ("sum_frames_per_s",) if result.parameters.get("part") == "runs" else ()

    @classmethod
    def add_run_results(cls, results: tuple[Result, ...]) -> tuple[Result, ...]:
        """Adds the sum of a run where a source prints only the rates of instances."""
        return (*(result for result in results if result.parameters.get("part") != RUNS), *sums_of_runs(results))

    @classmethod
    def describe_circumstances(cls, parameters: Mapping[str, Any]) -> str:
        """Describes the circumstances, such as "reading, with 10 instances"."""
        doing = {"read": "reading", "write": "writing"}.get(str(parameters.get("direction")))
        instances = parameters.get("instances")
        many = None if instances is None else f"with {instances} instance{'' if instances == 1 else 's'}"
        one = f"instance {parameters['instance']}" if "instance" in parameters else None
        return ", ".join(text for text in (doing, many, one) if text)

    @classmethod
    def tables(cls) -> tuple[ResultTable, ...]:
        return TABLES

    @classmethod
    def imports(cls) -> ImportTable:
        return IMPORTS

    @classmethod
    def from_import(cls, parameters: dict[str, Any], values: Values) -> tuple[dict[str, Any], Values]:
        return frames_of_import(parameters, values)
