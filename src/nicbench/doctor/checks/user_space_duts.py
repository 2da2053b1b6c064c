"""DUTs in user space: DPDK's testpmd, and its example router l3fwd, which is built here from Debian's sources."""

from __future__ import annotations

from nicbench.doctor.base import Check, Examination, ok, warning
from nicbench.hosts.base import Host
from nicbench.testbed.duts import l3fwd


class UserSpaceDuts(Examination):
    """They are needed only by a bench file that names them, so their lack is a warning."""

    kind = "user_space_duts"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        found = await host.run(("sh", "-c", "command -v dpdk-testpmd"), check=False)
        has_sources = await host.read_file(f"{l3fwd.SOURCES}/l3fwd/main.c") is not None
        return (judge_testpmd(found.stdout.strip()), judge_l3fwd(await l3fwd.read_build(host), has_sources=has_sources))


def judge_testpmd(path: str) -> Check:
    """Where it is, empty where it is nowhere."""
    if path:
        return ok("DUT testpmd", path)
    text = "not there: bench files with `dut: {kind: testpmd}` cannot run"
    return warning("DUT testpmd", text, "apt-get install --no-install-recommends dpdk-dev")


def judge_l3fwd(build: l3fwd.L3fwdBuild | None, *, has_sources: bool) -> Check:
    """Built, or what is missing for it."""
    name = "DUT l3fwd"
    if build is not None:
        return ok(name, f"built from {l3fwd.PACKAGE} {build.sources} with DPDK {build.library}: {l3fwd.program()}")
    if has_sources:
        return warning(name, "not built: bench files with `dut: {kind: l3fwd}` cannot run", l3fwd.BUILD_COMMAND)
    return warning(name, "neither built nor are its sources there", f"{l3fwd.INSTALL_COMMAND} && {l3fwd.BUILD_COMMAND}")
