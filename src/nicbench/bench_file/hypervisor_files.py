"""Reads the files that ``hypervisor`` names, beside the bench file; problems have the place of the name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from nicbench.bench_file.models import BenchFile
from nicbench.bench_file.problems import Problem, WrongBenchFileError
from nicbench.bench_file.reader import Node
from nicbench.core.hypervisor import Hypervisor, HypervisorFiles, HypervisorTable
from nicbench.system.hypervisor import read_domain, read_esxcli

KEY: Final = "hypervisor"
_LARGEST_BYTES: Final = 2**20


def read_hypervisors(bench: BenchFile, root: Node) -> BenchFile:
    """The bench file, of every configuration, with what its hypervisors are set to.

    WrongBenchFileError names each file that cannot be read, or is none of a hypervisor.
    """
    problems: list[Problem] = []
    found = {name: _read(bench.path.parent, name, files, root, problems) for name, files in bench.hypervisor.items()}
    if problems:
        raise WrongBenchFileError(str(bench.path), problems)
    return keep_hypervisors(bench, found)


def keep_hypervisors(bench: BenchFile, found: dict[str, Hypervisor]) -> BenchFile:
    """The bench file, of every configuration, with these tables, as a run has read them before."""
    compared = tuple(replace(each, hypervisors=found) for each in bench.compared)
    return replace(bench, hypervisors=found, compared=compared)


def _read(folder: Path, whose: str, files: HypervisorFiles, root: Node, problems: list[Problem]) -> Hypervisor:
    tables: list[HypervisorTable] = []
    for said, name in files.named.items():
        place = (KEY, whose, "libvirt") if files.libvirt is not None else (KEY, whose, "esxi", said)
        try:
            with (folder / name).open("rb") as stream:
                content = stream.read(_LARGEST_BYTES + 1)
            if len(content) > _LARGEST_BYTES:
                raise ValueError(f"is larger than {_LARGEST_BYTES // 2**10} KiB, so it is no such file")
            tables += read_domain(content) if files.libvirt is not None else [read_esxcli(content, said)]
        except OSError as error:
            step = f"names are relative to the bench file's folder, {folder.resolve()}"
            problems.append(Problem(root.position_of(place), f"{name} cannot be read: {error.strerror}", step))
        except ValueError as error:
            what, _, step = str(error).partition("; ")
            problems.append(Problem(root.position_of(place), f"{name} {what}", step or None))
    kind = "libvirt" if files.libvirt is not None else "ESXi"
    return Hypervisor(kind=kind, files=tuple(files.named.values()), tables=tuple(tables))
