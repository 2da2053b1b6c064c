"""Examines the CPUs that measure, and memory: clock, sleep, isolation, neighbours, hypervisor, huge pages, limits."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress

from nicbench.core.errors import HostError, NicbenchError
from nicbench.core.frozen import frozen
from nicbench.core.judging import Thresholds
from nicbench.core.machine import cpu_list, parse_cpu_list
from nicbench.doctor.base import Check, Examination, measuring_cpus, ok, values, warning
from nicbench.engine.binaries import find_binary
from nicbench.hosts.base import Host
from nicbench.system.hypervisor import is_virtual_machine
from nicbench.testbed.cores import CoreMap, make_core_map
from nicbench.tuning.preparation import HugePages, huge_pages_of_meminfo


class Cores(Examination):
    """Cores and their roles: which would send and receive, which would forward, which are left for everything else.

    From the CPUs that this process may use, and which of them are hyperthreads of one physical core.
    """

    kind = "cores"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        return (judge_cores(await make_core_map(host)),)


def judge_cores(cores: CoreMap) -> Check:
    """The map that a lab on this machine would use."""
    name = "cores"
    roles = f"tester on CPU {cores.worker}, DUT on {cpu_list(cores.dut)}, everything else on "
    if cores.shared:
        return warning(name, f"one CPU only: {roles}the same; runs are labelled `shared cores`")
    rest = cpu_list(cores.housekeeping) if cores.housekeeping else "both: the controller sleeps during a trial"
    if halved := cores.halved_cores([] if cores.worker is None else [cores.worker], cores.dut):
        text = f"{roles}{rest}; CPUs {cpu_list(halved[0])} are hyperthreads of one physical core"
        return warning(name, f"{text}, so tester and DUT slow each other down; runs are labelled `shared cores`")
    return ok(name, f"{roles}{rest}")


_CPUS = "/sys/devices/system/cpu/"
# With fewer there is no core to set aside: tester, DUT, and two for everything else.
_ENOUGH = 4
_ROLES = 2
"""Tester and DUT, each on a CPU of its own."""


class IsolatedCores(Examination):
    """Cores set aside for measuring: no other task, no timer tick, no RCU callbacks run there.

    Source: Documentation/admin-guide/kernel-parameters.txt (isolcpus, nohz_full, rcu_nocbs).

    From ``/sys/devices/system/cpu`` and what this process may use.
    """

    kind = "isolated_cores"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        async def listed(path: str) -> tuple[int, ...]:
            return parse_listed(await host.read_file(path) or "")

        online, isolated, tickless = [await listed(f"{_CPUS}{name}") for name in ("online", "isolated", "nohz_full")]
        return (judge_isolated_cores(online, isolated, tickless, await measuring_cpus(host)),)


def parse_listed(text: str) -> tuple[int, ...]:
    """A list of CPUs; the kernel says `` (null)`` or nothing for none."""
    return parse_cpu_list(text) if text.strip()[:1].isdecimal() else ()


def judge_isolated_cores(
    online: tuple[int, ...], isolated: tuple[int, ...], tickless: tuple[int, ...], used: tuple[int, ...]
) -> Check:
    """``used``, the CPUs of tester and DUT, should all be isolated, and this process must be let onto them.

    Everything else that nicbench does belongs on the other CPUs.
    """
    name = "isolated cores"
    if not isolated:
        if len(online) < _ENOUGH:
            return ok(
                name, f"none: of {len(online)} CPUs none can be spared, so expect other tasks and ticks as pauses"
            )
        wanted = cpu_list(online[-2:])
        text = f"none: other tasks and ticks interrupt the tester and the DUT; CPUs {wanted} could be set aside"
        return warning(name, text, _boot_with(wanted))
    where = f"CPUs {cpu_list(isolated)} are isolated"
    if exposed := set(used) - set(isolated):
        # The kernel lets new processes onto the other CPUs only; those that are first in the list do the measuring.
        text = f"{where}, but nicbench would measure on {cpu_list(exposed)}, where other tasks run"
        if len(isolated) >= _ROLES:
            return warning(name, text, f"taskset --cpu-list {cpu_list(isolated)} nicbench run BENCH.yaml")
        text += "; tester and DUT need a CPU each"
        if len(online) < _ENOUGH:
            return warning(name, f"{text}, and of {len(online)} no more can be spared")
        others = [cpu for cpu in online if cpu not in isolated]
        return warning(name, text, _boot_with(cpu_list((*isolated, *others[len(isolated) - _ROLES :]))))
    if not set(isolated) <= set(tickless):
        text = f"{where}, but the timer ticks on them: pauses of some µs, up to 1000 a second"
        return warning(name, text, _boot_with(cpu_list(isolated)))
    return ok(name, f"{where}, without ticks, and nicbench measures on {cpu_list(used)}")


def _boot_with(cpus: str) -> str:
    words = f"isolcpus={cpus} nohz_full={cpus} rcu_nocbs={cpus}"
    setting = f'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {words}"'
    return f"echo '{setting}' > /etc/default/grub.d/nicbench.cfg && update-grub && reboot"


_GOVERNORS = f"{_CPUS}cpufreq/policy*/scaling_governor"
_NO_TURBO, _BOOST = f"{_CPUS}intel_pstate/no_turbo", f"{_CPUS}cpufreq/boost"


class CoreClock(Examination):
    """The core clock: who sets it. One that follows the load makes a device slow at low loads and fast at high ones.

    Source: Documentation/admin-guide/pm/cpufreq.rst and intel_pstate.rst.

    From ``/sys/devices/system/cpu``: governor and turbo.
    """

    kind = "core_clock"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        found = await values(host, _GOVERNORS, _NO_TURBO, _BOOST)
        return (judge_governor(found), judge_turbo(found))


def judge_governor(found: Mapping[str, str]) -> Check:
    """``performance`` is right; every other one lowers the clock when there is little to do."""
    name = "core clock"
    governors = sorted({value for path, value in found.items() if path.endswith("/scaling_governor")})
    if not governors:
        return ok(name, "not set by this kernel (a virtual machine's host sets it, and may change it during a trial)")
    if governors == ["performance"]:
        return ok(name, "governor performance")
    text = (
        f"governor {', '.join(governors)}: cores slow down at low loads, so latencies grow and differ from run to run"
    )
    # The path of every CPU is a link to its policy's.
    return warning(name, text, f"echo performance | tee {_CPUS}cpu*/cpufreq/scaling_governor")


def judge_turbo(found: Mapping[str, str]) -> Check:
    """A clock above the nominal one is not guaranteed: heat and busy neighbours end it."""
    name = "turbo"
    switch = next((path for path in (_NO_TURBO, _BOOST) if path in found), None)
    if switch is None:
        return ok(name, "no switch for it here")
    off = "1" if switch == _NO_TURBO else "0"
    if found[switch] == off:
        return ok(name, "off: the clock does not depend on heat or neighbours")
    text = "on: a warm or busy machine is slower than a cool one, so rates of two runs may differ by that"
    return warning(name, text, f"echo {off} > {switch}")


_COUNTERS = {"tsc": "the TSC", "arch_sys_counter": "the processor's counter"}
"""Those that the engine reads, as the kernel names them: of x86-64, and of arm64."""
_FOLDER = "/sys/devices/system/clocksource/clocksource0/"


class Clock(Examination):
    """The clock: the engine times frames with the processor's own counter, which the kernel must trust.

    The kernel's clock source.
    """

    kind = "clock_source"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        current = (await host.read_file(f"{_FOLDER}current_clocksource") or "").strip()
        available = (await host.read_file(f"{_FOLDER}available_clocksource") or "").split()
        return (judge_clock(current, available),)


def judge_clock(current: str, available: list[str]) -> Check:
    """The processor's counter is right; where the kernel has put it aside, latencies may be wrong."""
    name = "clock source"
    if current in _COUNTERS:
        return ok(name, current)
    if not current:
        return warning(name, "the kernel does not say which it uses: latencies may be wrong")
    counter = next((counter for counter in _COUNTERS if counter in available), None)
    text = f"the kernel uses {current} instead of {_COUNTERS.get(counter or 'tsc')}: latencies may be wrong"
    if counter is not None:
        return warning(name, text, f"echo {counter} > {_FOLDER}current_clocksource")
    return warning(name, f"{text}; it does not trust the TSC of this machine")


