"""Builds l3fwd, DPDK's example router, from Debian's sources (package dpdk-doc) into a cache of this machine.

One line is patched: l3fwd requires ports that verify checksums in hardware, which rings in memory cannot do.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError, NotReadyError
from nicbench.hosts.base import Host

SOURCES: Final = "/usr/share/dpdk/examples"
PACKAGE: Final = "dpdk-doc"
BUILD_COMMAND: Final = "nicbench doctor --build l3fwd"
INSTALL_COMMAND: Final = "apt-get install --no-install-recommends dpdk-doc libdpdk-dev gcc make pkgconf"

REQUIRED: Final = ".offloads = RTE_ETH_RX_OFFLOAD_CHECKSUM"
REPLACEMENT: Final = ".offloads = 0"
PATCH: Final = f"main.c: `{REQUIRED}` became `{REPLACEMENT}`: rings in memory have no checksum offload"
_RECORD: Final = "build.json"
_BUILD_S: Final = 600.0


class L3fwdBuild(Frozen):
    """The record of a build, stored beside the program."""

    sources: str
    """Version of the package that the sources came from."""
    library: str
    """Version of DPDK that it was built with."""
    compiler: str
    patch: str


def cache_folder() -> Path:
    """The cache folder: that of the machine for root, that of the user otherwise (XDG base directories)."""
    if os.geteuid() == 0:
        return Path("/var/cache/nicbench")
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given else Path.home() / ".cache") / "nicbench"


def program(cache: Path | None = None) -> Path:
    """The path of the program once it is built."""
    return (cache or cache_folder()) / "l3fwd" / "l3fwd"


def read_build(cache: Path | None = None) -> L3fwdBuild | None:
    """The record of the build; None where there is none, or nicbench did not build the program."""
    record = program(cache).with_name(_RECORD)
    if not os.access(program(cache), os.X_OK):
        return None
    try:
        return L3fwdBuild.model_validate_json(record.read_text(encoding="utf-8"))
    except (OSError, ValidationError):
        return None


def patch_source(source: str) -> str:
    """``main.c`` with the patch; NotReadyError where it is not the version that the patch was made for."""
    if source.count(REQUIRED) != 1:
        raise NotReadyError(
            f"the sources of l3fwd are of another version: `{REQUIRED}` occurs in them {source.count(REQUIRED)} times",
            place=f"{SOURCES}/l3fwd/main.c",
            next_step=f"install Debian's {PACKAGE} 22.11, or use `dut: {{kind: testpmd}}`",
        )
    return source.replace(REQUIRED, REPLACEMENT)


async def build(host: Host, cache: Path | None = None) -> L3fwdBuild:
    """Builds l3fwd in a fresh folder and replaces an older build; NotReadyError where something is missing."""
    folder = cache or cache_folder()
    source = await host.read_file(f"{SOURCES}/l3fwd/main.c")
    if source is None:
        raise NotReadyError(f"the sources of l3fwd are missing: {SOURCES}/l3fwd", next_step=INSTALL_COMMAND)
    # With this mode the engine's binaries may lie in it too (nicbench.engine.binaries); parents keep the usual one.
    await host.run(("install", "-d", "-m", "700", str(folder)))
    work = folder / "l3fwd.new"
    await host.run(("rm", "-rf", "--", str(work)))
    await host.run(("mkdir", "-p", str(work)))
    await host.run(("cp", "-r", f"{SOURCES}/l3fwd", f"{SOURCES}/common", str(work)))
    await host.write_file(f"{work}/l3fwd/main.c", patch_source(source))
    try:
        await host.run(("make", "-C", f"{work}/l3fwd", "shared"), timeout_s=_BUILD_S)
    except (HostError, NotReadyError) as error:
        raise NotReadyError(f"l3fwd was not built: {error.message}", next_step=INSTALL_COMMAND) from error
    record = L3fwdBuild(
        sources=await _version(host, PACKAGE),
        library=(await host.run(("pkg-config", "--modversion", "libdpdk"))).stdout.strip(),
        compiler=(await host.run(("cc", "--version"))).stdout.partition("\n")[0],
        patch=PATCH,
    )
    await host.run(("mv", "-f", f"{work}/l3fwd/build/l3fwd-shared", f"{work}/program"))
    place = program(folder).parent
    await host.run(("mkdir", "-p", str(place)))
    await host.write_file(f"{work}/{_RECORD}", record.model_dump_json(indent=1) + "\n")
    await host.run(("mv", "-f", f"{work}/program", str(program(folder))))
    await host.run(("mv", "-f", f"{work}/{_RECORD}", str(place / _RECORD)))
    await host.run(("rm", "-rf", "--", str(work)))
    return record


async def _version(host: Host, package: str) -> str:
    query = ("dpkg-query", "--show", "--showformat", "${Version}", package)
    return (await host.run(query, check=False)).stdout.strip() or "unknown"
