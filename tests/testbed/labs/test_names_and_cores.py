"""Names, addresses and the map of cores of a lab."""

from __future__ import annotations

from ipaddress import ip_interface, ip_network
from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.fakes import FakeHost

from nicbench.core.errors import HostError, NotReadyError
from nicbench.testbed.cores import CoreMap, core_map, cpus_of_status, make_core_map, order_by_core
from nicbench.testbed.interfaces.namespaces import explain_no_entry, explain_no_pair
from nicbench.testbed.labs.simulated import SimulatedLab, SimulatedOptions
from nicbench.testbed.labs.veth import dut_ipv4, dut_ipv6, mac, namespace_name
from nicbench.tuning.stack import UndoStack

BENCHMARK_RANGES = (ip_network("198.18.0.0/15"), ip_network("2001:2::/48"))


def test_namespaces_of_two_runs_differ_and_are_short_however_long_the_run_is_called() -> None:
    names = {namespace_name(run, role) for run in ("2026-01-31T120000Z-" + "x" * 80, "b") for role in ("tester", "dut")}

    assert len(names) == 4
    assert all(len(name) <= 16 for name in names)


def test_addresses_are_those_that_rfc_2544_and_rfc_5180_set_aside_and_never_shared() -> None:
    interfaces = [ip_interface(address(pair)) for address in (dut_ipv4, dut_ipv6) for pair in range(8)]

    assert all(
        any(one in network for network in BENCHMARK_RANGES if network.version == one.version) for one in interfaces
    )
    assert len({one.network for one in interfaces}) == len(interfaces)


def test_macs_are_locally_administered_unicast_and_differ() -> None:
    macs = {mac(side, pair) for side in (0, 1) for pair in range(8)}

    assert len(macs) == 16
    assert all(int(one[:2], 16) & 0b11 == 0b10 for one in macs)


def test_only_cpus_that_this_process_may_use_count() -> None:
    assert cpus_of_status("Name:\tx\nCpus_allowed:\tc\nCpus_allowed_list:\t2-3\n") == (2, 3)


@pytest.mark.parametrize(
    ("cpus", "dut_apart", "expected"),
    [
        pytest.param((0,), True, CoreMap(0, (0,), (), True), id="one CPU: shared"),
        pytest.param((0, 1), True, CoreMap(0, (1,), (), False), id="two: worker and DUT"),
        pytest.param((2, 3, 4, 5), True, CoreMap(2, (3,), (4, 5), False), id="more: the rest keeps house"),
        pytest.param((0, 1), False, CoreMap(0, (0,), (1,), True), id="a DUT without steering runs on the worker's CPU"),
    ],
)
def test_roles_are_given_to_cpus(cpus: tuple[int, ...], dut_apart: bool, expected: CoreMap) -> None:
    assert core_map(cpus, dut_apart=dut_apart) == expected


# Of a processor whose hyperthreads are numbered one after the other, and of one that numbers them last.
NEXT_TO_EACH_OTHER = ((0, 1), (2, 3), (4, 5))
NUMBERED_LAST = ((0, 3), (1, 4), (2, 5))


@pytest.mark.parametrize(
    ("cpus", "physical_cores", "order"),
    [
        ((0, 1, 2, 3, 4, 5), NEXT_TO_EACH_OTHER, (0, 2, 4, 3, 5, 1)),
        ((0, 1, 2, 3, 4, 5), NUMBERED_LAST, (0, 1, 2, 4, 5, 3)),
        ((1, 2, 3), NEXT_TO_EACH_OTHER, (1, 2, 3)),
        ((0, 1, 2), NEXT_TO_EACH_OTHER, (0, 2, 1)),
        ((0, 1), NEXT_TO_EACH_OTHER, (0, 1)),
    ],
)
def test_tester_and_dut_get_physical_cores_of_their_own_where_there_are_two(
    cpus: tuple[int, ...], physical_cores: tuple[tuple[int, ...], ...], order: tuple[int, ...]
) -> None:
    cores = core_map(cpus, physical_cores, dut_apart=True)
    assert (cores.worker, *cores.dut, *cores.housekeeping) == order
    assert order_by_core(cpus, physical_cores) == order


def test_hyperthreads_of_one_physical_core_are_told_and_others_are_not() -> None:
    one_core = core_map((0, 3), NUMBERED_LAST, dut_apart=True)
    assert not one_core.shared
    assert one_core.halved_cores([0], one_core.dut) == ((0, 3),)
    cores = core_map((0, 1, 2, 3, 4, 5), NUMBERED_LAST, dut_apart=True)
    assert cores.halved_cores([0], cores.dut) == ()
    assert cores.halved_cores([0], [1, 4]) == ()  # both are the DUT's
    assert cores.halved_cores([0, 2], [1, 3, 5]) == ((0, 3), (2, 5))
    assert cores.halved_cores([0], [0]) == ()  # that is one CPU, which `shared` says


