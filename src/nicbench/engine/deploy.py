"""The engine's binaries on other hosts: copied where the host has not the same one, to where nobody else may write."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

from nicbench.engine.binary import find_binary
from nicbench.errors import NotReadyError
from nicbench.hosts.base import Host

# The folder is made by its user, or is refused: what lies in it is started, as root mostly. /tmp and /var/tmp are
# mounted noexec where somebody followed a guide, a cache is not.
_LOOK = """
name=$1 folder=$2
[ -n "$folder" ] || if [ "$(id -u)" = 0 ]; then folder=/var/cache/nicbench; else
    folder=${XDG_CACHE_HOME:-$HOME/.cache}/nicbench
    mkdir -p "${folder%/*}"
fi
[ -e "$folder" ] || mkdir -m 700 "$folder" || exit 1
found=$(stat -c '%F, owner %u, mode %a' "$folder")
[ "$found" = "directory, owner $(id -u), mode 700" ] || { echo "$folder is not ours alone: $found" >&2; exit 1; }
find "$folder" -maxdepth 1 -type f -name "${name%-*}-*" -mtime +30 ! -name "$name" -exec rm -f -- {} +
touch -c -- "$folder/$name"
echo "$folder/$name"
[ ! -f "$folder/$name" ] || sha256sum <"$folder/$name"
"""


async def deployed(host: Host, name: str, engine_folder: str | None = None) -> str:
    """The path, on ``host``, of the binary ``name``; NotReadyError where it is not built, or cannot be put there."""
    return await deployed_file(host, find_binary(name, engine_folder))


async def deployed_file(host: Host, binary: Path, folder: str = "") -> str:
    """The same for one at hand. Its name on the host has its checksum, so that no running one is ever replaced."""
    if host.shares_files:
        return str(binary)
    checksum = await asyncio.to_thread(_checksum, binary)
    name = f"{binary.name}-{checksum[:16]}"
    path, found = await _look(host, name, folder)
    if found != checksum:
        await host.put(binary, path, 0o700)
        _, found = await _look(host, name, folder)
    if found != checksum:
        raise NotReadyError(
            f"{path} is not what was copied there", place=host.name, next_step=f"see who writes there: ls -la {path}"
        )
    return path


async def _look(host: Host, name: str, folder: str) -> tuple[str, str | None]:
    """Where it belongs on the host, and the checksum of what is there."""
    done = await host.run(("sh", "-c", _LOOK, "look", name, folder), check=False)
    lines = done.stdout.split("\n")
    if done.status != 0 or not lines[0]:
        raise NotReadyError(
            f"{name.rpartition('-')[0]} cannot be put there: {done.stderr.strip() or f'exit status {done.status}'}",
            place=host.name,
            next_step="remove that folder, or give it to the user of the host alone (chmod 700)",
        )
    return lines[0], lines[1].split()[0] if len(lines) > 1 and lines[1] else None


def _checksum(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
