"""Cores set aside for measuring: no other task, no timer tick, no RCU callbacks run there.

Source: Documentation/admin-guide/kernel-parameters.txt (isolcpus, nohz_full, rcu_nocbs).
"""

from __future__ import annotations

from nicbench.core.machine import cpu_list, parse_cpu_list
from nicbench.doctor.base import Check, Examination, ok, warning
from nicbench.doctor.checks._files import measuring_cpus
from nicbench.hosts.base import Host

_CPUS = "/sys/devices/system/cpu/"
# With fewer there is no core to set aside: tester, DUT, and two for everything else.
_ENOUGH = 4
_ROLES = 2
"""Tester and DUT, each on a CPU of its own."""


class IsolatedCores(Examination):
    """From ``/sys/devices/system/cpu`` and what this process may use."""

    kind = "isolated_cores"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        async def listed(path: str) -> tuple[int, ...]:
            return parse_listed(await host.read_file(path) or "")

        online, isolated, tickless = [await listed(f"{_CPUS}{name}") for name in ("online", "isolated", "nohz_full")]
        return (judge(online, isolated, tickless, await measuring_cpus(host)),)


def parse_listed(text: str) -> tuple[int, ...]:
    """A list of CPUs; the kernel says `` (null)`` or nothing for none."""
    return parse_cpu_list(text) if text.strip()[:1].isdecimal() else ()


def judge(
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
