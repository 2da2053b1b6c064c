"""Writes an image of one layer as an OCI archive: ``image_archive.py ROOT.tar IMAGE.tar``. No time is in it."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def write_archive(root: Path, archive: Path, name: str) -> None:
    """The layer is the whole of ``root``; the command is nicbench, in the folder /work, which is a volume's place."""
    layer = root.read_bytes()
    # Read by podman, and by Docker since 23. The bytes are the same for every number of threads.
    command = ("zstd", "-12", "--long=27", "--threads=0", "--stdout", "--quiet", root)
    packed = subprocess.run(command, check=True, capture_output=True).stdout
    made = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    started = {
        "Entrypoint": ["nicbench"],
        "Cmd": ["--help"],
        "WorkingDir": "/work",
        "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"],
    }
    configuration = {
        "created": made,
        "architecture": "amd64",
        "os": "linux",
        "config": started,
        "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
        "history": [{"created": made, "created_by": "packaging/image"}],
    }
    blobs: dict[str, bytes] = {}

    def add(content: bytes, kind: str) -> dict[str, Any]:
        digest = _digest(content)
        blobs["blobs/sha256/" + digest.removeprefix("sha256:")] = content
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": digest, "size": len(content)}

    described = add(_json(configuration), "config.v1+json")
    manifest = {"schemaVersion": 2, "config": described, "layers": [add(packed, "layer.v1.tar+zstd")]}
    entry = {**add(_json(manifest), "manifest.v1+json"), "annotations": {"org.opencontainers.image.ref.name": name}}
    blobs["index.json"] = _json({"schemaVersion": 2, "manifests": [entry]})
    blobs["oci-layout"] = _json({"imageLayoutVersion": "1.0.0"})
    with tarfile.open(archive, "w") as stream:
        for path in sorted(blobs):
            about = tarfile.TarInfo(path)
            about.size, about.mode = len(blobs[path]), 0o644
            stream.addfile(about, io.BytesIO(blobs[path]))


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def _digest(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


if __name__ == "__main__":
    write_archive(Path(sys.argv[1]), Path(sys.argv[2]), "localhost/nicbench:latest")
