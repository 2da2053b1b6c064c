"""Containers of podman and docker: command lines, error messages, processes in them, and removal of leftovers."""

from __future__ import annotations

import re
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

from nicbench.core.errors import HostError, NicbenchError, NotReadyError
from nicbench.core.frozen import frozen
from nicbench.core.lists import without_none
from nicbench.hosts.base import Host, Process
from nicbench.hosts.options import ContainerOptions
from nicbench.hosts.owner import MARK as OWNER_MARK
from nicbench.hosts.owner import Owner, boot_id, owner_mark

OWNER_LABEL = "nicbench.owner"
BOOT_LABEL = "nicbench.boot"
READY = "nicbench is ready"
MARK = "NICBENCH_COMMAND"
"""Environment variable by which the processes of a command are found; each command has its own value."""
# The container's first process ends when its stdin does, and then the kernel ends every other process of the container:
# a controller that is killed leaves nothing behind. The shell waits for any child, and so reaps orphans.
_FIRST_PROCESS = f'echo "{READY}"; exec 3<&0; cat <&3 >/dev/null & wait $!'
# Prints its process id before it becomes the command, or `missing`. It is in the container's environment, so that
# messages about a failed command show the command and not this script.
_BEGIN = 'command -v "$1" >/dev/null 2>&1 || { echo missing; exit 127; }; echo "$$"; exec "$@"'
BEGIN_VARIABLE = "NICBENCH_BEGIN"
_HIGHEST_SIGNAL = 64
_LIMITS = re.compile(r"rlimit", re.IGNORECASE)
_HYBRID = re.compile(r"cgroups in hybrid mode not supported")
_NO_SYSTEMD = re.compile(r"sd-bus|systemd/private|systemd cgroup.*(?:not|no) |Interactive authentication required")
_ENDED = ("exited", "dead", "stopped", "removing")
_REMOVAL_TRIES = 2  # podman's first removal fails where the container's monitor was killed, but prepares the second


# Command lines of podman and docker, and the meaning of their messages.


@frozen
class Adaptation:
    """Arguments that a machine needs beyond the plain command line, and why."""

    why: str
    engine_arguments: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()


def run_command(
    options: ContainerOptions, name: str, network: str, labels: Mapping[str, str], adaptations: Sequence[Adaptation]
) -> tuple[str, ...]:
    """Builds the command that starts the container in the foreground, with our stdin."""
    root = ("--rootfs", f"{options.root}:O") if options.root is not None else (str(options.image),)
    return (
        *engine_command(options, adaptations),
        *("run", "--rm", "--interactive", f"--name={name}", "--pull=never", "--log-driver=none", "--stop-timeout=0"),
        *(f"--label={key}={value}" for key, value in labels.items()),
        f"--network={network}",
        *((f"--cpuset-cpus={options.cpus}",) if options.cpus is not None else ()),
        *((f"--cpus={options.cpu_time:g}",) if options.cpu_time is not None else ()),
        *((f"--memory={options.memory}",) if options.memory is not None else ()),
        *((f"--cpuset-mems={options.memory_node}",) if options.memory_node is not None else ()),
        *(f"--volume={folder}:{folder}" for folder in options.folders),
        *(("--privileged",) if options.privileged else ()),
        f"--env={BEGIN_VARIABLE}={_BEGIN}",
        f"--env={OWNER_MARK}={owner_mark()}",
        *(argument for adaptation in adaptations for argument in adaptation.arguments),
        *options.arguments,
        "--entrypoint=sh",
        *root,
        *("-c", _FIRST_PROCESS),
    )


def exec_prefix(
    engine: Sequence[str], name: str, environment: Mapping[str, str], *, has_input: bool
) -> tuple[str, ...]:
    """Builds the words that precede a command to run it in the container.

    The first line of its output is its process id there, or ``missing``.
    """
    return (
        *(*engine, "exec"),
        *(("-i",) if has_input else ()),
        *(f"-e{key}={value}" for key, value in environment.items()),
        *(name, "sh", "-c", f'eval "${BEGIN_VARIABLE}"', "sh"),
    )


def engine_command(options: ContainerOptions, adaptations: Sequence[Adaptation] = ()) -> tuple[str, ...]:
    """Builds the engine's command with the arguments that precede its subcommand."""
    adapted = (argument for adaptation in adaptations for argument in adaptation.engine_arguments)
    return (options.engine, *adapted, *options.engine_arguments)


def kill_script(mark: str) -> str:
    """Returns a script that kills, in the container, all processes of a command, in whatever session they are."""
    find = f"grep -lsF {MARK}={mark} /proc/[0-9]*/environ"
    # A process forked between the search and the signal is found in the next round.
    return (
        f"for round in 1 2 3 4 5 6 7 8; do found=$({find}) || exit 0; "
        'for each in $found; do each=${each#/proc/}; kill -KILL "${each%/environ}" 2>/dev/null; done; done'
    )


def status_of(status: int) -> int:
    """Converts an engine's exit status: 128 plus the number of a signal, as in shells, becomes its negative."""
    return 128 - status if 128 < status <= 128 + _HIGHEST_SIGNAL else status