_FILES = tuple(f"{_CPUS}cpu*/cpuidle/state*/{name}" for name in ("name", "latency", "disable"))
_PATH = re.compile(r"/cpu(\d{1,5})/cpuidle/state(\d{1,2})/(name|latency|disable)$")
# A frame waits so long beside some 10 us in a kernel's forwarding; C1 of today's processors is left in 1 to 2 us.
_TOLERATED_US = 10


class IdleStates(Examination):
    """C-states: how long a core takes to wake up, which a frame that meets it asleep waits for.

    Source: Documentation/admin-guide/pm/cpuidle.rst.

    From ``cpuidle`` of every CPU.
    """

    kind = "idle_states"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        return (judge_idle_states(await values(host, *_FILES)),)


def judge_idle_states(found: Mapping[str, str]) -> Check:
    """States that take longer than 10 us to leave should be disabled while latency is measured."""
    name = "idle states"
    states: dict[tuple[int, int], dict[str, str]] = {}
    for path, value in found.items():
        if place := _PATH.search(path):
            states.setdefault((int(place[1]), int(place[2])), {})[place[3]] = value
    if not states:
        return ok(
            name,
            "not chosen by this kernel: a virtual machine's host lets its cores sleep as it likes, and may wake them "
            "up beside a neighbour. A guest of KVM can keep them awake: modprobe cpuidle-haltpoll force=1",
        )
    deep = {
        number: (state.get("name", f"state{number}"), int(state["latency"]))
        for (_, number), state in sorted(states.items())
        if state.get("disable") == "0"
        and state.get("latency", "").isdecimal()
        and int(state["latency"]) > _TOLERATED_US
    }
    if not deep:
        return ok(name, f"none that takes more than {_TOLERATED_US} µs to leave is enabled")
    listed = ", ".join(f"{state} ({latency_us} µs)" for state, latency_us in deep.values())
    files = " ".join(f"{_CPUS}cpu*/cpuidle/state{number}/disable" for number in sorted(deep))
    text = f"cores may sleep in {listed} and take so long to wake: latencies at low loads are longer by that"
    return warning(name, text, f"echo 1 | tee {files}")


