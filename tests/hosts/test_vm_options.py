"""What a bench file may say of a virtual machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from nicbench.hosts import host_from_spec
from nicbench.hosts.kinds.vm import VmHost, last_words
from nicbench.hosts.options import VmOptions


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"cpus": 3, "nodes": 2}, "3 CPUs cannot be divided among 2 nodes"),
        ({"cards": {"n0": {"node": 1}}}, "the card `n0` is on node 1"),
        ({"cards": {"eth0": {}}}, "a name that the guest's kernel gives"),
        ({"cards": {"n0": {"mac": "01:00:00:00:00:01"}}}, "no MAC address of a card"),
        ({"cards": {"n0": {"mac": "02:00:00:00:00:01"}, "n1": {"mac": "02:00:00:00:00:01"}}}, "the same MAC address"),
        ({"memory": 2**20}, "greater than or equal to"),
        ({"cpus": 2, "pin": (2,)}, "write 2 different ones"),
        ({"cpus": 2, "pin": (2, 2)}, "write 2 different ones"),
        ({"huge_pages": 2**22}, "have 2 MiB or 1 GiB"),
        ({"huge_pages": 2**30, "memory": 3 * 2**29}, "whole pages of 1024 MiB"),
        ({"nodes": 2, "memory_nodes": (0,)}, "for each of the guest's: write 2"),
        ({"cards": {"n0": {"pci": "0000:65:02.0", "network": "a"}}}, "has no `model` and no `network`"),
        ({"cards": {"n0": {"pci": "65:02.0"}}}, "pattern"),
        ({"cards": {n: {"pci": "0000:65:02.0"} for n in ("n0", "n1")}}, "the same card of the machine"),
        ({"cards": {"n0": {"mac": "00:00:00:00:00:00"}}}, "no MAC address of a card"),
        ({"boot_parameters": ("a b",)}, "pattern"),
    ],
)
def test_what_no_guest_can_have_is_refused(given: dict[str, object], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        VmOptions.model_validate(given)


async def test_a_guest_that_does_not_run_is_gone_and_what_was_in_it_too() -> None:
    host = host_from_spec({"kind": "vm", "folder": "/run/nicbench-vm-that-never-was"})
    assert isinstance(host, VmHost)
    assert await host.is_gone()


def test_a_guest_is_made_again_from_what_is_kept_of_it() -> None:
    spec = {"kind": "vm", "cpus": 4, "cards": {"n0": {"model": "igb"}}, "folder": "/run/nicbench-vm-1"}
    assert host_from_spec(spec, "guest").spec() == spec


def test_what_ended_a_guest_is_told_by_its_console_or_else_by_qemu(tmp_path: Path) -> None:
    assert last_words(str(tmp_path)) == ""
    (tmp_path / "console.log").write_text("nicbench: ready after 5 s\n")
    assert last_words(str(tmp_path)) == ""
    (tmp_path / "qemu.log").write_text("qemu: -device x: no such thing\n")
    assert last_words(str(tmp_path)) == "; QEMU says: qemu: -device x: no such thing"
    (tmp_path / "console.log").write_text("booting\nKernel panic - not syncing\nmore\n")
    assert last_words(str(tmp_path)) == "; its console says: Kernel panic - not syncing"
