"""A run as it could have been, built from the frozen models alone: a kernel forwarder behind a 10 Gb/s veth.

Tests get it by the fixture ``synthetic_run``.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from pathlib import Path

from hdrh.histogram import HdrHistogram

from nicbench.core.events import CeilingFound, Note, ResultReady, RunFinished, RunStarted, TestStarted, TrialFinished
from nicbench.core.judging import Finding, Reason, Verdict
from nicbench.core.plan import Plan
from nicbench.core.reading import Counts
from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict, Summary
from nicbench.core.trial import (
    CpuTime,
    Health,
    Latency,
    LossPlace,
    PortReading,
    Purpose,
    Reading,
    StreamReading,
    Trial,
    TrialRequest,
)
from nicbench.methods._tail import BINS_S, tail_values
from nicbench.store import RunFolder

from ._synthetic_plan import LINK_BITS_PER_S, SIZES, synthetic_plan

BENCH = """\
nicbench: 1
title: Linux IP forwarding between two veth ports
seed: 1
lab: {kind: veth}
dut: {kind: kernel-forward}
tests:
  - name: throughput
    method: throughput
    frame_bytes: [64, 128, 256, 512, 1024, 1280, 1518]
    search: {kind: mlr, goals: {NDR: 0 %, PDR: 0.5 %}, precision: 1 %, maximum_trials: 8}
    trial: {duration: 1 s, drain: 200 ms, settle: 100 ms}
  - name: latency
    method: latency
    at: throughput
    loads: [100 %, 50 %]
