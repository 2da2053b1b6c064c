"""A network namespace of another host: every command runs inside it, with its own /sys.

``ip netns exec`` mounts a fresh /sys; a plain ``nsenter --net`` would still show the outer interfaces there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from nicbench.errors import HostError, UsageError
from nicbench.hosts._netns_files import CannotEnterError, inside
from nicbench.hosts.base import Completed, Host, Process
from nicbench.hosts.local import LocalHost
from nicbench.model.base import Frozen

NAMESPACE_FOLDER = "/run/netns"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
# What these hold depends on the namespace of the process that opens them; all other files are the inner host's.
_SETTINGS = "/proc/sys/net/"
_PER_NAMESPACE = ("/proc/net", _SETTINGS, "/proc/self/", "/proc/thread-self/", "/sys/")


class NetnsOptions(Frozen):
    """``hosts: {dut: {kind: netns, namespace: dut}}``; with ``create`` nicbench makes it, for the run alone."""

    namespace: str
    create: bool = False


class NetnsHost(Host):
    """Prefixes the commands of an inner host with ``ip netns exec NAMESPACE``."""

    kind = "netns"
    Options = NetnsOptions
    stands_on = ()

    def __init__(self, inner: Host, namespace: str, name: str | None = None) -> None:
        if not _NAME.fullmatch(namespace):
            raise UsageError(
                f"{namespace!r} is not a name of a network namespace",
                next_step="use letters, digits, '_', '-' and '.', as `ip netns list` shows them",
            )
        self.inner = inner
        self.namespace = namespace
        self.name = name or namespace
        self._prefix = ("ip", "netns", "exec", namespace)

    @classmethod
    def of_spec(cls, spec: Mapping[str, Any], name: str | None, make: Callable[[Mapping[str, Any]], Host]) -> NetnsHost:
        return cls(make(spec.get("inner", {"kind": "local"})), str(spec["namespace"]), name)

    def spec(self) -> dict[str, Any]:
        return {"kind": self.kind, "namespace": self.namespace, "inner": self.inner.spec()}

    @property
    def machine(self) -> Host:
        return self.inner.machine

    async def close(self) -> None:
        await self.inner.close()

    async def exists(self) -> bool:
        """Whether the namespace is there."""
        done = await self.inner.run(("test", "-e", f"{NAMESPACE_FOLDER}/{self.namespace}"), check=False)
        return done.status == 0

    async def run(
        self,
        command: Sequence[str],
        *,
        input_text: str | None = None,
        timeout_s: float = 30.0,
        check: bool = True,
        environment: Mapping[str, str] | None = None,
    ) -> Completed:
        return await self.inner.run(
            (*self._prefix, *command),
            input_text=input_text,
            timeout_s=timeout_s,
            check=check,
            environment=environment,
        )

    async def start(self, command: Sequence[str], *, environment: Mapping[str, str] | None = None) -> Process:
        return await self.inner.start((*self._prefix, *command), environment=environment)

    async def read_file(self, path: str) -> str | None:
        if not path.startswith(_PER_NAMESPACE):
            return await self.inner.read_file(path)
        if isinstance(self.inner, LocalHost) and path.startswith(_SETTINGS):
            local = self.inner
            with self._said_of_here(), suppress(CannotEnterError):  # the program says why
                return inside(self.namespace, lambda: local.read_now(path))
        done = await self.run(("cat", "--", path), check=False)
        if done.status == 0:
            return done.stdout
        if "No such file or directory" in done.stderr and "network namespace" not in done.stderr:
            return None
        raise HostError(f"cannot read {path}: {_reason(done)}", place=self.name)

    async def write_file(self, path: str, text: str) -> None:
        if not path.startswith(_PER_NAMESPACE):
            await self.inner.write_file(path, text)
            return
        if isinstance(self.inner, LocalHost) and path.startswith(_SETTINGS):
            local = self.inner
            with self._said_of_here(), suppress(CannotEnterError):
                inside(self.namespace, lambda: local.write_now(path, text))
                return
        # tee, because it names the kernel's reason and needs no shell quoting.
        done = await self.run(("tee", "--", path), input_text=text, check=False)
        if done.status != 0:
            raise HostError(f"cannot write {text.strip()!r} to {path}: {_reason(done)}", place=self.name)

    @contextmanager
    def _said_of_here(self) -> Iterator[None]:
        try:
            yield
        except HostError as error:
            raise HostError(error.message, place=self.name) from error

    async def put(self, local: Path, remote: str, mode: int = 0o644) -> None:
        await self.inner.put(local, remote, mode)

    async def get(self, remote: str, local: Path) -> None:
        await self.inner.get(remote, local)

    @property
    def shares_files(self) -> bool:
        return self.inner.shares_files

    async def reconnect(self) -> None:
        await self.inner.reconnect()


def outermost(host: Host) -> Host:
    """The host that holds the namespace or the container, for what belongs to the whole machine."""
    return host.machine


def _reason(done: Completed) -> str:
    """The last line of stderr, where the tools put it."""
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else f"exit status {done.status}"
