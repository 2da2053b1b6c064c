"""The password of a management controller: read when it is used, from the environment or a file of its owner alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from nicbench.core.controller import Controller
from nicbench.system.redfish.answers import RedfishError

_LONGEST: Final = 1024


def password_of(controller: Controller) -> str:
    """RedfishError, which says what to do and never what was read, where there is none or others may read it."""
    if controller.password_env is not None:
        password = os.environ.get(controller.password_env)
        if not password:
            raise RedfishError(
                f"the environment variable {controller.password_env} with the controller's password is not set",
                next_step=f"set it where nicbench is started (sudo: --preserve-env={controller.password_env})",
            )
        return password
    return _of_file(controller.password_file or "")


def _of_file(name: str) -> str:
    try:
        handle = os.open(Path(name).expanduser(), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, RuntimeError) as error:
        why = error.strerror if isinstance(error, OSError) else "no home folder is known"
        raise RedfishError(f"the controller's password file cannot be read: {why}") from None
    with os.fdopen(handle, "rb") as stream:
        state = os.fstat(stream.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise RedfishError("the controller's password file is no regular file")
        if state.st_mode & 0o077:
            raise RedfishError(
                f"the controller's password file can be used by others (mode {state.st_mode & 0o777:04o})",
                next_step=f"chmod 600 {name}",
            )
        content = stream.read(_LONGEST + 1)
    try:
        password = content.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        password = ""
    if not password or len(content) > _LONGEST:
        raise RedfishError(f"the controller's password file holds no password of 1 to {_LONGEST} bytes")
    return password
