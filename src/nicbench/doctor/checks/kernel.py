"""What the kernel must offer: network namespaces, veth pairs, XDP programs, AF_XDP sockets. Each is tried."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from nicbench.core.errors import NicbenchError
from nicbench.doctor.base import Check, Examination, missing, ok
from nicbench.hosts.base import Host
from nicbench.tuning.bpf import attachment, deploy_program

# Tried in a namespace without a name, which ends with the shell: nothing remains.
_VETH = "ip link add name nbdoc0 type veth peer name nbdoc1"
_XDP_SOCKET = "import socket; socket.socket(44, socket.SOCK_RAW).close()"  # 44 is AF_XDP


@dataclass(frozen=True, slots=True)
class _Trial:
    """A feature, the command that tries it, what lacks without it, and what may fix it."""

    name: str
    command: tuple[str, ...]
    lacks: str
    fix: str | None


class Kernel(Examination):
    """Tries each feature the way a run uses it."""

    kind = "kernel"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        checks = [await _try(host, trial) for trial in _trials()]
        checks.append(await _try_xdp_program(host))
        return tuple(checks)


def _trials() -> tuple[_Trial, ...]:
    alone = ("unshare", "--net")
    return (
        _Trial("network namespaces", (*alone, "true"), "labs cannot be made", "sudo nicbench doctor"),
        _Trial("veth pairs", (*alone, "sh", "-c", _VETH), "the veth lab cannot be made", "modprobe veth"),
        _Trial(
            "AF_XDP sockets",
            (sys.executable, "-c", _XDP_SOCKET),
            "use `driver: net_af_packet`, or a kernel with CONFIG_XDP_SOCKETS",
            None,
        ),
    )


async def _try(host: Host, trial: _Trial) -> Check:
    try:
        done = await host.run(trial.command, check=False)
    except NicbenchError as error:
        return missing(trial.name, f"{error.message}: {trial.lacks}", error.next_step)
    if done.status == 0:
        return ok(trial.name, "work")
    return missing(trial.name, f"{_reason(done.stderr)}: {trial.lacks}", trial.fix)


async def _try_xdp_program(host: Host) -> Check:
    """Loaded and attached to one end of a veth pair."""
    name = "XDP programs"
    try:
        program = await deploy_program(host, "pass")
        attach = ("sh", "-ec", f'{_VETH}; exec "$@"', "sh", *attachment(program, "nbdoc0", "xdpdrv"))
        done = await host.run(("unshare", "--net", *attach), check=False)
    except NicbenchError as error:
        return missing(name, error.message.splitlines()[0], error.next_step)
    if done.status == 0:
        return ok(name, "are loaded and attached")
    return missing(name, f"{_reason(done.stderr)}: the policer and AF_XDP need them", "sudo nicbench doctor")


def _reason(stderr: str) -> str:
    lines = [line for line in stderr.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "failed without a message"