"""


class SyntheticRun:
    """Draws a plausible run from a seed and writes it; ``title`` and ``host_name`` may be hostile."""

    def __init__(self, parent: Path, *, seed: int = 7, title: str | None = None, host_name: str = "bench") -> None:
        self.random = random.Random(seed)
        self.title = title or "Linux IP forwarding between two veth ports"
        self.host_name = host_name
        self.folder = RunFolder.create(parent, BENCH, self.title)
        self.trials: list[Trial] = []
        self.results: list[Result] = []
        self.clock_s = 0.0

    def start(self) -> SyntheticRun:
        """The beginning every run has."""
        self.folder.journal.append(
            RunStarted(
                run_id=self.folder.run_id,
                title=self.title,
                nicbench_version="0.1.0",
                wall_time="2026-01-31T12:00:00+00:00",
                seed=1,
            )
        )
        self.folder.write_json("plan.json", self.plan())
        machine = {
            "host_name": self.host_name,
            "os": "Debian GNU/Linux 12 (bookworm)",
            "kernel_release": "6.1.0-18-amd64",
            "cpu_model": "AMD EPYC 7B13",
            "cpus": 2,
            "memory_bytes": 8 * 2**30,
            "virtual_machine": "kvm",
            "tsc_hz": 2.596e9,
            "bios_version": None,
            "kernel_command_line": "BOOT_IMAGE=/vmlinuz root=/dev/vda1 quiet",
        }
        self.folder.write_json("inventory.json", {"tester": machine, "dut": machine})
        return self

    def plan(self) -> Plan:
        return synthetic_plan(self.folder.run_id, self.title)

    def measure(
        self, sizes: tuple[int, ...] = SIZES, *, latency: bool = True, disturbed_size: int | None = None
    ) -> None:
        """Ceilings, searches and latency trials of the sizes."""
        for size in sizes:
            ceiling = 0.95e6 - size * 230
            for flood in range(3):
                self.trial("calibration", size, None, Purpose.CEILING, flood, ceiling=ceiling, duration_s=0.3)
            self.folder.journal.append(
                CeilingFound(
                    frame_bytes=size,
                    ceiling_frames_per_s=ceiling,
                    calibrated=True,
                    text=f"without a DUT the tester sends {ceiling / 1e6:.3f} Mpps of {size} bytes on a port",
                )
            )
        self.folder.journal.append(TestStarted(test="throughput", method="throughput", points=7, estimate_s=78.4))
        for size in sizes:
            self.search(size, disturbed=size == disturbed_size)
        if latency:
            self.folder.journal.append(TestStarted(test="latency", method="latency", points=14, estimate_s=19.6))
            for result in list(self.results):
                for percent in (100.0, 50.0):
                    self.latency(result, percent)

    def search(self, size: int, *, disturbed: bool = False) -> None:
        """One frame size: eight trials round a knee."""
        knee = (0.412e6 - size * 22) * self.random.uniform(0.97, 1.03)
        pdr = knee * self.random.uniform(1.28, 1.36)
        line_rate = LINK_BITS_PER_S / ((size + 20) * 8)
        names = []
        for number, factor in enumerate((1.9, 1.5, 1.2, 0.98, 1.05, 1.012, 1.33, 0.996)):
            invalid = disturbed and number == 5
            names.append(
                self.trial("throughput", size, knee * factor, Purpose.SEARCH, number, knee=knee, invalid=invalid).id
            )
        rates = {
            "ndr": Bounded(value=knee * 0.996, lower=knee * 0.996, upper=knee * 1.004, limited_by=LimitedBy.DUT, n=8),
            "pdr": Bounded(value=pdr * 0.995, lower=pdr * 0.995, upper=pdr * 1.004, limited_by=LimitedBy.DUT, n=8),
        }
        self.publish(
            "throughput",
            Result(
                id=f"throughput/{size}",
                method="throughput",
                scope="per port",
                parameters={"frame_bytes": size},
                values={
                    **{f"{name}_frames_per_s": rate for name, rate in rates.items()},
                    **{
                        f"{name}_percent_of_line_rate": 100 * (rate.value or 0) / line_rate
                        for name, rate in rates.items()
                    },
                    "line_rate_frames_per_s": line_rate,
                    "ceiling_frames_per_s": 0.95e6 - size * 230,
                    "search_trials": 8,
                    "search_traffic_s": 8.0,
                },
                verdict=ResultVerdict.DISTURBED if disturbed else ResultVerdict.VALID,
                disturbances=("NDR: the least disturbed of 4 trials at 0.41 Mpps was used",) if disturbed else (),
                trials=tuple(names),
            ),
        )

    def latency(self, throughput: Result, percent: float) -> None:
        """Latency of one frame size at a share of its NDR."""
        size = int(throughput.parameters["frame_bytes"])
        ndr = throughput.values["ndr_frames_per_s"]
        assert ndr.value is not None
        load = ndr.value * percent / 100
        trial = self.trial("latency", size, load, Purpose.LATENCY, int(percent), knee=ndr.value * 2)
        reading = trial.reading.latency
        self.publish(
            "latency",
            Result(
                id=f"latency/{size}/{percent:g}",
                method="latency",
                scope="per port",
                parameters={"frame_bytes": size, "load_of": "NDR", "load_percent": percent},
                values={
                    "load_frames_per_s": load,
                    "loss_ratio": 0.0,
                    "latency_minimum_ns": reading.minimum_ns,
                    "latency_mean_ns": reading.mean_ns,
                    **{
                        f"latency_p{name.replace('.', '_')}_ns": value for name, value in reading.percentiles_ns.items()
                    },
                    "latency_maximum_ns": reading.maximum_ns,
                    "latency_uncertainty_ns": reading.uncertainty_ns,
                    "latency_source": reading.source,
                    "latency_received_by": reading.received_by,
                    "latency_negative_frames": reading.negative,
                    "pdv_ns": reading.percentiles_ns["99.9"] - reading.minimum_ns,
                    "tester_latency_p50_ns": 5_400 + size,
                    **tail_values(reading, BINS_S),
                },
                trials=(trial.id,),
            ),
        )

    def trial(
        self,
        test: str,
        size: int,
        load: float | None,
        purpose: Purpose,
        repeat: int,
        *,
        ceiling: float = 1e6,
        knee: float = 1e9,
        invalid: bool = False,
        duration_s: float = 1.0,
    ) -> Trial:
        """One trial; above the knee frames are lost in the backlog."""
        intended = int((load or ceiling) * duration_s)
        share = max(0.0, 1 - knee / load) * 0.8 if load else 0.0
        lost = int(intended * share)
        received = 0 if purpose is Purpose.CEILING else intended - lost
        if purpose is Purpose.CEILING:
            lost = 0
        counts = Counts(
            intended=intended, sent=intended, received=received, lost=lost, foreign=self.random.randrange(2)
        )
        finding = Finding(
            reason=Reason.DISTURBED,
            threshold="longest_gap_ms",
            value=31.4,
            limit=20.0,
            text="the worker was held up for 31.4 ms at once, 20 ms are allowed",
        )
        backlog = max(0, lost - self.random.randrange(3))
        number = len(self.trials) + 1
        self.clock_s += duration_s + 0.4
        trial = Trial(
            id=f"t{number:04}",
            key=f"{test}/{size}/{number}",
            test=test,
            configuration="default",
            parameters={"frame_bytes": size},
            repeat=0,
            request=TrialRequest(
                frame_bytes=size,
                load_frames_per_s=load,
                duration_s=duration_s,
                drain_s=0.2,
                settle_s=0.1,
                purpose=purpose,
            ),
            reading=Reading(
                transmit_ns=int(duration_s * 1e9),
                counts=counts,
                streams=(StreamReading(name="forward", counts=counts, maximum_burst=32),),
                ports=(
                    PortReading(
                        name="t1",
                        foreign=counts.foreign,
                        corrupted_unattributed=0,
                        receive_overrun=0,
                        counters={"xdp_rx_dropped": 0},
                    ),
                ),
                latency=self.histogram(received, size) if purpose is Purpose.LATENCY else None,
                health=Health(
                    longest_gap_ns=31_400_000 if invalid else self.random.randrange(200_000, 6_000_000),
                    total_gap_ns=self.random.randrange(6_000_000, 20_000_000),
                    gap_floor_ns=100_000,
                    gaps=41,
                    iterations=3_200_000,
                    idle_iterations=2_100_000,
                    voluntary_switches=0,
                    involuntary_switches=12,
                    core_clock_hz=(self.random.uniform(2.1e9, 3.9e9), self.random.uniform(2.1e9, 3.9e9)),
                    cpus=(
                        CpuTime(
                            cpu=1, user_ns=0, nice_ns=0, system_ns=10, softirq_ns=9, irq_ns=0, steal_ns=0, idle_ns=1
                        ),
                    ),
                ),
                ledger=(LossPlace(place="DUT", counter="softnet_backlog cpu1", frames=backlog),) if lost else (),
                unexplained=lost - backlog if lost else 0,
            ),
            verdict=Verdict(findings=(finding,) if invalid else ()),
            at_s=self.clock_s,
        )
        self.trials.append(trial)
        self.folder.journal.append(TrialFinished(trial=trial))
        return trial

    def histogram(self, frames: int, size: int) -> Latency:
        """A body in the tens of microseconds and a tail of preemption up to milliseconds."""
        histogram = HdrHistogram(1, 100_000_000_000, 3)
        samples = 20_000
        values = []
        for _ in range(samples):
            value = math.exp(self.random.gauss(math.log(16_000 + size * 6), 0.28))
            if self.random.random() < 0.004:
                value += self.random.paretovariate(1.1) * 60_000
            values.append(min(int(value), 9_000_000) // 16 * 16)  # about as fine as the histogram is
        for value, times in Counter(values).items():
            histogram.record_value(value, times * max(1, frames // samples))
        return Latency(
            source="software",
            resolution_ns=1,
            uncertainty_ns=2_300.0,
            count=histogram.get_total_count(),
            minimum_ns=min(values),
            mean_ns=sum(values) / samples,
            maximum_ns=max(values),
            percentiles_ns={
                name: histogram.get_value_at_percentile(float(name)) for name in ("50", "90", "99", "99.9", "99.99")
            },
            histogram=histogram.encode().decode(),
        )

    def publish(self, test: str, result: Result) -> None:
        self.results.append(result)
        self.folder.journal.append(ResultReady(test=test, result=result))

    def finish(self, verdict: ResultVerdict = ResultVerdict.VALID) -> Path:
        """Ends the run; gives its folder."""
        self.folder.journal.append(Note(text="the lab was removed"))
        self.folder.journal.append(RunFinished(verdict=verdict, measured_s=self.clock_s))
        self.folder.finish(Summary(title=self.title, verdict=verdict, results=tuple(self.results)))
        return self.folder.path
