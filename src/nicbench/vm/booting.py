"""Boots virtual machines, and knows how to be rid of them: a folder under /run, and a process in the background."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import time
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from nicbench.engine.binary import find_binary
from nicbench.errors import HostError, NicbenchError, NotReadyError
from nicbench.hosts._clocks import clock_of
from nicbench.hosts._vm_options import VmOptions
from nicbench.hosts.base import Host
from nicbench.hosts.vm import CHANNEL, KNOWN_BY, LOG, VmHost, last_words
from nicbench.inventory.meminfo import parse_meminfo
from nicbench.tuning.changes import Changes
from nicbench.tuning.detached import start_command
from nicbench.tuning.undo import EndServer, RemovePath
from nicbench.vm import initrd
from nicbench.vm.accelerator import accelerator_for
from nicbench.vm.command import Guest, Wire, qemu_arguments
from nicbench.vm.emulator import Emulator, find_emulator
from nicbench.vm.given_cards import give_cards
from nicbench.vm.kernel import FETCH_COMMAND, Kernel, find_kernel, own_kernel
from nicbench.vm.placing import place, raise_pages
from nicbench.vm.unpacked import unpacked
from nicbench.vm.wires import macs_of, wires_of

READY_S: Final = 180.0
_AGENT: Final = "nicbench-agent"
_SPARE_BYTES: Final = 256 * 2**20
_CLOCK_S: Final = 0.02
"""So near a guest's clock is set; a run warns of five times as much (model/clock.py)."""
_CLOCK_SETTINGS: Final = 4
_DRIVERS: Final = {"virtio-net-pci": "virtio_net"}
"""Where the kernel's driver is not called as QEMU's card."""


async def boot(guests: Mapping[str, VmOptions], changes: Changes, local: Host) -> dict[str, VmHost]:
    """All of a bench file, at once; each answers. NotReadyError with the console's last words where one does not."""
    if not guests:
        return {}
    emulator = find_emulator()
    kernels = {name: _kernel(options) for name, options in guests.items()}
    await _require(guests, emulator, local)
    folders = {name: folder_of(changes.run_id, name) for name in guests}
    wires = wires_of(guests, folders)
    accelerator = {
        name: await accelerator_for(options.accelerator, emulator, kernels[name]) for name, options in guests.items()
    }
    hosts: dict[str, VmHost] = {}
    for name, options in guests.items():
        programs = (emulator, kernels[name], accelerator[name])
        command, placed = await _start(name, options, folders[name], wires[name], programs, changes, local)
        made_of = {
            "kernel": kernels[name].version,
            "emulator": f"QEMU {emulator.version}",
            "accelerator": accelerator[name],
            "command": " ".join(command),
            **placed,
        }
        hosts[name] = VmHost(options, name, folders[name], made_of)

    async def close() -> None:
        await asyncio.gather(*(host.close() for host in hosts.values()))

    changes.before_undoing(close)
    await asyncio.gather(*(_answers(host) for host in hosts.values()))
    return hosts


def _kernel(options: VmOptions) -> Kernel:
    return own_kernel() if options.kernel == "machine" else find_kernel()


async def _require(guests: Mapping[str, VmOptions], emulator: Emulator, local: Host) -> None:
    """What would else be found out by a guest that does not come up."""
    if (await local.run(("id", "-u"))).stdout.strip() != "0":
        raise NotReadyError(
            "a virtual machine of a lab needs root: its root file system is this machine's",
            place=local.name,
            next_step="run it with sudo",
        )
    for name, options in guests.items():
        if options.needs_igb and not emulator.has_igb:
            raise NotReadyError(
                f"QEMU {emulator.version} has no card `igb`",
                place=name,
                next_step="scripts/fetch-vm fetches one that has; or choose another `model`",
            )
    # Huge pages are raised by themselves, and may be reserved already.
    wanted = sum(int(options.memory) for options in guests.values() if options.huge_pages is None) + _SPARE_BYTES
    free = parse_meminfo(await local.read_file("/proc/meminfo") or "").get("MemAvailable")
    if free is not None and wanted > free:
        raise NotReadyError(
            f"the virtual machines need {wanted // 2**20} MiB of memory, and {free // 2**20} MiB are free",
            place=local.name,
            next_step="give them less (`memory`), or free some",
        )


def folder_of(run_id: str, name: str) -> str:
    """Short, for the path of a socket has 107 characters."""
    return f"/run/nicbench-vm-{hashlib.sha256(f'{run_id} {name}'.encode()).hexdigest()[:12]}"