_NAME, _MEND = "noisy neighbours", "make install"
_WARM_UP_S, _LOOK_S, _ANSWER_S = 0.3, 1.0, 5.0
"""A core that was idle is slow at first, which is not the effect of a neighbour."""
_STEAL = 7  # proc(5), /proc/stat
_MAY_TAKE = 0.01


@frozen
class Looks:
    """``slow`` of the ``looks`` at a CPU found its physical core in use by somebody else too."""

    cpu: int
    looks: int
    slow: int


class Neighbours(Examination):
    """Noisy neighbours: who else uses the physical cores that a lab would measure on, looked at for a second.

    A neighbour on the other hyperthread, or another virtual machine, is seen by its effect: the core runs slower.

    From ``nicbench-packets measure sharing`` and the stolen time in ``/proc/stat``.
    """

    kind = "neighbours"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        cpus = await measuring_cpus(host)
        try:
            before = await host.read_file("/proc/stat") or ""
            looks = await look_at(host, cpus, _LOOK_S)
        except NicbenchError as error:
            return (warning(_NAME, f"cannot be looked for: {error.message}", _MEND),)
        return (judge_neighbours(looks, stolen_ratio(before, await host.read_file("/proc/stat") or "", cpus)),)


async def look_at(host: Host, cpus: Sequence[int], duration_s: float) -> tuple[Looks, ...]:
    """What looks at these CPUs found for so long; HostError where the host cannot look."""
    process = await host.start((str(find_binary("nicbench-packets")), "measure", "sharing", *map(str, cpus)))
    try:
        await process.write_line("")
        await process.read_line(_ANSWER_S)
        await asyncio.sleep(_WARM_UP_S)
        await process.write_line("")
        await process.read_line(_ANSWER_S)
        await asyncio.sleep(duration_s)
        await process.write_line("")
        return parse_looks(await process.read_line(_ANSWER_S) or "")
    finally:
        with suppress(HostError):
            await process.close_stdin()
            await process.wait(_ANSWER_S)


