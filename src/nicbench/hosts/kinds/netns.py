"""A network namespace of another host: every command runs inside it, with its own view of /sys."""

from __future__ import annotations

import ctypes
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError, UsageError
from nicbench.hosts.base import Completed, Host, Process
from nicbench.hosts.kinds.local import LocalHost

NAMESPACE_FOLDER = "/run/netns"
_CLONE_NEWNET = 0x40000000  # <linux/sched.h>
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
# The content of these depends on the namespace of the process that opens them; all other files are the inner host's.
_SETTINGS = "/proc/sys/net/"
_PER_NAMESPACE = ("/proc/net", _SETTINGS, "/proc/self/", "/proc/thread-self/", "/sys/")
T = TypeVar("T")


# Settings of a namespace of this machine are read and written without starting a program: labs have a hundred of them.
# The content of ``/proc/sys/net`` depends on the thread that opens it (fs/proc/proc_sysctl.c of the kernel), so a
# thread enters the namespace, works and ends. ``/sys`` is different: it shows the namespace in which it was mounted.


class CannotEnterError(Exception):
    """The namespace does not exist or may not be entered."""


def run_inside(namespace: str, work: Callable[[], T]) -> T:
    """Runs ``work`` in a network namespace of this machine and returns its result. CannotEnterError; errors of work.

    ``work`` must be quick: the caller waits for it.
    """
    results = []
    raised = []

    def enter_and_work() -> None:
        try:
            _enter(namespace)
            results.append(work())
        except Exception as error:  # raised again in the caller's thread
            raised.append(error)

    thread = threading.Thread(target=enter_and_work, name=f"netns {namespace}")
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return results[0]


def _enter(namespace: str) -> None:
    try:
        descriptor = os.open(f"{NAMESPACE_FOLDER}/{namespace}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise CannotEnterError(str(error)) from error
    try:
        library = ctypes.CDLL(None, use_errno=True)
        if library.setns(descriptor, _CLONE_NEWNET) != 0:
            raise CannotEnterError(os.strerror(ctypes.get_errno()))
    finally:
        os.close(descriptor)


class NetnsOptions(Frozen):
    """Options of a namespace: ``hosts: {dut: {kind: netns, namespace: dut}}``; ``create`` makes it for the run."""

    namespace: str
    """Its name, as `ip netns list` shows it."""
    create: bool = False
    """nicbench makes the namespace, without a default route, and moves the interfaces (`device`) of its ports into it.
    Both are undone.
    """


class NetnsHost(Host):
    """Runs commands on an inner host by ``ip netns exec NAMESPACE``.

    That mounts a fresh /sys; a plain ``nsenter --net`` would still show the outer interfaces there.
    """

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
            with self._errors_of_here(), suppress(CannotEnterError):  # then `ip netns exec` below says why
                return run_inside(self.namespace, lambda: local.read_now(path))
        done = await self.run(("cat", "--", path), check=False)
        if done.status == 0:
            return done.stdout
        if "No such file or directory" in done.stderr and "network namespace" not in done.stderr:
            return None
        raise HostError(f"cannot read {path}: {done.reason}", place=self.name)

    async def write_file(self, path: str, text: str) -> None:
        if not path.startswith(_PER_NAMESPACE):
            await self.inner.write_file(path, text)
            return
        if isinstance(self.inner, LocalHost) and path.startswith(_SETTINGS):
            local = self.inner
            with self._errors_of_here(), suppress(CannotEnterError):
                run_inside(self.namespace, lambda: local.write_now(path, text))
                return
        # tee, because it names the kernel's reason and needs no shell quoting.
        done = await self.run(("tee", "--", path), input_text=text, check=False)
        if done.status != 0:
            raise HostError(f"cannot write {text.strip()!r} to {path}: {done.reason}", place=self.name)

    @contextmanager
    def _errors_of_here(self) -> Iterator[None]:
        """Names this host as the place of errors of the inner one."""
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
    """Returns the host of the whole machine that a namespace or container is on."""
    return host.machine
