"""/run/nicbench: what lies there is obeyed by root, so nobody else may have written it. Modes, whatever the umask."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from pathlib import Path
from typing import Final

from nicbench.core.errors import NotReadyError
from nicbench.core.redaction import visible_name

PRIVATE_FOLDER: Final = 0o700
PRIVATE_FILE: Final = 0o600
PUBLIC_FILE: Final = 0o644
LEASES: Final = "leases"
QUEUE: Final = "queue"
"""Folders there that are not of one run."""

# The same in shell, for other machines: `mine PATH WHOM` tells whether PATH is of root or of the user, is no link, and
# can be changed by nobody else; WHOM is `group` where a group of all who measure may write, else `nobody`. `told PATH`
# says whose it is.
SHELL_CHECK: Final = r"""
mine() {
    [ -e "$1" ] && [ ! -L "$1" ] || return 1
    case $(stat -c %u "$1") in 0 | "$(id -u)") ;; *) return 1 ;; esac
    case $2$(stat -c %A "$1") in *????????w?) return 1 ;; nobody?????w*) return 1 ;; esac
}
told() { stat -c '%n (owner %U, mode %a)' "$1" 2>/dev/null || echo "$1"; }
"""
WHY: Final = "others may have written it, and root would do what it says"


def make_runtime_folder(folder: Path) -> None:
    """Makes /run/nicbench for its owner alone. PermissionError; NotReadyError where everybody may write to it.

    A folder that an administrator gave to a group of users keeps its modes.
    """
    _make(folder)
    state = folder.stat()
    if state.st_uid == os.geteuid() and not state.st_mode & stat.S_IWGRP and state.st_mode & 0o077:
        folder.chmod(PRIVATE_FOLDER)  # whoever can open a folder or a file can hold its lock
    refuse_strangers(folder, group_may_write=True)


def make_run_folder(folder: Path) -> None:
    """Makes the folder of one run below it, for its owner alone, and refuses one that others may write to."""
    _make(folder)
    refuse_strangers(folder)


def refuse_strangers(path: Path, *, group_may_write: bool = False) -> None:
    """NotReadyError where the path is a link, or anybody but root and this user owns it or may write to it."""
    try:
        refuse_state(path, path.lstat(), group_may_write=group_may_write)
    except FileNotFoundError:
        return


def refuse_state(path: Path, state: os.stat_result, *, group_may_write: bool = False) -> None:
    """The same of a file whose state is known, as of one that is open."""
    writable = stat.S_IWOTH if group_may_write else stat.S_IWOTH | stat.S_IWGRP
    if stat.S_ISLNK(state.st_mode):
        what = "a symbolic link"
    elif state.st_uid not in (0, os.geteuid()):
        what = "not root's"
    elif state.st_mode & writable:
        what = "writable by others"
    else:
        return
    name = visible_name(str(path))
    raise NotReadyError(
        f"is {what} (owner {_user(state.st_uid)}, group {_group(state.st_gid)}, "
        f"mode {stat.S_IMODE(state.st_mode):04o}): {WHY}",
        place=name,
        next_step=f"read it; if it is yours, `chown root {name}` and `chmod go-w {name}`; if not, remove it",
    )


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=PRIVATE_FOLDER, parents=True)
    except FileExistsError:
        return
    folder.chmod(PRIVATE_FOLDER)  # a umask may take away, too


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