def parse_looks(line: str) -> tuple[Looks, ...]:
    """Parses one answer of ``measure sharing``; HostError if it is not understood."""
    try:
        return tuple(Looks(int(cpu["cpu"]), int(cpu["looks"]), int(cpu["slow"])) for cpu in json.loads(line)["cpus"])
    except (ValueError, LookupError, TypeError) as error:
        raise HostError(f"`measure sharing` answers {line[:80]!r}", next_step=_MEND) from error


def stolen_ratio(before: str, after: str, cpus: Sequence[int]) -> float | None:
    """Share of the time between two texts of ``/proc/stat`` that a hypervisor took from these CPUs; None unknown."""
    first, last = _times(before, cpus), _times(after, cpus)
    if first is None or last is None or sum(last) <= sum(first):
        return None
    return (last[_STEAL] - first[_STEAL]) / (sum(last) - sum(first))


def _times(stat: str, cpus: Sequence[int]) -> list[int] | None:
    names = {f"cpu{cpu}" for cpu in cpus}
    rows = [row.split()[1 : _STEAL + 2] for row in stat.splitlines() if row.split()[:1] and row.split()[0] in names]
    if not rows or any(len(row) <= _STEAL or not all(value.isdecimal() for value in row) for row in rows):
        return None
    return [sum(int(row[column]) for row in rows) for column in range(_STEAL + 1)]


def judge_neighbours(looks: Sequence[Looks], steal: float | None) -> Check:
    """By the threshold that spoils a trial, ``dut_contended_share``."""
    limit = Thresholds().dut_contended_share
    shares = {look.cpu: look.slow / look.looks for look in looks if look.looks}
    if not shares:
        return warning(_NAME, "the measuring cores could not be sampled: other programs keep them busy")
    seen = ", ".join(
        f"{100 * shares[look.cpu]:.0f} % of {look.looks} samples of CPU {look.cpu}" for look in looks if look.looks
    )
    text = f"within a second, {seen} found another tenant on the physical core"
    if steal is not None and steal > _MAY_TAKE:
        text += f", and the hypervisor took {100 * steal:.1f} % of their time"
    elif max(shares.values()) <= limit:
        return ok(_NAME, text)
    return warning(
        _NAME,
        f"{text}. Above {100 * limit:.0f} % a trial is `disturbed`: stop other programs, pin other guests away "
        "from these cores, or use a dedicated machine",
    )


# Above this share, trials on this machine are often disturbed.
_WORTH_A_WARNING = 0.01


class Hypervisor(Examination):
    """The hypervisor: how much of the CPUs' time it has taken away since the start of this machine.

    From ``/proc/stat``, and what the processor or systemd says.
    """

    kind = "hypervisor"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        virtual = await is_virtual_machine(host)
        return (judge_hypervisor(virtual, steal_share(await host.read_file("/proc/stat") or "")),)


def steal_share(stat: str) -> float | None:
    """Share of stolen time in all of the CPUs' time since the start, None where the kernel does not count it."""
    total = next((line.split()[1:] for line in stat.splitlines() if line.startswith("cpu ")), [])
    # The guest columns after steal are already in user and nice.
    times = [int(value) for value in total[: _STEAL + 1]]
    if len(times) <= _STEAL or not any(times):
        return None
    return times[_STEAL] / sum(times)


