"""Settings that every DUT built on DPDK has, and the arguments of its EAL that they become. Pure.

They are those that published results disclose (docs/bench-file.md): memory, devargs, environment, scheduling class.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from nicbench.labs.base import Testbed
from nicbench.model.base import Frozen
from nicbench.model.quantity import Bytes

_Word = Annotated[str, StringConstraints(pattern=r"^\S+$", max_length=1000)]
_Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class Scheduling(Frozen):
    """``scheduling: {policy: fifo, priority: 50}``, the class of sched(7); without it an ordinary process."""

    policy: Literal["other", "batch", "fifo", "rr"] = "other"
    priority: int | None = Field(default=None, ge=1, le=99)

    @model_validator(mode="after")
    def _priority_is_for_real_time(self) -> Self:
        real_time = self.policy in ("fifo", "rr")
        if real_time and self.priority is None:
            raise ValueError(f"the policy {self.policy} needs a `priority`, 1 to 99")
        if not real_time and self.priority is not None:
            raise ValueError(f"the policy {self.policy} has no priority: only fifo and rr have one")
        return self

    def prefix(self) -> tuple[str, ...]:
        """What stands in front of the DUT's command."""
        if self.policy == "other":
            return ()
        return ("chrt", f"--{self.policy}", str(self.priority or 0))


class DpdkOptions(Frozen):
    """``devargs`` are added to each of its ports, ``eal`` to the arguments of the EAL."""

    huge_pages: bool = True
    memory: Bytes = Field(default=512 * 2**20, ge=64 * 2**20)
    devargs: str = Field(default="", pattern=r"^\S*$")
    eal: tuple[_Word, ...] = ()
    environment: dict[_Variable, str] = Field(default_factory=dict)
    scheduling: Scheduling = Scheduling()


def file_prefix(run_id: str) -> str:
    """Of the DUT's EAL: two runs, and the tester beside it, never share files."""
    return f"nicbench_dut_{hashlib.sha256(run_id.encode()).hexdigest()[:12]}"


def eal_arguments(
    options: DpdkOptions, testbed: Testbed, prefix: str, *, main_cpu: int, worker_cpus: tuple[int, ...]
) -> tuple[str, ...]:
    """The main thread (lcore 0) sleeps and answers; the workers are lcores 1, 2, ..."""
    lcores = ",".join(f"{number}@{cpu}" for number, cpu in enumerate((main_cpu, *worker_cpus)))
    return (
        f"--lcores={lcores}",
        "--main-lcore=0",
        "-m",
        str(max(1, options.memory // 2**20)),
        f"--file-prefix={prefix}",
        *common_arguments(options, testbed),
    )


def common_arguments(options: DpdkOptions, testbed: Testbed) -> tuple[str, ...]:
    """What does not depend on cores: no other card is taken, nothing outlives a killed process, its version said."""
    memory = ("--in-memory",) if options.huge_pages else ("--no-huge", "--no-shconf")
    devargs = f",{options.devargs}" if options.devargs else ""
    devices = tuple(
        f"--vdev={port.vdev}{devargs}" if port.address is None else f"--allow={port.address}{devargs}"
        for port in testbed.dut_ports
    )
    cards = any(port.address is not None for port in testbed.dut_ports)
    return ("-v", *(() if cards else ("--no-pci",)), *memory, *devices, *options.eal)
