"""Packages of other distributions, each unpacked into a folder with its C library, and installed nowhere."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from tests.commands import run_checked, run_tried

DEBIANS: Final = ("bullseye", "bookworm", "trixie", "sid")
_KEYS: Final = "/usr/share/keyrings/debian-archive-keyring.gpg"


def unpack(suite: str, packages: Sequence[str], folder: Path) -> Path:
    """Unpacks packages of a suite of Debian and all that they need into a folder of their own, and returns that.

    The test is skipped where they cannot be had.
    """
    root, state = folder / suite, folder / f"{suite}-apt"
    _ask_apt(suite, state, "install", "--yes", "--download-only", *packages)
    root.mkdir()
    for merged in ("bin", "lib", "lib64", "sbin"):
        (root / "usr" / merged).mkdir(parents=True)
        (root / merged).symlink_to(f"usr/{merged}")
    for archive in (state / "archives").glob("*.deb"):
        unpacked = f"dpkg-deb --fsys-tarfile {archive} | tar x -C {root} --keep-directory-symlink"
        subprocess.run(unpacked, shell=True, check=True)
    return root


def unpack_source(suite: str, package: str, folder: Path) -> Path:
    """Unpacks the source of a package as its authors released it, and returns its folder."""
    _ask_apt(suite, folder / f"{suite}-apt", "source", "--tar-only", "--download-only", package, cwd=folder)
    [archive] = folder.glob(f"{package}_*.orig.tar.*[!c]")
    run_checked(("tar", "xf", archive, "-C", folder))
    [unpacked] = folder.glob(f"{package}-*/")
    return unpacked


def _ask_apt(suite: str, state: Path, *words: str, cwd: Path | None = None) -> None:
    """Runs apt with lists and a status of its own."""
    for part in ("lists/partial", "archives/partial"):
        (state / part).mkdir(parents=True, exist_ok=True)
    sources = (f"{kind} [signed-by={_KEYS}] http://deb.debian.org/debian {suite} main\n" for kind in ("deb", "deb-src"))
    (state / "sources.list").write_text("".join(sources))
    (state / "status").touch()
    settings = {
        "Dir::Etc::sourcelist": state / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": state / "lists",
        "Dir::State::status": state / "status",
        "Dir::Cache": state,
        "Dir::Cache::archives": state / "archives",
        "APT::Sandbox::User": "root",
        "APT::Install-Recommends": "false",
        "Debug::NoLocking": "true",
        "Acquire::Languages": "none",
    }
    options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    for command in (["update"], words):
        ended = run_tried(["apt-get", "--quiet", *options, *command], cwd=cwd)
        if ended.returncode:
            pytest.skip(f"{words[-1]} of {suite} cannot be had: {ended.stderr.strip()[-200:]}")


def command_of(root: Path, program: str) -> str:
    """Returns the words of a shell that start a program with the libraries of its distribution."""
    libraries = root / "usr/lib/x86_64-linux-gnu"
    loader = next(path for path in sorted(libraries.glob("ld-*.so*")) if path.is_file())
    return f"{loader} --library-path {libraries} {root}/usr/bin/{program}"