def judge_hypervisor(virtual: bool | None, steal: float | None) -> Check:
    """A virtual machine measures its host as well."""
    name = "hypervisor"
    if virtual is False:
        return ok(name, "none: this is no virtual machine")
    stolen = "an unknown share" if steal is None else f"{100 * steal:.2f} %"
    what = "this is a virtual machine" if virtual else "whether this is a virtual machine is not known here"
    text = f"{what}; {stolen} of its CPU time has been taken away since it started"
    if steal is not None and steal > _WORTH_A_WARNING:
        return warning(name, f"{text}: expect disturbed trials")
    return ok(name, text)


class HugePagesCheck(Examination):
    """Huge pages: a run that wants them raises their number itself, where the kernel has any.

    From ``/proc/meminfo``.
    """

    kind = "huge_pages"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        return (judge_huge_pages(huge_pages_of_meminfo(await host.read_file("/proc/meminfo") or "")),)


def judge_huge_pages(pages: HugePages | None) -> Check:
    """They are never required: the engine also runs without."""
    if pages is None:
        return warning("huge pages", "this kernel has none; use `huge_pages: false`")
    return ok(
        "huge pages",
        f"{pages.available} of {pages.total} free, {pages.page_kib} KiB each; a run that wants more makes them",
    )


_LOCKED = re.compile(r"^Max locked memory\s+(\S+)", re.MULTILINE)
_CAPABILITIES = re.compile(r"^CapEff:\s*([0-9a-f]+)", re.MULTILINE)
_GROUP = re.compile(r"^0::(/.*)$", re.MULTILINE)
_IPC_LOCK = 1 << 14  # CAP_IPC_LOCK, linux/capability.h
_NEEDED_BYTES = 1 << 30  # the engine's default memory and the controller, with room


class LockedMemory(Examination):
    """Limits: memory that may be locked (the buffers of AF_XDP are), and the memory of this control group.

    From ``/proc/self`` and the control group.
    """

    kind = "locked_memory"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        limits = await host.read_file("/proc/self/limits") or ""
        status = await host.read_file("/proc/self/status") or ""
        group = _GROUP.search(await host.read_file("/proc/self/cgroup") or "")
        maximum = await host.read_file(f"/sys/fs/cgroup{group[1].rstrip('/')}/memory.max") if group else None
        return (judge_locked_memory(locked_bytes(limits), may_lock(status)), judge_group(maximum))


def locked_bytes(limits: str) -> int | None:
    """The soft limit of locked memory, None where it is unlimited or not known."""
    found = _LOCKED.search(limits)
    return int(found[1]) if found and found[1].isdigit() else None


def may_lock(status: str) -> bool:
    """Whether the process may lock memory beyond the limit."""
    found = _CAPABILITIES.search(status)
    return bool(found and int(found[1], 16) & _IPC_LOCK)


def judge_locked_memory(limit_bytes: int | None, exempt: bool) -> Check:
    """Root is exempt, ordinarily."""
    name = "locked memory"
    if limit_bytes is None:
        return ok(name, "unlimited")
    if exempt:
        return ok(name, f"limit {limit_bytes >> 20} MiB, which does not apply to this process (CAP_IPC_LOCK)")
    return warning(name, f"at most {limit_bytes >> 20} MiB: AF_XDP's buffers may not fit", "ulimit -l unlimited")


def judge_group(maximum: str | None) -> Check:
    """``memory.max`` of the control group, in bytes or `max`."""
    name = "memory of the control group"
    if maximum is None or maximum.strip() == "max":
        return ok(name, "no limit is known")
    limit = int(maximum)
    if limit < _NEEDED_BYTES:
        return warning(name, f"at most {limit >> 20} MiB; a run needs {_NEEDED_BYTES >> 20} MiB")
    return ok(name, f"at most {limit >> 20} MiB")
