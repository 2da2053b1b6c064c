"""Where mounts and servers of a host are made: outside of its network namespace, but inside its network.

``ip netns exec`` gives each command mounts of its own, which nobody else sees and which end with it. So what belongs to
a namespace is run on the host that holds it, by ``nsenter``, which changes the network and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nicbench.errors import NotReadyError
from nicbench.hosts.base import Host
from nicbench.hosts.netns import NAMESPACE_FOLDER, NetnsHost
from nicbench.shares.base import Command, FileSystem, Program
from nicbench.workloads.base import last_words

_WHERE = 'for each; do command -v "$each" && exit; done; exit 1'


@dataclass(frozen=True, slots=True)
class Place:
    """``host`` is where files and mounts are, ``prefix`` what puts a command into the network."""

    host: Host
    prefix: Command = ()

    def inside(self, command: Sequence[str]) -> Command:
        """The command as ``host`` is to run it."""
        return (*self.prefix, *command)


def place_of(host: Host) -> Place:
    """Of a host of the testbed."""
    if not isinstance(host, NetnsHost):
        return Place(host)
    return Place(host.inner, ("nsenter", f"--net={NAMESPACE_FOLDER}/{host.namespace}"))


async def find_programs(host: Host, programs: Sequence[Program]) -> dict[str, str]:
    """Where they are; NotReadyError names the package of one that is not."""
    found: dict[str, str] = {}
    for program in programs:
        done = await host.run(("sh", "-c", _WHERE, "where", program.name, *program.paths), check=False)
        if done.status != 0 or not done.stdout.strip():
            raise NotReadyError(
                f"there is no program {program.name}",
                place=host.name,
                next_step=f"apt-get install {program.package}",
            )
        found[program.name] = done.stdout.split("\n")[0].strip()
    return found


async def require_file_system(host: Host, wanted: FileSystem) -> None:
    """Loads its module where there is one; NotReadyError where the kernel has none."""
    if _has(await host.read_file("/proc/filesystems"), wanted.name):
        return
    done = await host.machine.run(
        ("sh", "-c", 'PATH=$PATH:/usr/sbin:/sbin; modprobe -- "$1"', "sh", wanted.name), check=False
    )
    if _has(await host.read_file("/proc/filesystems"), wanted.name):
        return
    raise NotReadyError(
        f"the kernel has no {wanted.words}: {wanted.name} is not in /proc/filesystems"
        + (f", and modprobe says: {last_words(done.stderr)}" if done.stderr.strip() else ""),
        place=host.name,
        next_step="take a machine, or a virtual one, whose kernel has it, or another kind of share",
    )


async def require_check(host: Host, check: Command) -> None:
    """NotReadyError with what it prints, where it fails."""
    done = await host.run(check, check=False)
    if done.status != 0:
        raise NotReadyError(
            last_words(done.stdout) or last_words(done.stderr) or f"{' '.join(check)} fails",
            place=host.name,
            next_step="end that server for the time of the test, or name directories that are mounted already",
        )


def _has(file_systems: str | None, name: str) -> bool:
    return any(line.split()[-1:] == [name] for line in (file_systems or "").splitlines())
