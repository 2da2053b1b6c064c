"""QEMU's command line of a guest, to the last word."""

from __future__ import annotations

from pathlib import Path

from nicbench.hosts.options import VmOptions
from nicbench.testbed.vm.command import Guest, macs_of, qemu_arguments, wires_of

_GUEST = Guest("/run/v", Path("/k/vmlinuz"), Path("/k/modules"), "/run/v/initrd", "tcg")


def _words(given: dict[str, object], accelerator: str = "tcg", others: dict[str, VmOptions] | None = None) -> str:
    options = VmOptions.model_validate(given)
    guests = {"guest": options, **(others or {})}
    wires = wires_of(guests, {name: f"/run/{name}" for name in guests})
    guest = Guest(_GUEST.folder, _GUEST.kernel, _GUEST.modules, _GUEST.initrd, accelerator)
    return " ".join(qemu_arguments(options, guest, macs_of("guest", options), wires["guest"]))


def test_a_guest_without_cards_has_no_network_at_all() -> None:
    words = _words({})
    assert "-nodefaults" in words
    assert "netdev" not in words
    assert "-m 1024M" in words
    assert "-accel tcg,thread=multi -cpu max" in words
    assert "readonly=on,multidevs=remap" in words


def test_two_cards_of_one_network_are_on_one_hub_and_a_third_alone() -> None:
    words = _words({"cards": {"n0": {"network": "a"}, "n1": {"network": "a"}, "n2": {}}})
    assert "hubport,id=net0,hubid=0 " in words
    assert "hubport,id=net1,hubid=0 " in words
    assert "hubport,id=net2,hubid=3 " in words
    assert "virtio-net-pci,netdev=net0,id=card0" in words


def test_a_network_between_guests_goes_through_a_socket_of_the_first() -> None:
    other = VmOptions.model_validate({"cards": {"m0": {"network": "a"}}})
    own = {"cards": {"n0": {"network": "a"}}}
    assert "stream,id=wire0-0,server=on,addr.type=unix,addr.path=/run/guest/wire-a-0" in _words(
        own, others={"z": other}
    )
    wires = wires_of({"guest": VmOptions.model_validate(own), "z": other}, {"guest": "/run/guest", "z": "/run/z"})
    assert wires["z"][0].goes_to == "/run/guest/wire-a-0"


def test_cards_of_two_nodes_are_behind_bridges_of_those_nodes() -> None:
    words = _words(
        {"nodes": 2, "memory": 2**30, "cards": {"n0": {"model": "igb", "node": 0}, "n1": {"model": "igb", "node": 1}}}
    )
    assert "memory-backend-ram,id=memory1,size=512M" in words
    assert "-numa node,nodeid=1,memdev=memory1,cpus=1" in words
    assert "-numa dist,src=0,dst=1,val=21" in words
    assert "pxb-pcie,id=node1,bus_nr=64,numa_node=1,bus=pcie.0" in words
    assert "pcie-root-port,id=slot1,bus=node1" in words
    assert "intel-iommu,intremap=on,caching-mode=on" in words
    assert "intel_iommu=on iommu=pt" in words


def test_on_kvm_the_guest_has_the_machines_processor() -> None:
    assert "-accel kvm -cpu host" in _words({}, "kvm")
    assert "kernel-irqchip=split" in _words({"cards": {"n0": {"model": "igb"}}}, "kvm")


def test_memory_in_huge_pages_is_there_before_the_guest_starts_and_locked_on_kvm() -> None:
    given = {"memory": 2**31, "huge_pages": 2**30, "memory_nodes": [1]}
    words = _words(given, "kvm")
    backend = "memory-backend-memfd,id=memory0,size=2048M,hugetlb=on,hugetlbsize=1024M,prealloc=on"
    assert f"-object {backend},host-nodes=1,policy=bind -numa node,nodeid=0,memdev=memory0" in words
    assert "-overcommit mem-lock=on" in words
    assert "mem-lock" not in _words(given)  # what is locked beside the pages is the emulator's own


def test_each_node_of_the_guest_is_on_the_node_of_the_machine_that_is_named() -> None:
    words = _words({"nodes": 2, "memory": 2**30, "memory_nodes": [1, 0]})
    assert "memory-backend-ram,id=memory0,size=512M,prealloc=on,host-nodes=1,policy=bind" in words
    assert "memory-backend-ram,id=memory1,size=512M,prealloc=on,host-nodes=0,policy=bind" in words


def test_a_card_of_the_machine_is_given_by_vfio_behind_an_iommu_of_the_guest() -> None:
    words = _words(
        {"cards": {"n0": {"pci": "0000:65:02.0", "mac": "02:00:00:00:00:01"}, "n1": {"network": "a"}}}, "kvm"
    )
    assert "-device vfio-pci,host=0000:65:02.0,id=card0,rombar=0,bus=slot0" in words
    assert "net0" not in words
    assert "hubport,id=net1,hubid=0" in words
    assert "intel-iommu,intremap=on,caching-mode=on" in words
