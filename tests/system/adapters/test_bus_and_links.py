"""What lspci, sysfs, /proc/interrupts, ip, tc, dcb, devlink, mlxconfig and lldpd say of adapters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nicbench.system.adapters.links import (
    aggregates,
    bond_under,
    parse_classes,
    parse_dscp,
    parse_links,
    parse_neighbours,
    parse_order,
    parse_pfc,
    parse_qdiscs,
    parse_speeds,
    parse_trust,
    virtual_functions,
    xdp_program,
)
from nicbench.system.adapters.pci import (
    bandwidth_bits_per_s,
    forms_of,
    interrupts_of_device,
    numbers_of,
    parse_info,
    parse_interrupts,
    parse_mlxconfig,
    parse_names,
    parse_parameters,
    parse_pci,
    parse_pci_express,
    parse_register,
    pending,
    queue_of,
    read_request_bytes,
    set_read_request,
)

GOLDEN = Path(__file__).parent / "golden"


def golden(name: str) -> str:
    return (GOLDEN / name).read_text()


def test_an_adapter_in_a_narrow_slot_shows_its_link_what_it_could_do_and_what_the_slot_could() -> None:
    adapter = parse_pci(golden("mlx5/sysfs.txt"))["0000:af:00.0"]
    assert (adapter["id"], adapter["subsystem_id"], adapter["driver"]) == ("15b3:1017", "15b3:0007", "mlx5_core")
    assert (adapter["numa_node"], adapter["local_cpus"]) == (1, "14-27,42-55")
    assert [adapter[name]["lanes"] for name in ("link", "link_possible", "slot_possible")] == [8, 16, 8]
    assert (adapter["virtual_functions"], adapter["virtual_functions_possible"]) == (2, 16)


def test_of_a_virtual_machine_only_the_network_function_is_taken_and_it_has_no_link() -> None:
    adapters = parse_pci(golden("virtio_net/sysfs.txt"))
    assert list(adapters) == ["0000:00:03.0"]
    assert adapters["0000:00:03.0"]["link"] is None
    assert adapters["0000:00:03.0"]["numa_node"] is None
    assert adapters["0000:00:03.0"]["driver"] == "virtio-pci"


def test_names_are_those_of_the_pci_id_database() -> None:
    names = parse_names(golden("mlx5/lspci_vmm.txt"))["0000:af:00.0"]
    assert (names["vendor"], names["model"]) == ("Mellanox Technologies", "MT27800 Family [ConnectX-5]")
    assert parse_names(golden("virtio_net/lspci_vmm.txt"))["0000:00:03.0"]["model"] == "Virtio 1.0 network device"


@pytest.mark.parametrize(
    ("speed", "lanes", "gigabits"),
    [(2.5, 1, 2.0), (5.0, 8, 32.0), (8.0, 16, 126.03), (16.0, 16, 252.06), (32.0, 16, 504.12), (64.0, 16, 968.0)],
)
def test_the_bandwidth_of_a_link_is_what_its_line_code_leaves(speed: float, lanes: int, gigabits: float) -> None:
    assert bandwidth_bits_per_s(speed, lanes) == pytest.approx(gigabits * 1e9, rel=1e-4)
    assert bandwidth_bits_per_s(None, lanes) is None


def test_pci_express_shows_read_requests_payload_and_a_degraded_link() -> None:
    found = parse_pci_express(golden("mlx5/lspci_vv.txt"))
    narrow, wide = found["0000:af:00.0"], found["0000:b0:00.0"]
    assert (narrow["read_request_bytes"], narrow["payload_bytes"], narrow["payload_possible_bytes"]) == (512, 256, 512)
    assert (narrow["link_degraded"], narrow["part"], narrow["aspm"]) == (True, "MCX516A-CCAT", "Disabled")
    assert (wide["read_request_bytes"], wide["link_degraded"], wide["no_snoop"]) == (4096, False, False)
    assert parse_pci_express(golden("virtio_net/lspci_vv.txt")) == {}


@pytest.mark.parametrize("register", [0x0000, 0x2936, 0x5950, 0x8FFF, 0xD957])
def test_only_bits_14_to_12_change_with_the_read_request(register: int) -> None:
    for field, size in enumerate((128, 256, 512, 1024, 2048, 4096)):
        changed = set_read_request(register, size)
        assert changed & 0x8FFF == register & 0x8FFF
        assert changed >> 12 & 7 == field
        assert read_request_bytes(changed) == size


def test_a_read_request_that_pci_express_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="128, 256, 512, 1024, 2048, 4096 bytes, not 8192"):
        set_read_request(0x2936, 8192)
    with pytest.raises(ValueError, match="reserved"):
        read_request_bytes(0x6000)


def test_a_register_is_four_hex_digits_and_an_adapter_that_is_gone_is_told() -> None:
    assert parse_register("2936\n") == 0x2936
    with pytest.raises(ValueError, match="does not answer"):
        parse_register("ffff\n")
    with pytest.raises(ValueError, match="no word"):
        parse_register("setpci: 0000:00:03.0: Instance #0 of PCI Capability 0010 not found")


@pytest.mark.parametrize(
    ("name", "device", "queue"),
    [
        ("eth1-TxRx-3", "eth1", 3),
        ("mlx5_comp12@pci:0000:af:00.0", "ens3", 12),
        ("virtio2-input.0", "eth0", 0),
        ("virtio2-output.1", "eth0", 1),
        ("ens5-Tx-Rx-7", "ens5", 7),
        ("i40e-eth0-TxRx-5", "eth0", 5),
        ("ice-ens801f0-TxRx-31", "ens801f0", 31),
        ("ens1f0np0-rx-2", "ens1f0np0", 2),
        ("gve-ntfy-block4", "ens4", 4),
        ("eth0-fp-0", "eth0", 0),
        ("eth0-rxtx-1", "eth0", 1),
        ("eth0:slice-2", "eth0", 2),
        ("eth0-3", "eth0", 3),
        ("mlx4-6@0000:05:00.0", "eth0", 6),
        ("mlx5_async0@pci:0000:af:00.0", "ens3", None),
        ("virtio2-config", "eth0", None),
        ("ena-mgmnt@pci:0000:00:05.0", "ens5", None),
        ("ice-0000:18:00.0:misc", "ens801f0", None),
        ("eth0-event-8", "eth0", None),
        ("i40e-0000:3b:00.0:fdir-TxRx-0", "eth0", None),
        ("eth1", "eth1", None),
    ],
)
def test_the_queue_is_read_from_an_interrupts_name(name: str, device: str, queue: int | None) -> None:
    assert queue_of(name, device) == queue


@pytest.mark.parametrize(
    ("name", "device", "queue"),
    [
        ("link1-TxRx-3", "link1", 3),
        ("uplink-rx-2", "uplink", 2),
        ("uplink-TxRx-2", "eth7", 2),  # it was renamed since
        ("i40e-event0-TxRx-5", "event0", 5),
        ("rx-1", "rx-1", None),
        ("tx0", "tx0", None),
        ("q3-1", "q3", 1),
        ("io-5-config", "io-5", None),
    ],
)
def test_what_the_interface_is_called_is_no_queue_and_no_task(name: str, device: str, queue: int | None) -> None:
    assert queue_of(name, device) == queue


def test_fastpath_interrupts_get_their_queues_and_the_slow_path_none() -> None:
    """As bnx2x names them."""
    text = "CPU0 CPU1\n 40: 1 0 PCI-MSI-edge rx0\n 41: 5 0 PCI-MSI-edge rx0-fp-0\n 42: 0 7 PCI-MSI-edge rx0-fp-1\n"
    ours = interrupts_of_device("rx0", None, [], parse_interrupts(text))
    assert [(irq.number, irq.queue) for irq in ours] == [(40, None), (41, 0), (42, 1)]


def test_interrupts_of_one_function_are_not_those_of_the_next() -> None:
    names = parse_interrupts(golden("mlx5/interrupts.txt"))
    ours = interrupts_of_device("ens3f0np0", "0000:af:00.0", [], names)
    assert [(irq.number, irq.queue) for irq in ours] == [(200, None), (201, 0), (202, 1)]


def test_without_a_bus_interrupts_are_found_by_the_name_of_the_interface() -> None:
    names = parse_interrupts(golden("ixgbe/interrupts.txt"))
    assert [irq.number for irq in interrupts_of_device("eth1", None, [], names)] == [121, 122, 123, 124, 125]
    assert [
        irq.queue for irq in interrupts_of_device("ens5", None, [], parse_interrupts(golden("ena/interrupts.txt")))
    ] == [0, 1]


def test_interrupts_that_the_function_owns_count_whatever_their_name() -> None:
    names = parse_interrupts(golden("virtio_net/interrupts.txt"))
    msi = numbers_of([f"/sys/class/net/eth0/device/../msi_irqs/{number}" for number in (37, 38, 39, 99)])
    assert [(irq.number, irq.name, irq.queue) for irq in interrupts_of_device("eth0", None, msi, names)] == [
        (37, "virtio2-config", None),
        (38, "virtio2-input.0", 0),
        (39, "virtio2-output.0", 0),
    ]


def test_a_bond_has_members_and_a_hash_policy_and_a_vlan_stands_on_it() -> None:
    found = aggregates(parse_links(golden("i40e/links.json")))
    assert found["bond0"]["mode"] == "802.3ad"
    assert found["bond0"]["xmit_hash_policy"] == "layer3+4"
    assert found["bond0"]["members"]["ens1f0"]["link_failure_count"] == 1
    assert (found["bond0.100"]["on"], found["bond0.100"]["id"]) == ("bond0", 100)
    assert list(aggregates(parse_links(golden("veth/links.json")))["br0"]["members"]) == ["d1"]


def test_virtual_functions_are_listed_as_they_are_set() -> None:
    first, second = virtual_functions(parse_links(golden("i40e/links.json"))[0])
    assert (first["number"], first["spoof_check"], first["vlans"]) == (0, True, [100])
    assert (second["trusted"], second["link_state"], second["rate"]["max_tx"]) == (True, "enable", 1000)


def test_an_xdp_program_has_a_name_a_tag_and_a_mode() -> None:
    links = parse_links(golden("i40e/links.json"))
    program = xdp_program(links[1])
    assert (program["mode"], program["name"], program["tag"]) == ("native", "xdp_dispatcher", "90f686eb86991928")
    assert xdp_program(links[0]) is None


def test_a_root_qdisc_shows_its_options() -> None:
    (qdisc,) = parse_qdiscs(golden("veth/qdisc.json"))
    assert (qdisc["kind"], qdisc["parent"], qdisc["parameters"]["rate"]) == ("tbf", "root", 12_000_000)


def test_data_centre_bridging() -> None:
    assert parse_pfc(golden("mlx5/dcb_pfc.json"))["priorities"] == [3, 4]
    assert parse_trust(golden("mlx5/dcb_apptrust.json")) == ["dscp", "pcp"]
    assert parse_dscp(golden("mlx5/dcb_app.json")) == {"CS3": 3, "AF31": 3, "EF": 5}
    assert parse_classes(golden("mlx5/dcb_ets.json"))["bandwidth_percent"] == [50, 0, 0, 50, 0, 0, 0, 0]
    with pytest.raises(ValueError, match="list of 8"):
        parse_pfc("{}")


def test_devlink_shows_firmware_that_waits_for_a_reset() -> None:
    info = parse_info(golden("ice/devlink_info.json"))["pci/0000:18:00.0"]
    assert info["running"]["fw.bundle_id"] != info["stored"]["fw.bundle_id"]
    parameters = parse_parameters(golden("ice/devlink_param.json"))["pci/0000:18:00.0"]
    assert parameters == {"enable_roce": False, "tx_scheduling_layers, permanent": 9, "loopback": "enabled"}
    assert parse_parameters(golden("mlx5/devlink_param.json"))["pci/0000:af:00.0"]["enable_roce, driverinit"] is True


def test_mlxconfig_shows_what_waits_for_a_reset() -> None:
    settings = parse_mlxconfig(golden("mlx5/mlxconfig.txt"))
    assert settings["SRIOV_EN"] == {"default": "False(0)", "current": "True(1)", "next_boot": "True(1)"}
    assert pending(settings) == {"NUM_OF_VFS": "16", "CQE_COMPRESSION": "AGGRESSIVE(1)"}
    assert parse_mlxconfig(golden("mlx5/mlxconfig_old.txt"))["NUM_OF_VFS"] == {"next_boot": "4"}
    assert forms_of("True(1)") == {"true(1)", "true", "1"}
    assert forms_of("16") == {"16"}


def test_neighbours_are_read_from_both_layouts_of_lldpd() -> None:
    (leaf,) = parse_neighbours(golden("lldp/json.json"))["ens3f0np0"]
    assert (leaf["name"], leaf["port"], leaf["maximum_frame_bytes"], leaf["vlan"]) == ("leaf01", "swp1", 9238, "100")
    (tor,) = parse_neighbours(golden("lldp/json0.json"))["eno1"]
    assert (tor["name"], tor["port"], tor["port_description"]) == ("tor-2", "Ethernet7", "host 3")
    assert parse_neighbours('{"lldp": {}}') == {}


# Bonds as ip and sysfs tell of them, in golden outputs that are written after the drivers' formats.

BONDING_GOLDEN = Path(__file__).parent / "golden" / "bonding"
LINKS = parse_links((BONDING_GOLDEN / "links.json").read_text())
ORDER = parse_order((BONDING_GOLDEN / "slaves.txt").read_text())
SPEEDS = parse_speeds((BONDING_GOLDEN / "speeds.txt").read_text())


def changed(name: str, **info: Any) -> list[dict[str, Any]]:
    """The links with another ``info_data`` or ``info_slave_data`` of one."""
    links = json.loads(json.dumps(LINKS))
    for link in links:
        if link["ifname"] == name:
            own = link["linkinfo"]
            own["info_data" if "info_data" in own else "info_slave_data"].update(info)
    return links


def test_ports_are_in_the_order_in_which_they_joined() -> None:
    bond = bond_under("bond0", LINKS, ORDER, SPEEDS, "6.1.0", "x86_64")
    assert [port.name for port in bond.ports] == ["eth3", "eth2", "eth4", "eth5"]
    assert (bond.mode, bond.policy, bond.aggregator, bond.partner_mac) == (
        "802.3ad",
        "layer3+4",
        1,
        "44:38:39:ff:00:01",
    )
    assert (bond.kernel, bond.byte_order, bond.mtu_bytes) == ("6.1.0", "little", 9000)


def test_ports_of_another_aggregator_or_without_a_link_are_not_used() -> None:
    bond = bond_under("bond0", LINKS, ORDER, SPEEDS)
    assert [port.name for port in bond.usable] == ["eth3", "eth2"]
    assert [port.speed_bits_per_s for port in bond.ports] == [25e9, 25e9, 25e9, None]


def test_of_another_mode_the_aggregator_does_not_matter() -> None:
    bond = bond_under("bond0", changed("bond0", mode="balance-xor"), ORDER, SPEEDS)
    assert [port.name for port in bond.usable] == ["eth3", "eth2"]  # eth4 is a backup, eth5 has no link
    bond = bond_under("bond0", changed("bond0", mode="active-backup", active_slave="eth2"), ORDER, SPEEDS)
    assert bond.active_port == "eth2"


def test_a_vlan_lies_on_a_bond() -> None:
    bond = bond_under("bond0.100", LINKS, ORDER, SPEEDS, None, "s390x")
    assert (bond.name, bond.vlan, bond.byte_order) == ("bond0", 100, "big")


@pytest.mark.parametrize("device", ["eno1", "eth2", "lo", "gone"])
def test_other_interfaces_are_no_bond(device: str) -> None:
    assert bond_under(device, LINKS, ORDER, SPEEDS) is None


def test_a_port_with_a_queue_id_means_that_filters_choose() -> None:
    bond = bond_under("bond0", changed("eth2", queue_id=2), ORDER, SPEEDS)
    assert bond.steered


def test_without_its_order_a_bond_still_has_its_ports() -> None:
    bond = bond_under("bond0", LINKS, {}, {})
    assert [port.name for port in bond.ports] == ["eth2", "eth3", "eth4", "eth5"]


def test_the_disclosure_has_the_aggregator_and_the_partner() -> None:
    found = aggregates(LINKS)["bond0"]
    assert found["ad_info"]["partner_mac"] == "44:38:39:ff:00:01"
    assert found["members"]["eth4"]["ad_aggregator_id"] == 2
