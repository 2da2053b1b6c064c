"""The rules by which samples are judged and repeated: thresholds that make a sample invalid, and limits on repeats.

The report prints them. Thresholds are shares and durations, never zero. Their defaults suit virtual machines that lose
a core to the hypervisor now and then; a bench file may override each.
"""

from __future__ import annotations

from typing import Any, Final

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.plan import ThresholdRow


def _threshold(default: float, unit: str, why: str) -> Any:
    return Field(default=default, gt=0.0, description=why, json_schema_extra={"unit": unit})


class Thresholds(Frozen):
    """The thresholds of a verdict: a trial or round that exceeds one of them is invalid."""

    longest_gap_ms: float = _threshold(
        20.0,
        "ms",
        "longest pause between two iterations of the worker's loop: neither sending nor receiving happened in it",
    )
    total_gap_share: float = _threshold(
        0.05,
        "share of the transmission",
        "sum of the pauses over the gap floor: the offered load came in bursts rather than evenly",
    )
    dut_foreign_cpu_share: float = _threshold(
        0.50,
        "share of the DUT core's time",
        "time that other programs ran on the DUT's core, the interrupts that came meanwhile included",
    )
    dut_steal_share: float = _threshold(
        0.05,
        "share of the DUT core's time",
        "time the hypervisor gave the DUT's core to somebody else",
    )
    dut_waiting_share: float = _threshold(
        0.05,
        "share of the trial's time",
        "time that a DUT in user space was ready to forward and did not run: other programs had its core",
    )
    dut_contended_share: float = _threshold(
        0.04,
        "share of samples of the DUT's core",
        "the DUT's core ran under 80 % of its best speed: another hyperthread, or guest, used the same physical core",
    )
    dut_pause_ms: float = _threshold(
        5.0,
        "ms",
        "longest time that the DUT's core stood still: an interrupt of its own timer came that much late",
    )
    clock_step_ms: float = _threshold(
        1.0,
        "ms",
        "the monotonic clock moved against the time-stamp counter, by so much more than 20 ppm of the transmission, "
        "which both may drift apart: rates and latencies of the trial are in doubt",
    )
    peer_clock_step_ms: float = _threshold(
        0.1,
        "ms",
        "of a tester on two machines: by so much more than comparisons of their clocks allow they were apart from the "
        "line that latencies were taken by: one was set, or its drift was not known",
    )
    unsent_share: float = _threshold(
        0.001,
        "share of the intended frames",
        "the tester fell short of the load it was asked for; what a lossless port refused is not counted here",
    )
    receive_overrun_share: float = _threshold(
        1e-6,
        "share of the intended frames",
        "frames that arrived and that the tester itself dropped: they would be charged to the DUT as lost",
    )

    transmit_refused_share: float = _threshold(
        1e-6,
        "share of the intended frames",
        "frames that the tester's kernel or card took and threw away before the wire: they would be charged to the DUT",
    )
    unlearnt_flow_share: float = _threshold(
        1.0,
        "share of the flows",
        "flows of which no learning frame came back before the trial; by default that is told and spoils no trial",
    )

    tester_cpu_share: float = _threshold(
        0.95,
        "share of the tester's cores' time",
        "of a generator that tells it (TRex): its sending or receiving cores had hardly any time left",
    )
    tester_queue_full_share: float = _threshold(
        0.001,
        "share of the intended frames",
        "of a generator that tells it (TRex): so often a transmit queue had no room, and frames left later than due",
    )
    tester_overtime_share: float = _threshold(
        0.005,
        "share of the asked time",
        "of a generator that tells it (TRex): the transmission took more or less time, so that the load was another "
        "than asked, or its time is not known so exactly",
    )

    start_spread_share: float = _threshold(
        0.10,
        "share of the round's time",
        "of workloads that run together: so much later than the first the last one began",
    )
    machine_steal_share: float = _threshold(
        0.05,
        "share of a machine's CPU time",
        "of a round of workloads: time the hypervisor gave the machine's CPUs to somebody else",
    )
    stranger_cpu_share: float = _threshold(
        0.05,
        "share of a machine's CPU time",
        "of a round of workloads: time that programs used which are not the test's, where CPUs were short: at most two "
        "CPUs, under three quarters of their time idle, or tasks that waited for a CPU",
    )
    stranger_pressure_share: float = _threshold(
        0.01,
        "share of the round's time",
        "of a round of workloads, beside strangers on a machine that is mostly idle: some task was ready and waited "
        "for a CPU (/proc/pressure)",
    )

    pcie_uncorrected_share: float = _threshold(
        1e-6,
        "share of the intended frames",
        "PCIe errors that were not corrected, of an adapter or the port of the bus it hangs on",
    )
    pcie_corrected_share: float = _threshold(
        1e-3,
        "share of the intended frames",
        "PCIe errors that were corrected, which costs time: a slot, riser or card that is not quite fit",
    )
    pcie_link_loss_share: float = _threshold(
        0.01,
        "share of the PCIe bandwidth",
        "an adapter's PCIe link had become slower or narrower after the trial",
    )
    fec_uncorrected_share: float = _threshold(
        1e-6,
        "share of the intended frames",
        "blocks that forward error correction could not correct: a cable or module lost frames, and no DUT",
    )
    symbol_error_share: float = _threshold(
        1e-6,
        "share of the intended frames",
        "symbol and checksum errors on a link: a cable or module corrupted frames, and no DUT",
    )
    throttled_share: float = _threshold(
        0.001,
        "share of the transmission",
        "time in which processors were slowed down by heat, the sum of all cores",
    )
    temperature_share: float = _threshold(
        1.0,
        "share of the part's own limit",
        "a module, adapter or processor was hotter than it says it may be",
    )

    def rows(self) -> tuple[ThresholdRow, ...]:
        """Returns the rows of the table of thresholds, in order."""
        rows = []
        for name, field in type(self).model_fields.items():
            extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
            rows.append(
                ThresholdRow(
                    name=name,
                    value=getattr(self, name),
                    default=field.get_default(),
                    unit=str(extra["unit"]),
                    why=field.description or "",
                )
            )
        return tuple(rows)


OF_ROUNDS: Final = frozenset(
    {"start_spread_share", "machine_steal_share", "stranger_cpu_share", "stranger_pressure_share"}
)
"""The thresholds that rounds of workloads are judged by."""


class RepeatPolicy(Frozen):
    """How much is spent on repeats of invalid samples, and when two shortfalls of a tester count as the same."""

    maximum_repeats: int = Field(default=3, ge=0)
    """The maximum number of repeats of one sample."""
    budget_share: float = Field(default=0.30, ge=0.0, le=1.0)
    """The maximum share of a test's time that is spent on repeats of all its samples."""
    ceiling_agreement: float = Field(default=0.03, gt=0.0, lt=1.0)


REPEATS_OF_TRIALS: Final = RepeatPolicy()
REPEATS_OF_ROUNDS: Final = RepeatPolicy(maximum_repeats=2)
