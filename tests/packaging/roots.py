"""Bare userlands that packages are installed into: a tree of files of its own, the kernel of this machine, no compiler.

What runs there has namespaces of its own for mounts and processes, so that nothing is left of it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.commands import run_checked, run_tried

ROOT = Path(__file__).resolve().parents[2]
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
# `ip netns exec` needs a / that is a mount of its own; what is mounted ends with the command.
_ENTER = (
    'mount --bind "$1" "$1" && mount -t proc proc "$1/proc" && mount -t sysfs sys "$1/sys" && '
    'mount --rbind /dev "$1/dev" && exec chroot "$@"'
)


class Bare:
    """A userland in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, command: str, timeout_s: float = 900) -> str:
        """Runs a command of the shell in it, and gives what it said; a lab makes its own network namespaces."""
        apart = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
        entered = (*apart, "sh", "-c", _ENTER, "sh", str(self.folder))
        environment = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root",
            "LANG": "C.UTF-8",
            "DEBIAN_FRONTEND": "noninteractive",
            "PIP_CERT": "/ca-certificates.crt",
        }
        done = run_tried((*entered, "sh", "-ec", command), env=environment, timeout=timeout_s)
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout + done.stderr

    def has_no_compiler(self) -> bool:
        return not any((self.folder / "usr/bin" / name).exists() for name in ("gcc", "cc", "clang", "cargo"))


@contextmanager
def bare(name: str, folder: Path) -> Iterator[Bare]:
    """The userland ``name`` of scripts/fetch-roots, unpacked in ``folder``; skips where it cannot be had."""
    if os.geteuid() != 0:
        pytest.skip("unpacking a userland needs root")
    fetched = run_tried(["scripts/fetch-roots", name], cwd=ROOT)
    if fetched.returncode != 0:
        pytest.skip(f"{name}: {fetched.stderr.strip()[-300:]}")
    root = folder / name
    root.mkdir()
    run_checked(["tar", "-x", "--exclude=./dev/*", "-f", fetched.stdout.strip(), "-C", root])
    for place in ("/etc/resolv.conf", "/etc/hosts"):
        shutil.copy(place, root / place.lstrip("/"))
    if CERTIFICATES.exists():
        shutil.copy(CERTIFICATES, root / "ca-certificates.crt")
    try:
        yield Bare(root)
    finally:
        shutil.rmtree(root)
