"""Fifth stage: the tester by itself, at every frame size of the tests, before the first of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nicbench.bench_file.frame_sizes import planned_sizes
from nicbench.bench_file.models import BenchFile
from nicbench.events import Bus, StageStarted
from nicbench.model.frame_size import Size
from nicbench.model.trial import CALIBRATION
from nicbench.model.turn import Turn
from nicbench.trials.ceiling import Ceilings, calibration_s
from nicbench.units import format_duration_s


@dataclass(frozen=True, slots=True)
class Calibration:
    """What will be calibrated; an upper estimate, for a DUT may turn out not to be the sink that its lab lacks."""

    sizes: tuple[Size, ...]
    ceilings: bool
    latencies: bool

    @property
    def estimate_s(self) -> float:
        """Time in seconds."""
        return calibration_s(len(self.sizes), ceilings=self.ceilings, latencies=self.latencies)

    def __str__(self) -> str:
        if not self.ceilings and not self.latencies:
            return "none: nothing can stand in the DUT's place here"
        what = " and ".join(
            name for name, is_measured in (("ceiling", self.ceilings), ("latency", self.latencies)) if is_measured
        )
        sizes = f"{len(self.sizes)} frame size{'' if len(self.sizes) == 1 else 's'}"
        return f"the tester's own {what} at {sizes}, about {format_duration_s(float(round(self.estimate_s, 1)))}"


def planned_calibration(bench: BenchFile) -> Calibration:
    """What ``calibrate`` will do."""
    lab = bench.lab.plugin if bench.lab and bench.measures == "frames" else None
    return Calibration(
        sizes=planned_sizes(bench),
        ceilings=lab is not None and (lab.has_sink or bench.dut.plugin.can_be_sink),
        latencies=lab is not None and lab.has_cable,
    )


def estimate_s(bench: BenchFile) -> float:
    """Upper estimate of one turn, seconds: calibration and tests, without repeats and the making of the testbed."""
    tests_s: float = sum(test.build().estimate_s() for test in bench.tests)
    return planned_calibration(bench).estimate_s + tests_s


def turns_s(bench: BenchFile, turns: Iterable[Turn]) -> float:
    """Upper estimate of so many turns of a bench file, seconds."""
    return sum(estimate_s(bench.of_turn(turn)) for turn in turns)


async def calibrate(bench: BenchFile, ceilings: Ceilings, bus: Bus) -> None:
    """Measures what can be measured; a size that is not known beforehand is calibrated when a test comes to it."""
    plan = planned_calibration(bench)
    if plan.ceilings or plan.latencies:
        bus.publish(StageStarted(stage=CALIBRATION, text="calibrating the tester without a DUT"))
        await ceilings.calibrate(plan.sizes)
