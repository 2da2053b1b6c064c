"""Bare userlands that packages are installed into: a tree of files of its own, the kernel of this machine, no compiler.

What is measured there has namespaces of its own for mounts, processes and network, so that nothing is left of it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
# The new network has a /sys of its own, as `ip netns exec` makes one.
_ENTER = (
    'mount -t proc proc "$1/proc" && mount -t sysfs sys "$1/sys" && mount --rbind /dev "$1/dev" && exec chroot "$@"'
)


class Bare:
    """A userland in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(self, command: str, timeout_s: float = 600) -> None:
        """Runs a command of the shell in it, with this machine's network."""
        self._run(command, (), timeout_s)

    def measure(self, command: str, timeout_s: float = 600) -> str:
        """Runs a command of the shell in it, without any network; gives what it said."""
        return self._run(command, ("--net",), timeout_s)

    def _run(self, command: str, further: tuple[str, ...], timeout_s: float) -> str:
        apart = ("unshare", "--mount", "--pid", "--fork", "--kill-child", *further)
        entered = (*apart, "sh", "-c", _ENTER, "sh", str(self.folder))
        environment = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root",
            "LANG": "C.UTF-8",
            "DEBIAN_FRONTEND": "noninteractive",
            "PIP_CERT": "/ca-certificates.crt",
        }
        done = subprocess.run(
            (*entered, "sh", "-ec", command),
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout + done.stderr

    def has_no_compiler(self) -> bool:
        return not any((self.folder / "usr/bin" / name).exists() for name in ("gcc", "cc", "clang", "cargo"))


@contextmanager
def bare(name: str, folder: Path) -> Iterator[Bare]:
    """The userland ``name`` of scripts/fetch-roots, unpacked in ``folder``; skips where it cannot be had."""
    if os.geteuid() != 0:
        pytest.skip("unpacking a userland needs root")
    fetched = subprocess.run(["scripts/fetch-roots", name], cwd=ROOT, capture_output=True, text=True, check=False)
    if fetched.returncode != 0:
        pytest.skip(f"{name}: {fetched.stderr.strip()[-300:]}")
    root = folder / name
    root.mkdir()
    subprocess.run(["tar", "-x", "--exclude=./dev/*", "-f", fetched.stdout.strip(), "-C", root], check=True)
    for place in ("/etc/resolv.conf", "/etc/hosts"):
        shutil.copy(place, root / place.lstrip("/"))
    if CERTIFICATES.exists():
        shutil.copy(CERTIFICATES, root / "ca-certificates.crt")
    try:
        yield Bare(root)
    finally:
        shutil.rmtree(root)
