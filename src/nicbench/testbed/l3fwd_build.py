"""Builds l3fwd, DPDK's example router, from Debian's sources (package dpdk-doc) into a cache of this machine.

One line is patched: l3fwd requires ports that verify checksums in hardware, which rings in memory cannot do.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, Literal

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


class Constants(Frozen):
    """What l3fwd has as constants in its sources; the defaults are its own."""

    burst: int = 32
    mbuf_cache: int = 256
    rss: Literal["ip", "udp"] = "ip"

    @property
    def folder(self) -> str:
        """The folder of the program with these constants, below the cache folder."""
        return "l3fwd" if self == Constants() else f"l3fwd-{self.burst}-{self.mbuf_cache}-{self.rss}"

    @property
    def edits(self) -> tuple[tuple[str, str, str], ...]:
        """What is replaced by what in which file; each occurs there once."""
        own = Constants()
        hashed = ("main.c", ".rss_hf = RTE_ETH_RSS_IP,", ".rss_hf = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP,")
        burst, cache = "#define MAX_PKT_BURST     ", "#define MEMPOOL_CACHE_SIZE "
        return (
            ("main.c", REQUIRED, REPLACEMENT),
            *([("l3fwd.h", f"{burst}{own.burst}\n", f"{burst}{self.burst}\n")] if self.burst != own.burst else []),
            *(
                [("l3fwd.h", f"{cache}{own.mbuf_cache}\n", f"{cache}{self.mbuf_cache}\n")]
                if self.mbuf_cache != own.mbuf_cache
                else []
            ),
            *([hashed] if self.rss != own.rss else []),
        )

    @property
    def patch(self) -> str:
        """The edits in words, for the report."""
        return "; ".join(
            (PATCH, *(f"{file}: `{old.strip()}` became `{new.strip()}`" for file, old, new in self.edits[1:]))
        )


DEFAULT: Final = Constants()


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


def program(constants: Constants = DEFAULT, cache: Path | None = None) -> Path:
    """The path of the program with these constants once it is built."""
    return (cache or cache_folder()) / constants.folder / "l3fwd"


async def read_build(host: Host, constants: Constants = DEFAULT, cache: Path | None = None) -> L3fwdBuild | None:
    """The record of the build on ``host``; None where there is none, or nicbench did not build the program."""
    place = program(constants, cache)
    if (await host.run(("test", "-x", str(place)), check=False)).status != 0:
        return None
    try:
        return L3fwdBuild.model_validate_json(await host.read_file(str(place.with_name(_RECORD))) or "")
    except ValidationError:
        return None


async def find_or_build(host: Host, constants: Constants, cache: Path | None = None) -> L3fwdBuild:
    """The record of the program with these constants on ``host``, which is built where there is none.

    NotReadyError where it cannot be built there.
    """
    found = await read_build(host, constants, cache)
    return found if found is not None else await build(host, constants, cache)


def edit_source(source: str, file: str, old: str, new: str) -> str:
    """A source with this edit; NotReadyError where it is not the version that the edit was made for."""
    if source.count(old) != 1:
        raise NotReadyError(
            f"the sources of l3fwd are of another version: `{old.strip()}` occurs in them {source.count(old)} times",
            place=f"{SOURCES}/l3fwd/{file}",
            next_step=f"install Debian's {PACKAGE} 22.11, or use `dut: {{kind: testpmd}}`",
        )
    return source.replace(old, new)


async def build(host: Host, constants: Constants = DEFAULT, cache: Path | None = None) -> L3fwdBuild:
    """Builds l3fwd on ``host`` in a fresh folder, in place of an older build; NotReadyError where it cannot."""
    folder = cache or cache_folder()
    sources: dict[str, str] = {}
    for file, old, new in constants.edits:
        source = sources.get(file) or await host.read_file(f"{SOURCES}/l3fwd/{file}")
        if source is None:
            message = f"l3fwd is not built, and its sources are missing: {SOURCES}/l3fwd"
            raise NotReadyError(message, place=host.name, next_step=INSTALL_COMMAND)
        sources[file] = edit_source(source, file, old, new)
    # With this mode the engine's binaries may lie in it too (nicbench.engine.binaries); parents keep the usual one.
    await host.run(("install", "-d", "-m", "700", str(folder)))
    work = folder / f"{constants.folder}.new"
    await host.run(("rm", "-rf", "--", str(work)))
    await host.run(("mkdir", "-p", str(work)))
    await host.run(("cp", "-r", f"{SOURCES}/l3fwd", f"{SOURCES}/common", str(work)))
    for file, source in sources.items():
        await host.write_file(f"{work}/l3fwd/{file}", source)
    try:
        await host.run(("make", "-C", f"{work}/l3fwd", "shared"), timeout_s=_BUILD_S)
    except (HostError, NotReadyError) as error:
        raise NotReadyError(
            f"l3fwd was not built: {error.message}", place=host.name, next_step=INSTALL_COMMAND
        ) from error
    record = L3fwdBuild(
        sources=await _version(host, PACKAGE),
        library=(await host.run(("pkg-config", "--modversion", "libdpdk"))).stdout.strip(),
        compiler=(await host.run(("cc", "--version"))).stdout.partition("\n")[0],
        patch=constants.patch,
    )
    await host.run(("mv", "-f", f"{work}/l3fwd/build/l3fwd-shared", f"{work}/program"))
    made = program(constants, folder)
    await host.run(("mkdir", "-p", str(made.parent)))
    await host.write_file(f"{work}/{_RECORD}", record.model_dump_json(indent=1) + "\n")
    await host.run(("mv", "-f", f"{work}/program", str(made)))
    await host.run(("mv", "-f", f"{work}/{_RECORD}", str(made.with_name(_RECORD))))
    await host.run(("rm", "-rf", "--", str(work)))
    return record


async def _version(host: Host, package: str) -> str:
    query = ("dpkg-query", "--show", "--showformat", "${Version}", package)
    return (await host.run(query, check=False)).stdout.strip() or "unknown"