async def test_hyperthreads_are_read_from_the_machine() -> None:
    host = FakeHost(files={"/proc/self/status": "Cpus_allowed_list:\t0-3\n"})
    topology = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list:{}\n"
    host.answer("sh -c", "".join(topology.format(cpu, cpus) for cpu, cpus in enumerate(("0-1", "0-1", "2-3", "2-3"))))
    cores = await make_core_map(host)
    assert (cores.worker, cores.dut, cores.physical_cores) == (0, (2,), ((0, 1), (2, 3)))
    without = FakeHost(files=host.files)
    assert (await make_core_map(without)).dut == (1,)


# A veth pair that cannot be made: the driver is blamed where the kernel says so, and nowhere else.


@pytest.mark.parametrize("said", ["Error: Unknown device type.", "RTNETLINK answers: Operation not supported"])
def test_a_kernel_without_the_driver_is_told_with_the_step(said: str) -> None:
    error = explain_no_pair(HostError(f"`ip link add` failed with status 2: {said}", place="guest"), FakeHost("guest"))
    assert isinstance(error, NotReadyError)
    assert error.next_step == "the kernel needs the veth driver: modprobe veth"


def test_a_host_that_is_silent_keeps_its_own_words() -> None:
    silent = HostError("`ip link add` gave no answer within 30 s", place="guest", next_step="is it there?")
    assert explain_no_pair(silent, FakeHost("guest")) is silent
    assert explain_no_entry(silent, FakeHost("guest")) is silent


def test_a_chroot_whose_root_is_no_mount_point_is_told_with_the_step() -> None:
    said = 'exit status 255: "mount --make-rslave /" failed: Invalid argument'
    error = explain_no_entry(HostError(f"ip netns exec lab true: {said}", place="local"), FakeHost("local"))
    assert isinstance(error, NotReadyError)
    assert error.next_step == "mount --bind FOLDER FOLDER, before chroot FOLDER"


# The simulated lab: two joined ports of the engine, no root, no change.


async def test_two_ports_send_to_each_other_through_the_dut(tmp_path: Path) -> None:
    lab = SimulatedLab(SimulatedOptions(capacity="500 kpps", delay="10 us", loss="0.1 %", seed=7))
    host = FakeHost()
    stack = UndoStack("run", None, tmp_path)
    testbed = await lab.up(stack, host)

    assert testbed.simulated
    assert [port.engine["sends_to"] for port in testbed.tester_ports] == [1, 0]
    dut = testbed.tester_ports[0].engine["dut"]
    assert (dut["capacity_frames_per_s"], dut["delay_ns"], dut["loss"]) == (500_000.0, 10_000, 0.001)
    assert dut["seed"] != testbed.tester_ports[1].engine["dut"]["seed"], "each direction draws for itself"
    assert (host.commands, stack.entries) == ([], ())


async def test_a_card_s_clock_is_there_where_it_is_asked_for(tmp_path: Path) -> None:
    stack = UndoStack("run", None, tmp_path)
    without = await SimulatedLab(SimulatedOptions()).up(stack, FakeHost())
    assert all("card_clock" not in port.engine for port in without.tester_ports)
    clocked = await SimulatedLab(SimulatedOptions(card_clock_ppm=-3.5)).up(stack, FakeHost())
    clocks = [port.engine["card_clock"] for port in clocked.tester_ports]
    assert [clock["ppm"] for clock in clocks] == [-3.5, -3.5]
    assert clocks[0]["offset"] != clocks[1]["offset"]


async def test_it_has_neither_a_sink_nor_a_cable(tmp_path: Path) -> None:
    lab = SimulatedLab(SimulatedOptions())
    stack = UndoStack("run", None, tmp_path)
    testbed = await lab.up(stack, FakeHost())

    async with lab.without_dut(testbed, stack) as there_is_a_sink, lab.cable(testbed, stack) as there_is_a_cable:
        assert (there_is_a_sink, there_is_a_cable) == (lab.has_sink, lab.has_cable) == (False, False)


def test_it_asks_for_no_root() -> None:
    assert not SimulatedLab.touches_machine


def test_a_fault_is_a_probability() -> None:
    with pytest.raises(ValidationError):
        SimulatedOptions(loss=1.5)
