"""Settings of CPUs: their clock, their sleep, and what the kernel may run on them during the test."""

from __future__ import annotations

from pydantic import Field, model_validator

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError
from nicbench.core.plan import Values
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