def signal_script(pid: int, number: int) -> str:
    """Returns a script that signals the process group that a process leads, as on every other kind of host."""
    return f"kill -{signal.Signals(number).value} -{pid} 2>/dev/null || kill -{number} {pid} 2>/dev/null || true"


def adaptation_for(options: ContainerOptions, message: str, limits: str, most_processes: str) -> Adaptation | None:
    """Finds an adaptation that may help where the start failed with ``message``; None where none is known.

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
    """Sets the container's limits to the machine's own, which needs no privilege; processes are capped at pid_max."""
    files = _hard_limit(limits, "Max open files")
    processes = _hard_limit(limits, "Max processes")
    highest = int(most_processes) if most_processes.strip().isdigit() else None
    known = without_none((processes, highest))
    nproc = (f"--ulimit=nproc={min(known)}:{min(known)}",) if known else ()
    return (*((f"--ulimit=nofile={files}:{files}",) if files is not None else ()), *nproc)


def _hard_limit(limits: str, what: str) -> int | None:
    """Parses a hard limit from /proc/self/limits; None where it is unlimited or missing."""
    for line in limits.splitlines():
        if line.startswith(what):
            words = line.removeprefix(what).split()
            return int(words[1]) if len(words) > 1 and words[1].isdigit() else None
    return None


def start_error(options: ContainerOptions, message: str, place: str) -> NicbenchError:
    """Makes the error for a failed start, with the next step."""
    said = message.strip()[-2000:] or "it ended without a message"
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


class ContainerProcess(Process):
    """A process in a container; the engine's client has its pipes.

    ``pid`` is its number in the container. ``send`` delivers a signal there, because the engine's client passes none
    on: killing the client would leave the process running. ``errors`` is ``clean_errors`` of its command.
    """

    def __init__(
        self,
        client: Process,
        pid: int,
        send: Callable[[int], Awaitable[None]],
        errors: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._client = client
        self._pid = pid
        self._send = send
        self._errors = errors
        self._ended = False
        self._killed = False

    @property
    def pid(self) -> int | None:
        return self._pid

    async def write_line(self, line: str) -> None:
        with self._errors():
            await self._client.write_line(line)

    async def read_line(self, timeout_s: float | None = None) -> str | None:
        with self._errors():
            return await self._client.read_line(timeout_s)

    async def read_some(self) -> bytes:
        with self._errors():
            return await self._client.read_some()

    async def close_stdin(self) -> None:
        await self._client.close_stdin()

    async def wait(self, timeout_s: float | None = None) -> int:
        with self._errors():
            status = status_of(await self._client.wait(timeout_s))
        self._ended = True
        return status

    async def signal(self, number: int) -> None:
        # Children of a process may outlive it and still have to be killed.
        if number == signal.SIGKILL and not self._killed:
            self._killed = True
            await self._send(number)
        elif not self._ended:
            await self._send(number)

    def stderr_tail(self) -> str:
        return self._client.stderr_tail()


@contextmanager
def clean_errors(prefix: Sequence[str], place: str) -> Iterator[None]:
    """Removes the engine's words from errors, so that they name the command in the container alone."""
    try:
        yield
    except HostError as error:
        raise HostError(error.message.replace(f"{' '.join(prefix)} ", ""), place=place) from error


# Leftover containers, whose controller is gone.


async def remove_left_containers(machine: Host, engine: Sequence[str]) -> list[str]:
    """Removes the containers that dead runs left on this machine, found by their labels; returns their ids."""
    listed = await machine.run((*engine, "ps", "--all", "--quiet", f"--filter=label={OWNER_LABEL}"), check=False)
    if listed.status != 0 or not listed.stdout.split():
        return []  # an engine that cannot list says why when it cannot start
    form = f'{{{{.Id}}}} {{{{.State.Status}}}} {{{{index .Config.Labels "{OWNER_LABEL}"}}}}'
    form += f' {{{{index .Config.Labels "{BOOT_LABEL}"}}}}'
    shown = await machine.run((*engine, "inspect", f"--format={form}", *listed.stdout.split()), check=False)
    booted = (await machine.read_file("/proc/sys/kernel/random/boot_id") or "").strip()
    left = [line.split()[0] for line in shown.stdout.splitlines() if is_left(line, booted)]
    for container in left:
        for _ in range(_REMOVAL_TRIES):
            if (await machine.run((*engine, "rm", "--force", container), check=False)).status == 0:
                break
    return left


def is_left(line: str, booted: str) -> bool:
    """Whether the container in the line ``id state owner boot`` belongs to a dead run. ``booted`` is the current boot.

    A container ends by itself when its controller does; it is left over where its engine was killed too, or the
    machine went down.
    """
    words = line.split()
    if len(words) != 4:
        return False
    _, state, owner_text, boot = words
    pid, _, rest = owner_text.partition(":")
    ticks, _, owner_boot = rest.partition(":")
    if not (pid.isdigit() and ticks.isdigit()):
        return False
    if boot != booted or state in _ENDED:
        return True
    # Only for a controller on this very machine can be known that it is dead.
    owner = Owner(pid=int(pid), start_ticks=int(ticks), boot_id=owner_boot)
    return owner_boot == boot_id() and not owner.is_alive
