"""Boots virtual machines: each has a folder under /run and a process in the background, both with an undo."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import time
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from nicbench.core.errors import HostError, NicbenchError, NotReadyError
from nicbench.engine.binaries import find_binary
from nicbench.hosts.asking import clock_of
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.vm import CHANNEL, KNOWN_BY, LOG, VmHost, last_words
from nicbench.hosts.options import VmOptions
from nicbench.system.inventory.base import parse_meminfo
from nicbench.testbed.vm.command import Guest, Wire, give_cards, macs_of, place, qemu_arguments, raise_pages, wires_of
from nicbench.testbed.vm.programs import (
    FETCH_COMMAND,
    Emulator,
    Kernel,
    accelerator_for,
    base_archive,
    find_emulator,
    find_kernel,
    own_archive,
    own_kernel,
    unpack,
)
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.files import RemovePath
from nicbench.tuning.undo.processes import EndServer, start_command

READY_S: Final = 180.0
_AGENT: Final = "nicbench-agent"
_SPARE_BYTES: Final = 256 * 2**20
_CLOCK_S: Final = 0.02
"""A guest's clock is set to within this; a run warns of offsets five times as large (core/clocks.py)."""
_CLOCK_SETTINGS: Final = 4
_DRIVERS: Final = {"virtio-net-pci": "virtio_net"}
"""Kernel drivers of QEMU's cards, where their names differ."""


async def boot(guests: Mapping[str, VmOptions], changes: Changes, local: Host) -> dict[str, VmHost]:
    """Boots all guests of a bench file at once and waits until each answers.

    NotReadyError, with the last output of the console, where one does not.
    """
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
    hosts = {}
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
    await asyncio.gather(*(_wait_until_ready(host) for host in hosts.values()))
    return hosts


def _kernel(options: VmOptions) -> Kernel:
    return own_kernel() if options.kernel == "machine" else find_kernel()


async def _require(guests: Mapping[str, VmOptions], emulator: Emulator, local: Host) -> None:
    """Raises NotReadyError for reasons that would keep a guest from coming up: no root, no such card, little memory."""
    if (await local.run(("id", "-u"))).stdout.strip() != "0":
        raise NotReadyError(
            "a virtual machine needs root, because its root file system is that of this machine",
            place=local.name,
            next_step="run it with sudo",
        )
    for name, options in guests.items():
        if options.needs_igb and not emulator.has_igb:
            raise NotReadyError(
                f"QEMU {emulator.version} has no card `igb`",
                place=name,
                next_step="run scripts/fetch-vm, which fetches a newer one, or choose another `model`",
            )
    # Huge pages are reserved separately, and may be reserved already.
    wanted = sum(int(options.memory) for options in guests.values() if options.huge_pages is None) + _SPARE_BYTES
    free = parse_meminfo(await local.read_file("/proc/meminfo") or "").get("MemAvailable")
    if free is not None and wanted > free:
        raise NotReadyError(
            f"the virtual machines need {wanted // 2**20} MiB of memory, but {free // 2**20} MiB are free",
            place=local.name,
            next_step="give them less (`memory`), or free some",
        )


