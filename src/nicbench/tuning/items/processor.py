"""Settings of CPUs and memory: clock, sleep, what the kernel may run during the test, huge pages, NUMA balancing."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError
from nicbench.core.plan import Values
from nicbench.core.quantity import Bytes
from nicbench.tuning.changes import Changes
from nicbench.tuning.items.base import FilesItem, Item, Phase, SwitchItem, SwitchOptions
from nicbench.tuning.setting import CannotSetError, Place

_GOVERNOR = "scaling_governor"
_PREFERENCE = "energy_performance_preference"
_LEAST = "scaling_min_freq"
_MOST = "scaling_max_freq"


class CpuFrequencyOptions(Frozen):
    """``cpu_frequency: performance``; options that are not given keep their values."""

    governor: str | None = Field(default=None, pattern=r"^[a-z_]{1,32}$")
    energy_preference: str | None = Field(default=None, pattern=r"^[a-z0-9_]{1,32}$")
    least_khz: int | None = Field(default=None, ge=1)
    most_khz: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _require_something(self) -> CpuFrequencyOptions:
        if not self.model_dump(exclude_none=True):
            raise ValueError("give a governor, an energy_preference, least_khz or most_khz")
        return self


class CpuFrequency(FilesItem):
    """How the frequency of CPUs is chosen: governor, energy preference, bounds.

    Source: Documentation/admin-guide/pm/cpufreq.rst and intel_pstate.rst.

    Of every frequency policy of the machine. The governor comes first: `performance` fixes the preference.
    """

    kind = "cpu_frequency"
    Options = CpuFrequencyOptions
    options: CpuFrequencyOptions
    alone = "governor"
    folder = "/sys/devices/system/cpu/cpufreq/"
    patterns = tuple(f"policy*/{name}" for name in (_GOVERNOR, _PREFERENCE, _LEAST, _MOST))
    missing = "the CPU frequency of this machine cannot be set (no cpufreq policy; a virtual machine has none)"

    def target_values(self, now: Values) -> Values:
        options = self.options
        asked = {
            _GOVERNOR: options.governor,
            _PREFERENCE: options.energy_preference,
            _MOST: options.most_khz,
            _LEAST: options.least_khz,
        }
        wanted: Values = {}
        for name, value in asked.items():
            keys = [key for key in now if key.endswith(f"/{name}")]
            if value is not None and not keys:
                raise CannotSetError(f"the frequency driver has no {name}")
            wanted |= {key: str(value) for key in keys if value is not None}
        return wanted


class Turbo(FilesItem):
    """Whether CPUs may run above their nominal frequency: off, the frequency depends less on heat and on neighbours.

    Source: Documentation/admin-guide/pm/intel_pstate.rst (no_turbo), cpufreq.rst (boost).

    The switch of intel_pstate, or that of other drivers.
    """

    kind = "turbo"
    Options = SwitchOptions
    options: SwitchOptions
    alone = "on"
    folder = "/sys/devices/system/cpu/"
    patterns = ("intel_pstate/no_turbo", "cpufreq/boost")
    missing = "the frequency driver of this machine has no switch for turbo (a virtual machine has none)"

    def target_values(self, now: Values) -> Values:
        return {key: str(int(self.options.on != key.endswith("no_turbo"))) for key in now}


class IdleStatesOptions(Frozen):
    """``idle_states: 2``: none that takes longer than 2 us to leave."""

    most_exit_latency_us: int = Field(ge=0, le=1_000_000)


class IdleStates(FilesItem):
    """How deep idle CPUs sleep (C-states): those that take longer to leave than the limit are switched off.

    Source: Documentation/admin-guide/pm/cpuidle.rst. The latency is what the driver states, in microseconds.

    Of every CPU of the machine.
    """

    kind = "idle_states"
    Options = IdleStatesOptions
    options: IdleStatesOptions
    alone = "most_exit_latency_us"
    folder = "/sys/devices/system/cpu/"
    patterns = ("cpu[0-9]*/cpuidle/state*/latency", "cpu[0-9]*/cpuidle/state*/disable")
    missing = "this kernel has no idle states to choose from (cpuidle has no driver; a virtual machine has none)"

    def target_values(self, now: Values) -> Values:
        wanted: Values = {}
        for key, latency_us in now.items():
            state, _, name = key.rpartition("/")
            if name == "latency" and f"{state}/disable" in now:
                too_slow = int(str(latency_us)) > self.options.most_exit_latency_us
                wanted[f"{state}/disable"] = str(int(too_slow))
        return wanted


_DEVICE = "/dev/cpu_dma_latency"
_HELD = "held"
_TIMEOUT_S = 10.0
# Eight hexadecimal digits, so that the kernel does not take them for the four bytes of a number. Ends with its stdin.
_HOLD = f'exec 3>{_DEVICE} && printf %s "$1" >&3 && echo {_HELD} && read -r _'


class WakeupLatencyOptions(Frozen):
    """``wakeup_latency: 0``: CPUs do not sleep at all, they poll."""

    us: int = Field(ge=0, le=1_000_000)


class WakeupLatency(Item):
    """The longest time that any CPU may take to wake up, asked of the kernel as long as the test runs.

    Source: Documentation/power/pm_qos_interface.rst: /dev/cpu_dma_latency keeps a request for as long as a process
    holds the file open. So a process of ours holds it; it ends with us, by SIGKILL too, and the request with it. The
    least of all requests holds: where somebody asks for less already, nothing is asked.

    What all requests together come to, in microseconds.
    """

    kind = "wakeup_latency"
    Options = WakeupLatencyOptions
    options: WakeupLatencyOptions
    scope = "machine"
    phase = Phase.MACHINE
    alone = "us"

    async def read(self, place: Place) -> Values:
        done = await place.host.run(("od", "-An", "-td4", "-N4", _DEVICE), check=False)
        if done.status != 0 or not done.stdout.strip():
            reason = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
            raise CannotSetError(f"{_DEVICE} cannot be read: {reason}")
        return {"us": int(done.stdout)}

    def target_values(self, now: Values) -> Values:
        return {"us": min(self.options.us, int(str(now["us"])))}

    async def apply(self, changes: Changes, place: Place, before: Values, asked: Values) -> None:
        holder = await place.host.start(("sh", "-c", _HOLD, "hold", f"{int(str(asked['us'])):08x}"))

        async def end() -> None:
            await holder.close_stdin()
            await holder.wait(_TIMEOUT_S)

        changes.before_undoing(end)
        if await holder.read_line(_TIMEOUT_S) != _HELD:
            raise HostError(f"{_DEVICE} cannot be held: {holder.stderr_tail()}", place=place.host.name)


class RealtimeThrottling(SwitchItem):
    """Whether the kernel takes a CPU away from a real-time program that does not yield (a polling one).

    Source: Documentation/scheduler/sched-rt-group.rst. Off is -1; on is the kernel's own 950 ms of each second.

    kernel.sched_rt_runtime_us.
    """

    kind = "realtime_throttling"
    folder = "/proc/sys/kernel/"
    patterns = ("sched_rt_runtime_us",)
    missing = "this kernel does not throttle real-time programs"
    on = "950000"
    off = "-1"


class TimerMigration(SwitchItem):
    """Whether timers move to CPUs that are awake anyway: off, a measuring CPU gets no timer of another one.

    Source: kernel/time/timer.c, sysctl kernel.timer_migration.

    kernel.timer_migration.
    """

    kind = "timer_migration"
    folder = "/proc/sys/kernel/"
    patterns = ("timer_migration",)
    missing = "this kernel does not move timers"


class Watchdog(SwitchItem):
    """The detectors of hard and soft lockups, which interrupt every CPU regularly.

    Source: Documentation/admin-guide/lockup-watchdogs.rst. Each is set by itself: kernel.watchdog would switch both on.

    kernel.nmi_watchdog and kernel.soft_watchdog.
    """

    kind = "watchdog"
    folder = "/proc/sys/kernel/"
    patterns = (
        "nmi_watchdog",
        "soft_watchdog",
    )
    missing = "this kernel has no lockup detectors"


_KIB = 1024


class HugePagesOptions(Frozen):
    """``huge_pages: 1024``; ``node`` is a NUMA node, and without it the kernel spreads them over all."""

    pages: int = Field(ge=1, le=10_000_000)
    size: Bytes = 2048 * _KIB
    node: int | None = Field(default=None, ge=0, le=1023)


class HugePagesItem(Item):
    """Provides at least a number of huge pages of one size, on the whole machine or on a NUMA node; never reduces them.

    Source: Documentation/admin-guide/mm/hugetlbpage.rst.

    What a tester or a DUT of DPDK needs is raised for it anyway; this is for those that nicbench does not start.
    """

    kind = "huge_pages"
    Options = HugePagesOptions
    options: HugePagesOptions
    scope = "machine"
    phase = Phase.MACHINE
    alone = "pages"

    async def read(self, place: Place) -> Values:
        text = await place.host.read_file(self._path())
        if text is None:
            size = f"{self.options.size // _KIB} KiB"
            of_node = "" if self.options.node is None else f" on a NUMA node {self.options.node}"
            raise CannotSetError(f"this machine has no huge pages of {size}{of_node}")
        return {"pages": int(text)}

    def target_values(self, now: Values) -> Values:
        return {"pages": max(self.options.pages, int(str(now["pages"])))}

    async def write(self, place: Place, values: Values) -> None:
        await place.host.write_file(self._path(), str(values["pages"]))

    def _path(self) -> str:
        node = self.options.node
        folder = "/sys/kernel/mm" if node is None else f"/sys/devices/system/node/node{node}"
        return f"{folder}/hugepages/hugepages-{self.options.size // _KIB}kB/nr_hugepages"


class TransparentHugePagesOptions(Frozen):
    """``transparent_huge_pages: never``; ``defrag`` keeps its value unless it is given."""

    enabled: Literal["always", "madvise", "never"]
    defrag: Literal["always", "defer", "defer+madvise", "madvise", "never"] | None = None


class TransparentHugePages(FilesItem):
    """Whether programs get huge pages without asking, and whether memory is compacted for it, which holds them up.

    Source: Documentation/admin-guide/mm/transhuge.rst.

    For all sizes that follow the common setting.
    """

    kind = "transparent_huge_pages"
    Options = TransparentHugePagesOptions
    options: TransparentHugePagesOptions
    alone = "enabled"
    folder = "/sys/kernel/mm/transparent_hugepage/"
    patterns = ("enabled", "defrag")
    missing = "this kernel has no transparent huge pages"

    def target_values(self, now: Values) -> Values:
        return dict(self.options.model_dump(exclude_none=True))


class PageMerging(SwitchItem):
    """Whether the kernel looks for equal pages of memory and merges them (KSM), which takes CPU time.

    Source: Documentation/admin-guide/mm/ksm.rst. Off leaves merged what was merged.

    /sys/kernel/mm/ksm/run.
    """

    kind = "page_merging"
    folder = "/sys/kernel/mm/ksm/"
    patterns = ("run",)
    missing = "this kernel does not merge pages (CONFIG_KSM)"


class NumaBalancing(SwitchItem):
    """Whether the kernel moves memory and processes between NUMA nodes while they work.

    Source: Documentation/admin-guide/sysctl/kernel.rst, numa_balancing. Its page faults are seen as latency.

    kernel.numa_balancing; 1 is the ordinary kind.
    """

    kind = "numa_balancing"
    folder = "/proc/sys/kernel/"
    patterns = ("numa_balancing",)
    missing = "this kernel has no NUMA balancing"
