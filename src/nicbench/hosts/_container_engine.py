"""Command lines of podman and docker, and what their messages mean: pure text."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nicbench.errors import NicbenchError, NotReadyError
from nicbench.hosts._container_options import ContainerOptions

OWNER_LABEL = "nicbench.owner"
BOOT_LABEL = "nicbench.boot"
READY = "nicbench is ready"
MARK = "NICBENCH_COMMAND"
"""The variable by which what a command started is found again; its value is that command's own."""
# The first process. It ends when its stdin does, and with it, by the kernel, every other process of the container:
# so a controller that is killed leaves nothing. The shell waits for any child, and so buries orphans.
_FIRST_PROCESS = f'echo "{READY}"; exec 3<&0; cat <&3 >/dev/null & wait $!'
# Says its process id before it becomes the command, or that there is no such command. Kept in the container's
# environment, so that the messages of a failed command show the command and not this.
_BEGIN = 'command -v "$1" >/dev/null 2>&1 || { echo missing; exit 127; }; echo "$$"; exec "$@"'
_BEGIN_VARIABLE = "NICBENCH_BEGIN"
_HIGHEST_SIGNAL = 64


@dataclass(frozen=True, slots=True)
class Adaptation:
    """What a machine needs beyond the plain command line, and why, in words."""

    why: str
    engine_arguments: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()


def run_command(
    options: ContainerOptions, name: str, network: str, labels: Mapping[str, str], adaptations: Sequence[Adaptation]
) -> tuple[str, ...]:
    """Starts the container, in the foreground, so that its stdin is ours."""
    root = ("--rootfs", f"{options.root}:O") if options.root is not None else (str(options.image),)
    return (
        *engine_command(options, adaptations),
        *("run", "--rm", "--interactive", f"--name={name}", "--pull=never", "--log-driver=none", "--stop-timeout=0"),
        *(f"--label={key}={value}" for key, value in labels.items()),
        f"--network={network}",
        *((f"--cpuset-cpus={options.cpus}",) if options.cpus is not None else ()),
        *((f"--memory={options.memory}",) if options.memory is not None else ()),
        *((f"--cpuset-mems={options.memory_node}",) if options.memory_node is not None else ()),
        *(f"--volume={folder}:{folder}" for folder in options.folders),
        *(("--privileged",) if options.privileged else ()),
        f"--env={_BEGIN_VARIABLE}={_BEGIN}",
        *(argument for adaptation in adaptations for argument in adaptation.arguments),
        *options.arguments,
        "--entrypoint=sh",
        *root,
        *("-c", _FIRST_PROCESS),
    )


def exec_prefix(
    engine: Sequence[str], name: str, environment: Mapping[str, str], *, has_input: bool
) -> tuple[str, ...]:
    """What stands before a command that is run in the container.

    The first line of its output is its process id there, or ``missing``.
    """
    return (
        *(*engine, "exec"),
        *(("-i",) if has_input else ()),
        *(f"-e{key}={value}" for key, value in environment.items()),
        *(name, "sh", "-c", f'eval "${_BEGIN_VARIABLE}"', "sh"),
    )


def engine_command(options: ContainerOptions, adaptations: Sequence[Adaptation] = ()) -> tuple[str, ...]:
    """The engine with the arguments that stand before its own command."""
    adapted = (argument for adaptation in adaptations for argument in adaptation.engine_arguments)
    return (options.engine, *adapted, *options.engine_arguments)


def kill_script(mark: str) -> str:
    """Kills, in the container, what a command started, in whatever session it is by now."""
    find = f"grep -lsF {MARK}={mark} /proc/[0-9]*/environ"
    # What is forked between the search and the signal is found the next time.
    return (
        f"for round in 1 2 3 4 5 6 7 8; do found=$({find}) || exit 0; "
        'for each in $found; do each=${each#/proc/}; kill -KILL "${each%/environ}" 2>/dev/null; done; done'
    )


