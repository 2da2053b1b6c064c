"""Settings of a guest that runs under libvirt: on which CPUs its threads run, its pages, and the functions it has."""

from __future__ import annotations

import asyncio
import re
import shlex
from typing import Annotated, Final

from pydantic import Field, StringConstraints, model_validator

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError
from nicbench.core.machine import cpu_list, parse_cpu_list
from nicbench.core.plan import Values
from nicbench.core.quantity import Bytes
from nicbench.system.hypervisor import read_live_guest
from nicbench.tuning.items.base import PCI_ADDRESS, Item, Phase
from nicbench.tuning.setting import CannotSetError, Place

_FUNCTIONS: Final = "functions"
_PAGES: Final = "pages"
_EMULATOR: Final = "emulator"
_VCPU: Final = "vcpu "
_TRIES: Final = 100
_STEP_S: Final = 0.1
"""With the tries above ten seconds: a guest lets go of a function when its own driver has."""
# A line of `virsh vcpupin`: the vCPU and its CPUs.
_AFFINITY = re.compile(r"(?m)^\s*(\d+)\s+([\d,-]+)\s*$")
_FUNCTION: Final = (
    "<hostdev mode='subsystem' type='pci' managed='yes'><source>"
    "<address domain='0x{}' bus='0x{}' slot='0x{}' function='0x{}'/></source></hostdev>"
)


class LibvirtGuestOptions(Frozen):
    """``libvirt_guest: {guest: dut, pin: [4, 5, 6, 7], emulator: 2-3, functions: ["0000:65:02.0"]}``.

    ``huge_pages`` is the size that its pages must have, ``connect`` the URI of libvirt.
    """

    guest: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+:@-]{0,127}$")
    pin: tuple[Annotated[int, Field(ge=0, le=8191)], ...] = Field(default=(), max_length=1024)
    emulator: str | None = Field(default=None, pattern=r"^[0-9,-]{1,200}$")
    functions: tuple[Annotated[str, StringConstraints(pattern=PCI_ADDRESS)], ...] = Field(default=(), max_length=64)
    huge_pages: Bytes | None = Field(default=None, ge=2**16)
    connect: str = Field(default="qemu:///system", pattern=r"^[a-z0-9+]+://[A-Za-z0-9_.@:/?=&-]*$")

    @model_validator(mode="after")
    def _require_something(self) -> LibvirtGuestOptions:
        if not (self.pin or self.emulator or self.functions or self.huge_pages):
            raise ValueError("give pin, emulator, functions or huge_pages")
        if self.emulator is not None:
            parse_cpu_list(self.emulator)
        return self


class LibvirtGuest(Item):
    """A running guest of libvirt: the CPU of each vCPU, those of the emulator, and virtual functions that it is lent.

    Source: virsh(1), vcpupin, emulatorpin, attach-device. The guest goes on running, and its definition stays as it is.
    Its pages are only checked, because a running guest keeps those that it started with.

    Of the host that the guest runs on; `pin` has a CPU for each vCPU.
    """

    kind = "libvirt_guest"
    Options = LibvirtGuestOptions
    options: LibvirtGuestOptions
    scope = "machine"
    phase = Phase.FUNCTION

    async def read(self, place: Place) -> Values:
        for function in self.options.functions:
            path = f"/sys/bus/pci/devices/{function}/physfn"
            if (await place.host.run(("test", "-e", path), check=False)).status != 0:
                raise CannotSetError(f"{function} is not a virtual function of this machine: `lspci -D` lists those")
        try:
            definition = await self._virsh(place, "dumpxml", self.options.guest)
            threads = await self._virsh(place, "vcpupin", self.options.guest, "--live")
            emulator = await self._virsh(place, "emulatorpin", self.options.guest, "--live")
        except HostError as error:
            raise CannotSetError(error.message) from error
        guest = read_live_guest(definition.encode())
        values: Values = {f"{_VCPU}{number}": _cpus(cpus) for number, cpus in _AFFINITY.findall(threads)}
        values[_EMULATOR] = _cpus(emulator.strip())
        return {**values, _FUNCTIONS: " ".join(guest.functions), _PAGES: guest.pages}

    def target_values(self, now: Values) -> Values:
        options = self.options
        vcpus = [key for key in now if key.startswith(_VCPU)]
        if options.pin and len(options.pin) != len(vcpus):
            raise CannotSetError(f"the guest {options.guest} has {len(vcpus)} vCPUs, and `pin` {len(options.pin)} CPUs")
        wanted: Values = dict(zip(vcpus, map(str, options.pin), strict=False))
        if options.emulator is not None:
            wanted[_EMULATOR] = _cpus(options.emulator)
        if options.functions:
            wanted[_FUNCTIONS] = " ".join(sorted({*str(now[_FUNCTIONS]).split(), *options.functions}))
        if options.huge_pages is not None:
            mib = int(options.huge_pages) / 2**20
            pages = f"huge, {mib / 1024:g} GiB" if mib >= 1024 else f"huge, {mib:g} MiB"
            if not str(now[_PAGES]).startswith(pages):
                raise CannotSetError(
                    f"the memory of the guest {options.guest} is of pages that are {now[_PAGES]}, not {pages}: shut it "
                    f"down, and write <memoryBacking><hugepages> with `virsh edit {options.guest}`"
                )
            wanted[_PAGES] = now[_PAGES]
        return wanted

    async def write(self, place: Place, values: Values) -> None:
        for key, value in values.items():
            if key.startswith(_VCPU):
                number = key.removeprefix(_VCPU)
                await self._virsh(place, "vcpupin", self.options.guest, number, str(value), "--live")
            elif key == _EMULATOR:
                await self._virsh(place, "emulatorpin", self.options.guest, str(value), "--live")
            elif key == _FUNCTIONS:
                await self._lend(place, set(str(value).split()))

    async def _lend(self, place: Place, wanted: set[str]) -> None:
        """Attaches and detaches functions, until the guest has these."""
        there = set(str((await self.read(place))[_FUNCTIONS]).split())
        for action, functions in (("attach-device", wanted - there), ("detach-device", there - wanted)):
            for function in sorted(functions):
                await self._virsh(place, action, self.options.guest, "/dev/stdin", "--live", text=_device(function))
        for _ in range(_TRIES):
            if set(str((await self.read(place))[_FUNCTIONS]).split()) == wanted:
                return
            await asyncio.sleep(_STEP_S)

    async def _virsh(self, place: Place, *words: str, text: str = "") -> str:
        """Returns what virsh prints, with this text as its input; HostError where it fails."""
        command = ("virsh", "--quiet", "--connect", self.options.connect, *words)
        given = ("sh", "-c", f"printf %s {shlex.quote(text)} | {shlex.join(command)}") if text else command
        return (await place.host.run(given)).stdout


def _cpus(text: str) -> str:
    return cpu_list(parse_cpu_list(text))


def _device(function: str) -> str:
    return _FUNCTION.format(*re.split("[:.]", function))
