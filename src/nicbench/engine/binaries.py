"""What was built: the engine's binaries and the BPF programs. Where they are, and how they reach other hosts."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path

from nicbench.core.errors import NotReadyError
from nicbench.core.shipped import clone, how_to_mend
from nicbench.hosts.base import Host

# Finding what was built: in the build tree of a clone, in the package where it was installed.


def built_folder() -> Path:
    """$NICBENCH_ENGINE_DIR, else where scripts/setup puts what it builds, or where a wheel has it."""
    if chosen := os.environ.get("NICBENCH_ENGINE_DIR"):
        return Path(chosen)
    root = clone()
    return root / "engine" / "target" / "release" if root else Path(__file__).resolve().parents[1] / "bin"


def find_binary(name: str, folder: str | None = None) -> Path:
    """The binary ``name``: in ``folder``, else where what was built is.

    NotReadyError where it is not there: falling back to another folder would measure with the wrong engine.
    """
    chosen = Path(folder) if folder else built_folder()
    if os.access(chosen / name, os.X_OK):
        return chosen / name
    raise NotReadyError(
        f"the engine {name} is not built; looked in {chosen}",
        place=name,
        next_step=f"{how_to_mend()}, or set NICBENCH_ENGINE_DIR to the folder that holds it",
    )


def find_program(name: str) -> Path:
    """The BPF program (XDP, tc) of the source ``NAME.bpf.c``, compiled; NotReadyError where it is not there.

    It calls the kernel by its stable interface alone, so that one object runs on every kernel and architecture.
    """
    path = built_folder() / f"{name}.bpf.o"
    if path.is_file():
        return path
    raise NotReadyError(
        f"the BPF program {name} is not compiled; looked in {path.parent}",
        place=path.name,
        next_step=how_to_mend(),
    )


# Binaries are copied to other hosts where they differ, into a folder that only their user can write.


# The folder must belong to its user alone, because its files are executed, mostly as root. /tmp and /var/tmp are
# mounted noexec on hardened machines, a cache folder is not.
_LOCATE = """
name=$1 folder=$2
[ -n "$folder" ] || if [ "$(id -u)" = 0 ]; then folder=/var/cache/nicbench; else
    folder=${XDG_CACHE_HOME:-$HOME/.cache}/nicbench
    mkdir -p "${folder%/*}"
fi
[ -e "$folder" ] || mkdir -m 700 "$folder" || exit 1
found=$(stat -c '%F, owner %u, mode %a' "$folder")
# As mkdir makes it by default: others could read there, and nobody could write.
if [ "$found" = "directory, owner $(id -u), mode 755" ]; then
    chmod 700 "$folder"
    found=$(stat -c '%F, owner %u, mode %a' "$folder")
fi
[ "$found" = "directory, owner $(id -u), mode 700" ] || { echo "$folder is not ours alone: $found" >&2; exit 1; }
find "$folder" -maxdepth 1 -type f -name "${name%-*}-*" -mtime +30 ! -name "$name" -exec rm -f -- {} +
touch -c -- "$folder/$name"
echo "$folder/$name"
[ ! -f "$folder/$name" ] || sha256sum <"$folder/$name"
"""


async def deploy_binary(host: Host, name: str, engine_folder: str | None = None) -> str:
    """Makes sure that ``host`` has the binary ``name`` and gives its path there.

    NotReadyError where it is not built, or cannot be put there.
    """
    return await deploy_file(host, find_binary(name, engine_folder))


async def deploy_file(host: Host, binary: Path, folder: str = "") -> str:
    """Makes sure that ``host`` has this file and gives its path there; NotReadyError where it cannot be put there.

    The file's name on the host contains its checksum, so that a running binary is never replaced.
    """
    if host.shares_files:
        return str(binary)
    checksum = await asyncio.to_thread(_checksum, binary)
    name = f"{binary.name}-{checksum[:16]}"
    path, found = await _locate(host, name, folder)
    if found != checksum:
        await host.put(binary, path, 0o700)
        _, found = await _locate(host, name, folder)
    if found != checksum:
        raise NotReadyError(
            f"{path} differs from what was copied", place=host.name, next_step=f"see who writes there: ls -la {path}"
        )
    return path


async def _locate(host: Host, name: str, folder: str) -> tuple[str, str | None]:
    """The path that the file belongs at on the host, and the checksum of the file there; None without one."""
    done = await host.run(("sh", "-c", _LOCATE, "look", name, folder), check=False)
    lines = done.stdout.split("\n")
    if done.status != 0 or not lines[0]:
        raise NotReadyError(
            f"{name.rpartition('-')[0]} cannot be copied: {done.stderr.strip() or f'exit status {done.status}'}",
            place=host.name,
            next_step="remove that folder, or restrict it to the user of the host (chmod 700)",
        )
    return lines[0], lines[1].split()[0] if len(lines) > 1 and lines[1] else None


def _checksum(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
