"""Prepares a machine for a tester or a DUT: huge pages, CPUs that stay awake, and cards as drivers need them.

Every change is made through ``Changes``, so that it is undone.
"""

from __future__ import annotations

import re
from contextlib import suppress

from nicbench.core.errors import HostError, NotReadyError
from nicbench.core.frozen import frozen
from nicbench.hosts.base import Host
from nicbench.hosts.owner import nice_of_stat, start_ticks_of_stat
from nicbench.system.adapters.ethtool import ALL_FRAMES, StampSetting
from nicbench.tuning.changes import Changes
from nicbench.tuning.items.base import Item
from nicbench.tuning.items.queues import ChannelOptions, Channels, OffloadOptions, Offloads
from nicbench.tuning.items.steering import ReceiveHashing, ReceiveHashingOptions
from nicbench.tuning.setting import CannotSetError, Place
from nicbench.tuning.undo.adapters import RestoreHardwareStamps, read_stamp_setting, write_stamp_setting
from nicbench.tuning.undo.processes import RestoreNice

# Huge pages: raised by what a run lacks, and put back after it.

_NUMBER_PATH = "/proc/sys/vm/nr_hugepages"
_LINE = re.compile(r"^(\w+):\s+(\d+)", re.MULTILINE)


@frozen
class HugePages:
    """What /proc/meminfo says of huge pages of the default size. ``available`` are free and not promised to anybody."""

    page_kib: int
    total: int
    available: int

    def lacking(self, needed_bytes: int) -> int:
        """How many more pages are needed to have ``needed_bytes`` available."""
        pages = -(-needed_bytes // (self.page_kib * 1024))
        return max(0, pages - self.available)


def huge_pages_of_meminfo(text: str) -> HugePages | None:
    """Parses /proc/meminfo; None where the kernel has no huge pages."""
    values = {name: int(number) for name, number in _LINE.findall(text)}
    if "Hugepagesize" not in values or "HugePages_Total" not in values:
        return None
    available = values.get("HugePages_Free", 0) - values.get("HugePages_Rsvd", 0)
    return HugePages(values["Hugepagesize"], values["HugePages_Total"], max(0, available))


async def raise_huge_pages(
    changes: Changes, host: Host, needed_bytes: int, option: str = "tester.huge_pages"
) -> HugePages:
    """Makes sure that ``needed_bytes`` are available; gives the state before.

    NotReadyError where the kernel finds no more of them; it names the bench file's ``option`` that does without.
    """
    before = huge_pages_of_meminfo(await host.read_file("/proc/meminfo") or "")
    if before is None:
        raise NotReadyError(
            "this kernel has no huge pages", place=host.name, next_step=f"set {option}: false in the bench file"
        )
    lacking = before.lacking(needed_bytes)
    if lacking:
        try:
            await changes.set_file(host, _NUMBER_PATH, str(before.total + lacking))
        except HostError as error:
            raise NotReadyError(
                f"{lacking} more huge pages of {before.page_kib} KiB are needed: {error.message}",
                place=host.name,
                next_step=f"free memory or reboot, or set {option}: false in the bench file",
            ) from error
    return before


# The CPUs of a DUT work for it alone: they do not sleep, and the kernel's packet work goes before other programs.  A
# CPU that sleeps is slow to wake up, and a hypervisor gives its physical core away.

# CPUs that measure do not sleep. One that sleeps is slow to wake up, and a hypervisor gives its physical core away.
#
# A virtual CPU that sleeps between frames wakes up wherever the hypervisor has room, mostly beside a neighbour on the
# other hyperthread, which takes up to half of the core; one that is always busy gets a core of its own before long.
# Source: Documentation/ABI/testing/sysfs-devices-power, ``pm_qos_resume_latency_us``: "n/a" tolerates no latency at
# all,
# so that the CPU polls. It is of each CPU, so that idle hyperthreads beside the DUT's go on sleeping.


NEVER_SLEEPS = "n/a"
_DRIVER = "/sys/devices/system/cpu/cpuidle/current_driver"


async def keep_awake(changes: Changes, host: Host, cpus: tuple[int, ...]) -> tuple[int, ...]:
    """Those of these CPUs that do not sleep from now on; none where the kernel has no idle states to choose from."""
    driver = (await host.read_file(_DRIVER) or "").strip()
    if driver in ("", "none"):
        return ()
    awake = []
    for cpu in cpus:
        try:
            path = f"/sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us"
            await changes.set_file(host, path, NEVER_SLEEPS)
        except HostError:
            continue  # not allowed here: it sleeps as it does anyway, and what that does to its core is watched
        awake.append(cpu)
    return tuple(awake)


# Packet work of the kernel on the DUT's CPUs goes before other programs there: a DUT shares with nobody.


FIRST = -20


async def prefer_softirq_work(changes: Changes, host: Host, cpus: tuple[int, ...]) -> dict[str, int]:
    """Raises ``ksoftirqd`` of each CPU; gives what was set. Where such a thread is not to be seen, nothing is set."""
    raised = {}
    for cpu in cpus:
        name = f"ksoftirqd/{cpu}"
        found = await host.run(("pgrep", "-x", name), check=False)
        stat = await host.read_file(f"/proc/{found.stdout.strip()}/stat") if found.stdout.strip().isdigit() else None
        ticks = start_ticks_of_stat(stat) if stat is not None else None
        if stat is None or ticks is None:
            continue
        pid, old = int(found.stdout), nice_of_stat(stat)

        async def apply(pid: int = pid) -> None:
            await host.run(("renice", "-n", str(FIRST), "-p", str(pid)))

        if old != FIRST:
            try:
                await changes.make(host, RestoreNice(pid=pid, start_ticks=ticks, old=old, new=FIRST), apply)
            except HostError:
                continue  # not allowed here: the DUT competes as it does anyway, and its time is watched
        raised[name] = FIRST
    return raised


# Has a card stamp every frame that it receives, through the undo stack.


async def stamp_all_frames(changes: Changes, host: Host, device: str) -> None:
    """Undo first; nothing where the card stamps all frames already. NotReadyError where it will not."""
    before = await read_stamp_setting(host, device)
    if before.receive == ALL_FRAMES:
        return

    async def apply() -> None:
        after = await write_stamp_setting(host, device, StampSetting(before.transmit, ALL_FRAMES))
        if after.receive != ALL_FRAMES:
            raise NotReadyError(
                f"the card stamps only some of the frames that it receives (rx_filter {after.receive})",
                place=f"{host.name}, {device}",
                next_step="use `timestamps: tsc`",
            )

    undo = RestoreHardwareStamps(device=device, transmit=before.transmit, receive=before.receive)
    await changes.make(host, undo, apply)


async def apply_item(changes: Changes, item: Item, place: Place) -> None:
    """Sets what differs from the item; CannotSetError or HostError where that is impossible."""
    now = await item.read_checked(place)
    asked = item.find_differing(item.target_values(now), now)
    if asked:
        await item.apply(changes, place, {name: now[name] for name in asked}, asked)


async def leave_tags(changes: Changes, host: Host, device: str) -> None:
    """Has an adapter leave VLAN tags in frames, where programs in the driver's hook look for them.

    NotReadyError where it cannot; nothing where it leaves them in already.
    """
    place = Place(host, device)
    try:
        await apply_item(changes, Offloads(OffloadOptions(features={"rxvlan": False})), place)
    except (CannotSetError, HostError) as error:
        step = "choose `driver: net_af_packet`"
        raise NotReadyError(f"the adapter takes VLAN tags away: {error}", place=str(place), next_step=step) from error


async def switch_off(changes: Changes, host: Host, device: str, *offloads: str) -> None:
    """Switches off those of these offloads that an adapter has, so that they are on again afterwards."""
    for offload in offloads:
        with suppress(CannotSetError, HostError):
            await apply_item(changes, Offloads(OffloadOptions(features={offload: False})), Place(host, device))


async def receive_by_first_queues(changes: Changes, host: Host, device: str, queues: int) -> None:
    """Has an adapter with more receive queues send every frame to the first ones, which AF_XDP takes frames from.

    By the table of its hash, else by fewer queues. NotReadyError where it can do neither.
    """
    listed = await host.run(("sh", "-c", 'ls -d "/sys/class/net/$1/queues/rx-"*', "sh", device), check=False)
    there = len(listed.stdout.split())
    if there <= queues:
        return
    place, reasons = Place(host, device), list[str]()
    for item in (
        ReceiveHashing(ReceiveHashingOptions(queues=queues)),
        Channels(ChannelOptions(combined=queues)),
        Channels(ChannelOptions(rx=queues, tx=queues)),
    ):
        try:
            await apply_item(changes, item, place)
        except (CannotSetError, HostError) as error:
            reasons.append(str(error))
        else:
            return
    raise NotReadyError(
        f"it has {there} receive queues, and `driver: net_af_xdp` takes frames from {queues}: {reasons[0]}",
        place=str(place),
        next_step=f"choose another `driver`, or let {there} `workers` receive there",
    )