def status_of(status: int) -> int:
    """Engines tell a signal as shells do, by 128 and its number; ours is its negative."""
    return 128 - status if 128 < status <= 128 + _HIGHEST_SIGNAL else status


def signal_script(pid: int, number: int) -> str:
    """To the process's group, which it leads, as on every other kind of host."""
    return f"kill -{signal.Signals(number).value} -{pid} 2>/dev/null || kill -{number} {pid} 2>/dev/null || true"


_LIMITS = re.compile(r"rlimit", re.IGNORECASE)
_HYBRID = re.compile(r"cgroups in hybrid mode not supported")
_NO_SYSTEMD = re.compile(r"sd-bus|systemd/private|systemd cgroup.*(?:not|no) |Interactive authentication required")


def adaptation_for(options: ContainerOptions, message: str, limits: str, most_processes: str) -> Adaptation | None:
    """What may help where the plain start failed with ``message``; None where nothing that we know of.

    ``limits`` is the text of /proc/self/limits there, ``most_processes`` of /proc/sys/kernel/pid_max.
    """
    chosen = {argument.partition("=")[0] for argument in options.engine_arguments}
    if options.engine != "podman":
        return None
    if _LIMITS.search(message):
        return Adaptation(
            "limits of processes and files may not be raised here", arguments=_ulimits(limits, most_processes)
        )
    if _HYBRID.search(message) and "--runtime" not in chosen:
        return Adaptation("crun does not work with this machine's mixed cgroups", engine_arguments=("--runtime=runc",))
    if _NO_SYSTEMD.search(message) and "--cgroup-manager" not in chosen:
        return Adaptation("systemd does not manage cgroups here", engine_arguments=("--cgroup-manager=cgroupfs",))
    return None


def _ulimits(limits: str, most_processes: str) -> tuple[str, ...]:
    """The machine's own limits, which need no right to raise; the engine caps processes by their highest number."""
    files = _hard_limit(limits, "Max open files")
    processes = _hard_limit(limits, "Max processes")
    highest = int(most_processes) if most_processes.strip().isdigit() else None
    known = [number for number in (processes, highest) if number is not None]
    nproc = (f"--ulimit=nproc={min(known)}:{min(known)}",) if known else ()
    return (*((f"--ulimit=nofile={files}:{files}",) if files is not None else ()), *nproc)


def _hard_limit(limits: str, what: str) -> int | None:
    """None where it is unlimited, or not shown."""
    for line in limits.splitlines():
        if line.startswith(what):
            words = line.removeprefix(what).split()
            return int(words[1]) if len(words) > 1 and words[1].isdigit() else None
    return None


def start_error(options: ContainerOptions, message: str, place: str) -> NicbenchError:
    """A failed start in words, with the next step."""
    said = message.strip()[-2000:] or "it ended without a word"
    if re.search(r"image not known|No such image|unable to find image", said, re.IGNORECASE):
        what = f"there is no image {options.image} on this machine, and nicbench pulls none by itself"
        return NotReadyError(what, place=place, next_step=f"{options.engine} pull {options.image}")
    if re.search(r"Cannot connect to the Docker daemon|docker daemon is not running", said):
        return NotReadyError("no docker daemon answers", place=place, next_step="start it: systemctl start docker")
    if re.search(r'"?sh"?`?:? .*(?:not found|no such file)', said, re.IGNORECASE):
        what = f"its file system has no `sh`: {said}"
        return NotReadyError(what, place=place, next_step="use an image with sh, cat, tee, kill and grep")
    if "network namespace" in said or "netns" in said:
        return NotReadyError(f"cannot join its network: {said}", place=place, next_step="check `ip netns list`")
    return NotReadyError(
        f"{options.engine} cannot start the container: {said}",
        place=place,
        next_step="give what this machine needs as `engine_arguments` (before `run`) or `arguments` (after it)",
    )