async def _start(
    name: str,
    options: VmOptions,
    folder: str,
    wires: tuple[Wire, ...],
    programs: tuple[Emulator, Kernel, str],
    changes: Changes,
    local: Host,
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Gives the command line, and where the guest is on this machine, as far as that was asked for."""
    emulator, kernel, accelerator = programs

    async def make_folder() -> None:
        await local.run(("mkdir", "-m", "700", folder))

    try:
        await changes.make(local, RemovePath(path=folder), make_folder)
    except HostError as error:
        raise NotReadyError(
            f"no folder can be made for the virtual machine {name}: {error.message}",
            place=local.name,
            next_step="where it is left from a run that died: nicbench restore",
        ) from error
    given, aliases = await give_cards(changes, local, options, name)
    await raise_pages(changes, local, options, name)
    macs = macs_of(name, options, given)
    await asyncio.to_thread(_write_initrd, Path(folder), kernel, options, name, macs, aliases)
    guest = Guest(
        folder=folder,
        kernel=await _image(kernel, options, accelerator),
        modules=kernel.modules,
        initrd=f"{folder}/initrd",
        accelerator=accelerator,
    )
    command = (*emulator.arguments, *qemu_arguments(options, guest, macs, wires))
    known_by, log = f"{folder}/{KNOWN_BY}", f"{folder}/{LOG}"

    async def start() -> None:
        await local.run(start_command(known_by, log, command), environment=emulator.environment)

    await changes.make(local, EndServer(known_by=known_by), start)
    await _listens(local, folder, wires, name)
    pid = int((await local.read_file(known_by) or "0").split()[0])
    return command, await place(local, options, pid, f"{folder}/qmp", name)


async def _image(kernel: Kernel, options: VmOptions, accelerator: str) -> Path:
    """Unpacked where it is emulated; nothing is written to this machine's /boot."""
    if accelerator == "kvm" or options.kernel == "machine":
        return kernel.image
    return await asyncio.to_thread(unpacked, kernel)


def _otherwise(options: VmOptions) -> str:
    """What may be the matter with a guest that does not come up."""
    without = "without its `boot_parameters`, " if options.boot_parameters else ""
    asked = f"does it {without}with fewer `cards`, more `memory`, or `accelerator: tcg`?"
    if options.kernel == "fetched":
        asked += f" Where its kernel may be damaged, remove the folder of it and run {FETCH_COMMAND}"
    return asked


def _write_initrd(
    folder: Path, kernel: Kernel, options: VmOptions, name: str, macs: Mapping[str, str], aliases: tuple[str, ...]
) -> None:
    busybox = shutil.which("busybox", path="/bin:/usr/bin:/usr/local/bin")
    if busybox is None:
        raise NotReadyError("busybox is not installed", place=name, next_step="apt-get install busybox-static")
    package = files("nicbench.vm")
    try:
        base = initrd.base(kernel.modules, Path(busybox), (package / "init.sh").read_text(encoding="utf-8"))
    except OSError as error:
        raise NotReadyError(
            f"the kernel {kernel.version} of the virtual machine is not whole: {error}",
            place=name,
            next_step=f"remove {kernel.image.parents[1]} and run {FETCH_COMMAND}"
            if options.kernel == "fetched"
            else "install the package of the machine's kernel anew",
        ) from error
    own = {
        "name": f"{name}\n",
        "guest.sh": (package / "guest.sh").read_text(encoding="utf-8"),
        "cards": "".join(f"{mac} {card}\n" for card, mac in macs.items()),
        "drivers": "".join(f"{driver}\n" for driver in (*_drivers(options), *aliases)),
    }
    (folder / "initrd").write_bytes(base + initrd.own(own, find_binary(_AGENT).read_bytes()))


def _drivers(options: VmOptions) -> list[str]:
    """Of the emulated cards."""
    models = {each.model for each in options.cards.values() if each.pci is None}
    return sorted(_DRIVERS.get(model, model) for model in models)


async def _listens(local: Host, folder: str, wires: tuple[Wire, ...], name: str) -> None:
    """Until QEMU has opened its sockets, which others are to go to; its own words where it does not start."""
    wanted = [f"{folder}/{CHANNEL}", *(path for wire in wires for path in wire.listens)]
    for _ in range(200):
        if all([(await local.run(("test", "-S", path), check=False)).status == 0 for path in wanted]):
            return
        if await VmHost(VmOptions(), name, folder).is_gone():
            break
        await asyncio.sleep(0.05)
    said = (await local.read_file(f"{folder}/{LOG}") or "").strip()[-1000:]
    raise NotReadyError(
        f"the virtual machine {name} does not start: {said or 'QEMU says nothing'}",
        place=local.name,
        next_step="nicbench doctor says what is missing",
    )


async def _set_clock(host: VmHost) -> None:
    """The clock that it was born with counts seconds, and a command takes a while to come through: it is set again."""
    ahead_s = 0.0
    for _ in range(_CLOCK_SETTINGS):
        await host.run(("date", "--utc", "--set", f"@{time.time() + ahead_s:.3f}"))
        clock = await clock_of(host)
        if abs(clock.offset_s) <= _CLOCK_S:
            return
        ahead_s -= clock.offset_s


async def _answers(host: VmHost) -> None:
    """Also has its clock set."""
    try:
        # Every turn of a run has its guest in the same folder: that the one before was lost is not this one's affair.
        await host.reconnect()
        await host.answers(READY_S)
        await _set_clock(host)
    except NicbenchError as error:
        said = "" if await host.is_gone() else last_words(host.folder)  # of one that is gone the error has them
        raise NotReadyError(
            f"the virtual machine {host.name} does not come up: {error.message}{said}",
            place=host.name,
            next_step=_otherwise(host.options),
        ) from error
    started_with = (await host.read_file("/proc/cmdline") or "").split()
    missing = [word for word in host.options.boot_parameters if word not in started_with]
    if missing:
        raise NotReadyError(
            f"the guest should have started with {missing[0]}, and its /proc/cmdline says: {' '.join(started_with)}",
            place=f"{host.name}, boot_parameters",
            next_step="write fewer: the kernel's line of parameters has an end",
        )
