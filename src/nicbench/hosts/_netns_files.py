"""Settings of a network namespace of this machine, read and written without a program: labs have a hundred of them.

What ``/proc/sys/net`` holds depends on the thread that opens it (fs/proc/proc_sysctl.c of the kernel): one enters the
namespace, works and ends. ``/sys`` is not like that: it shows the namespace in which it was mounted.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from typing import TypeVar

_CLONE_NEWNET = 0x40000000  # <linux/sched.h>
_NAMESPACES = "/run/netns"
T = TypeVar("T")


class CannotEnterError(Exception):
    """The namespace is not there, or may not be entered."""


def inside(namespace: str, work: Callable[[], T]) -> T:
    """What ``work`` gives in a network namespace of that name; its OSError is raised here. CannotEnterError.

    ``work`` must not wait: the caller does.
    """
    given: list[T] = []
    raised: list[Exception] = []

    def enter_and_work() -> None:
        try:
            _enter(namespace)
            given.append(work())
        except Exception as error:  # raised again where it is waited for
            raised.append(error)

    thread = threading.Thread(target=enter_and_work, name=f"netns {namespace}")
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return given[0]


def _enter(namespace: str) -> None:
    try:
        descriptor = os.open(f"{_NAMESPACES}/{namespace}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise CannotEnterError(str(error)) from error
    try:
        library = ctypes.CDLL(None, use_errno=True)
        if library.setns(descriptor, _CLONE_NEWNET) != 0:
            raise CannotEnterError(os.strerror(ctypes.get_errno()))
    finally:
        os.close(descriptor)
