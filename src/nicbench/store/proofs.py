"""Proofs of ports on this machine: written by `nicbench prove`, read by `doctor` and by runs on the same port."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from nicbench.core.errors import HostError
from nicbench.core.proof import Proof
from nicbench.store.files import damaged_error, json_text, make_folder, read_bytes, write_atomically

FOLDER: Final = Path(os.environ.get("NICBENCH_PROOFS", "/var/lib/nicbench/proofs"))


def save_proof(proof: Proof, folder: Path = FOLDER) -> Path:
    """Writes the proof in place of an earlier one of the same ports, and returns its path. HostError."""
    make_folder(folder)
    path = folder / f"{'-'.join(port.fingerprint for port in proof.ports)}.json"
    write_atomically(path, f"{json_text(proof)}\n".encode())
    return path


def read_proof(path: Path) -> Proof:
    """Reads one proof. HostError where it is damaged, with the place."""
    try:
        return Proof.model_validate_json(read_bytes(path))
    except ValidationError as error:
        raise damaged_error(error, path) from error


def find_proof(fingerprint: str, folder: Path = FOLDER) -> Proof | None:
    """The newest proof of the port; damaged files are passed over, as they prove nothing."""
    found = []
    for path in folder.glob(f"*{fingerprint}*.json"):
        try:
            found.append(read_proof(path))
        except HostError:
            continue
    return max(found, key=lambda proof: proof.made_at, default=None)