def folder_of(run_id: str, name: str) -> str:
    """The folder of a guest; short, because the path of a socket may have 107 characters."""
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
    """Starts a guest; gives QEMU's command line, and facts about the guest's placement where one is asked for."""
    emulator, kernel, accelerator = programs

    async def make_folder() -> None:
        await local.run(("mkdir", "-m", "700", folder))

    try:
        await changes.make(local, RemovePath(path=folder), make_folder)
    except HostError as error:
        raise NotReadyError(
            f"the folder of the virtual machine {name} cannot be made: {error.message}",
            place=local.name,
            next_step="run `nicbench restore` where a run that died left it",
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
    pid_file, log = f"{folder}/{KNOWN_BY}", f"{folder}/{LOG}"

    async def start() -> None:
        await local.run(start_command(pid_file, log, command), environment=emulator.environment)

    await changes.make(local, EndServer(known_by=pid_file), start)
    await _wait_for_sockets(local, folder, wires, name)
    pid = int((await local.read_file(pid_file) or "0").split()[0])
    return command, await place(local, options, pid, f"{folder}/qmp", name)


async def _image(kernel: Kernel, options: VmOptions, accelerator: str) -> Path:
    """The kernel image to boot: unpacked for emulation, unless it is in /boot, where nothing is written."""
    if accelerator == "kvm" or options.kernel == "machine":
        return kernel.image
    return await asyncio.to_thread(unpack, kernel)


def _suggest_changes(options: VmOptions) -> str:
    """The next step for a guest that does not come up."""
    without = "without its `boot_parameters`, " if options.boot_parameters else ""
    step = f"try it {without}with fewer `cards`, more `memory`, or `accelerator: tcg`"
    if options.kernel == "fetched":
        step += f"; if its kernel may be damaged, remove the kernel's folder and run {FETCH_COMMAND}"
    return step


def _write_initrd(
    folder: Path, kernel: Kernel, options: VmOptions, name: str, macs: Mapping[str, str], aliases: tuple[str, ...]
) -> None:
    busybox = shutil.which("busybox", path="/bin:/usr/bin:/usr/local/bin")
    if busybox is None:
        raise NotReadyError("busybox is not installed", place=name, next_step="apt-get install busybox-static")
    package = files("nicbench.testbed.vm")
    try:
        base = base_archive(kernel.modules, Path(busybox), (package / "init.sh").read_text(encoding="utf-8"))
    except OSError as error:
        raise NotReadyError(
            f"the kernel {kernel.version} of the virtual machine is incomplete: {error}",
            place=name,
            next_step=f"remove {kernel.image.parents[1]} and run {FETCH_COMMAND}"
            if options.kernel == "fetched"
            else "reinstall the package of the machine's kernel",
        ) from error
    own = {
        "name": f"{name}\n",
        "guest.sh": (package / "guest.sh").read_text(encoding="utf-8"),
        "cards": "".join(f"{mac} {card}\n" for card, mac in macs.items()),
        "drivers": "".join(f"{driver}\n" for driver in (*_drivers(options), *aliases)),
    }
    (folder / "initrd").write_bytes(base + own_archive(own, find_binary(_AGENT).read_bytes()))


def _drivers(options: VmOptions) -> list[str]:
    """The kernel drivers of the emulated cards."""
    models = {each.model for each in options.cards.values() if each.pci is None}
    return sorted(_DRIVERS.get(model, model) for model in models)


async def _wait_for_sockets(local: Host, folder: str, wires: tuple[Wire, ...], name: str) -> None:
    """Waits until QEMU has opened its sockets; NotReadyError with its output where it does not start."""
    wanted = [f"{folder}/{CHANNEL}", *(path for wire in wires for path in wire.listens)]
    for _ in range(200):
        if all([(await local.run(("test", "-S", path), check=False)).status == 0 for path in wanted]):
            return
        if await VmHost(VmOptions(), name, folder).is_gone():
            break
        await asyncio.sleep(0.05)
    output = (await local.read_file(f"{folder}/{LOG}") or "").strip()[-1000:]
    raise NotReadyError(
        f"the virtual machine {name} does not start: {output or 'QEMU printed nothing'}",
        place=local.name,
        next_step="run `nicbench doctor` to see what is missing",
    )


async def _set_clock(host: VmHost) -> None:
    """Sets the guest's clock, which starts at whole seconds; repeatedly, because a command takes time to arrive."""
    ahead_s = 0.0
    for _ in range(_CLOCK_SETTINGS):
        await host.run(("date", "--utc", "--set", f"@{time.time() + ahead_s:.3f}"))
        clock = await clock_of(host)
        if abs(clock.offset_s) <= _CLOCK_S:
            return
        ahead_s -= clock.offset_s


async def _wait_until_ready(host: VmHost) -> None:
    """Waits until a guest answers, sets its clock, and checks its boot parameters."""
    try:
        # All turns of a run use the same folder for a guest, and the connection to an earlier one may have been lost.
        await host.reconnect()
        await host.answers(READY_S)
        await _set_clock(host)
    except NicbenchError as error:
        output = "" if await host.is_gone() else last_words(host.folder)  # once it has ended the error has the output
        raise NotReadyError(
            f"the virtual machine {host.name} does not come up: {error.message}{output}",
            place=host.name,
            next_step=_suggest_changes(host.options),
        ) from error
    started_with = (await host.read_file("/proc/cmdline") or "").split()
    missing = [word for word in host.options.boot_parameters if word not in started_with]
    if missing:
        raise NotReadyError(
            f"the guest did not start with {missing[0]}; its /proc/cmdline is: {' '.join(started_with)}",
            place=f"{host.name}, boot_parameters",
            next_step="write fewer: the length of the kernel's command line is limited",
        )
