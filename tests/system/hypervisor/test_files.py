"""What is read of a hypervisor's files: a libvirt domain, outputs of esxcli, and what is said of wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench.bench_file import load
from nicbench.bench_file.reader import WrongBenchFileError
from nicbench.core.machine import HypervisorTable
from nicbench.system.hypervisor import read_domain, read_esxcli

GOLDEN = Path(__file__).with_name("golden")
BENCH = """nicbench: 1
title: In a guest
lab: {kind: simulated}
dut: {kind: simulated}
tests: [{name: t, method: throughput, frame_bytes: [64]}]
hypervisor:
"""


def tables_of(content: bytes) -> dict[str, HypervisorTable]:
    return {table.title: table for table in read_domain(content)}


def test_a_domain_tells_cpus_memory_nodes_pins_and_virtual_functions() -> None:
    found = tables_of((GOLDEN / "guest.xml").read_bytes())
    facts = dict(found["Guest"].rows)
    assert facts["vCPUs"] == "4 of 6"
    assert (facts["Memory"], facts["Memory pages"], facts["Memory locked"]) == (
        "8 GiB",
        "huge, 1 GiB (guest nodes 0)",
        "yes",
    )
    assert facts["NUMA nodes of the host"] == "0 (strict); guest node 0: 0 (strict)"
    assert facts["NUMA nodes of the guest"] == "node 0: vCPUs 0-5, 8 GiB"
    assert facts["CPU"] == "host-passthrough, 1 socket, 1 die, 6 cores, 1 thread"
    assert ("vCPU 1", "5") in found["Pinned"].rows
    assert ("scheduling of vCPUs 1-3", "fifo 1") in found["Pinned"].rows
    devices = found["Network devices"].rows
    assert devices[0] == ("PCI device", "0000:65:02.0", "", "driver vfio, managed yes")
    assert devices[1] == ("virtual function", "0000:65:02.1", "02:00:00:00:01:01", "VLAN 42, managed yes")
    assert devices[2] == ("bridge", "br0", "52:54:00:6b:3c:58", "virtio, 4 queues, driver vhost")


def test_outputs_of_esxcli_are_facts_by_their_path_or_tables_by_their_ruler() -> None:
    version = read_esxcli((GOLDEN / "esxi_version.txt").read_bytes(), "version")
    assert version.rows[1] == ("Version", "7.0.3")
    nic = dict(read_esxcli((GOLDEN / "esxi_nic_get.txt").read_bytes(), "adapter").rows)
    assert nic["Driver Info, Firmware Version"] == "16.27.2008"
    assert nic["Link Status"] == "Up"
    listed = read_esxcli((GOLDEN / "esxi_nic_list.txt").read_bytes(), "adapters")
    assert listed.heads[:3] == ("Name", "PCI Device", "Driver")
    assert [row[5] for row in listed.rows] == ["1000", "25000"]
    assert listed.rows[1][9] == "Mellanox Technologies MT27800 [ConnectX-5]"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is not XML"),
        (b"<domain><vcpu>4</domain>", "is not XML: mismatched tag, line 1, column"),
        (b'<!DOCTYPE d [<!ENTITY a "x"><!ENTITY b "&a;&a;">]><domain>&b;</domain>', "has a document type"),
        (b"<network><name>n</name></network>", "is the <network> of libvirt"),
        (b"<a>" * 100 + b"</a>" * 100, "elements 65 deep"),
    ],
    ids=["empty", "torn", "a bomb of entities", "a network", "deep"],
)
def test_what_is_no_domain_is_refused(content: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_domain(content)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"  \n", "is empty"),
        (b"\xff\xfe\x00", "is not text"),
        (b"Error: Unknown command or namespace network nics list\n", "holds an error of esxcli"),
        (b"Name  Driver\n----  ------\n", "a table without rows"),
        (b"just a line\n", "has neither a table"),
    ],
    ids=["empty", "binary", "failed", "no rows", "prose"],
)
def test_what_is_no_output_of_esxcli_is_refused(content: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_esxcli(content, "x")


def test_a_bench_file_names_them_and_every_wrong_one_is_told_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "guest.xml").write_bytes((GOLDEN / "guest.xml").read_bytes())
    (tmp_path / "nics.txt").write_bytes((GOLDEN / "esxi_nic_list.txt").read_bytes())
    path = tmp_path / "bench.yaml"
    path.write_text(BENCH + "  dut: {libvirt: guest.xml}\n  other: {esxi: {adapters: nics.txt}}\n")
    found = load(path).hypervisors
    assert [table.title for table in found["dut"].tables] == ["Guest", "Pinned", "Network devices"]
    assert (found["other"].kind, found["other"].tables[0].title) == ("ESXi", "adapters")

    path.write_text(BENCH + "  dut: {libvirt: nics.txt}\n  other: {esxi: {adapters: none.txt}}\n")
    with pytest.raises(WrongBenchFileError) as refused:
        load(path)
    wrong = refused.value.problems
    assert [problem.position.line for problem in wrong] == [7, 8]
    assert "nics.txt is not XML" in wrong[0].message
    assert wrong[0].next_step == "save it anew: virsh dumpxml GUEST > FILE"
    assert "none.txt cannot be read: No such file" in wrong[1].message

    path.write_text(BENCH + "  dut: {}\n")
    with pytest.raises(WrongBenchFileError, match="name either a file of `libvirt`"):
        load(path)
