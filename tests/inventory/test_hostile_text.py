"""No text that a tool may print does worse to a parser than null with a reason: truncated, hostile, or another tool's.

To add a parser, add a line to PARSERS: a function, or a method of a class that is made without arguments. It takes
text, or paths and values of small files (``grep -H ""``), and gives plain data. What it may raise is ``NOT_UNDERSTOOD``
or ``UNKNOWN`` of ``inventory/base.py``: ``collect`` turns it into null with the reason. It ends in time, and what it
gives is bounded by what it was given.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import pkgutil
import random
import signal
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from types import FrameType
from typing import Any, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic_core import to_jsonable_python

from nicbench.health.base import HealthView
from nicbench.inventory._asking import paths_and_values
from nicbench.inventory.base import NOT_UNDERSTOOD, UNKNOWN
from nicbench.inventory.collect import plain_data
from nicbench.ledger.base import Side
from nicbench.ledger.base import View as LedgerView
from nicbench.tuning.items.base import CannotSetError

TESTS = Path(__file__).parents[1]

# Hosts as the ledger and the health gate see them, with the interfaces of their goldens.
LEDGER = LedgerView(Side.DUT, ("d0", "d1", "eth2"), drivers={"d0": "veth", "eth2": "mlx5_core"})
HEALTH = HealthView("DUT", ("ens1f0np0", "enp4s0f0"), {"ens1f0np0": "mlx5_core", "enp4s0f0": "ixgbe"})

# One line a parser: its module and name below `nicbench`, the goldens below `tests`, and what else it is called with.
PARSERS: tuple[tuple[Any, ...], ...] = (
    # inventory, shared and of the machine
    ("inventory._asking:paths_and_values", "inventory/golden/numa*.txt"),
    ("inventory.meminfo:parse_meminfo", "inventory/golden/meminfo*.txt"),
    ("inventory.facts.cpu:parse_lscpu", "inventory/golden/lscpu*.json"),
    ("inventory.facts.frequency:parse_policies", "inventory/golden/cpufreq*.txt"),
    ("inventory.facts.huge_pages:selected", "inventory/golden/transparent*.txt"),
    ("inventory.facts.hypervisor:parse_virtualization", "inventory/golden/lscpu*.json"),
    ("inventory.facts.irqbalance:runs", "inventory/golden/processes*.txt", "irqbalance"),
    ("inventory.facts.kernel:parse_command_line", "inventory/golden/cmdline*.txt"),
    ("inventory.facts.mitigations:parse_vulnerabilities", "inventory/golden/vulnerabilities*.txt"),
    ("inventory.facts.numa:parse_nodes", "inventory/golden/numa*.txt", ("t0",)),
    ("inventory.facts.operating_system:parse_os_release", "inventory/golden/os_release*.txt"),
    ("inventory.facts.software:parse_packages", "inventory/golden/dpkg_query*.txt"),
    ("inventory.facts.software:parse_version", "inventory/golden/versions*.txt"),
    ("inventory.facts.sysctls:parse_settings", "inventory/golden/sysctls*.txt"),
    ("inventory.facts._dmidecode:parse_structures", "inventory/golden/dmidecode*.txt"),
    ("inventory.facts._ipmi:parse_fru", "inventory/golden/ipmi_fru*.txt"),
    ("inventory.facts._ipmi:parse_sensors", "inventory/golden/ipmi_fans*.txt"),
    ("inventory.facts.cpu:parse_microcode", "inventory/golden/cpuinfo*.txt"),
    ("inventory.facts.drives:parse_lsblk", "inventory/golden/lsblk*.json"),
    ("inventory.facts.drives:parse_nvme_list", "inventory/golden/nvme_list*.json"),
    ("inventory.facts.fans:parse_fans", "inventory/golden/ipmi_fans*.txt"),
    ("inventory.facts.fans:parse_hwmon_fans", "inventory/golden/hwmon_fans*.txt"),
    ("inventory.facts.firewall:parse_ruleset", "inventory/golden/nft_ruleset*.json"),
    ("inventory.facts.firmware:parse_identity", "inventory/golden/dmi_id*.txt"),
    ("inventory.facts.idle_states:parse_idle_states", "inventory/golden/cpuidle*.txt"),
    ("inventory.facts.interrupt_defaults:parse_mask", "inventory/golden/irq_default*.txt"),
    ("inventory.facts.iommu:parse_iommu", "inventory/golden/iommu*.txt"),
    ("inventory.facts.last_updates:parse_last_update", "inventory/golden/last_update*.txt"),
    ("inventory.facts.memory_modules:parse_memory", "inventory/golden/dmidecode_memory*.txt"),
    ("inventory.facts.power_policy:parse_power_policy", "inventory/golden/power_policy*.txt"),
    ("inventory.facts.power_supplies:parse_supplies", "inventory/golden/ipmi_fru*.txt"),
    ("inventory.facts.power_supplies:parse_supply_states", "inventory/golden/ipmi_supplies*.txt"),
    ("inventory.facts.security_modules:parse_security", "inventory/golden/lsm*.txt"),
    ("inventory.facts.smt:parse_smt", "inventory/golden/smt*.txt"),
    ("inventory.facts.software:parse_tools", "inventory/golden/tools*.txt"),
    ("inventory.facts.storage_controllers:parse_controllers", "inventory/golden/lspci_storage*.txt"),
    ("inventory.facts.tuned:parse_tuned", "inventory/golden/tuned*.txt"),
    # inventory, of management controllers
    ("redfish.answers:parse_service", "redfish/golden/*/root.json"),
    ("redfish.answers:parse_members", "redfish/golden/*/systems.json"),
    ("redfish.answers:parse_system", "redfish/golden/*/system.json"),
    ("redfish.answers:parse_bios", "redfish/golden/*/bios.json"),
    # inventory, of network adapters
    ("adapters.hash_fields:parse_hash_fields", "adapters/golden/*/n_udp4.txt"),
    ("adapters.driver:parse_driver", "adapters/golden/*/i.txt"),
    ("adapters.limits:parse_limits", "adapters/golden/*/[gl].txt"),
    ("adapters.features:parse_features", "adapters/golden/*/k.*"),
    ("adapters.coalescing:parse_coalescing", "adapters/golden/*/c.txt"),
    ("adapters.pause:parse_pause", "adapters/golden/*/a.*"),
    ("adapters.fec:parse_fec", "adapters/golden/*/fec.*"),
    ("adapters.link_settings:parse_link_settings", "adapters/golden/*/settings.txt"),
    ("adapters.receive_hashing:parse_receive_hashing", "adapters/golden/*/x.txt"),
    ("adapters.private_flags:parse_private_flags", "adapters/golden/*/priv.txt"),
    ("adapters.energy:parse_energy", "adapters/golden/*/eee*.txt"),
    ("adapters.time_stamping:parse_time_stamping", "adapters/golden/*/T.txt"),
    ("adapters.module:parse_module", "adapters/golden/*/m.txt"),
    ("adapters.pci:parse_pci", "adapters/golden/*/sysfs.txt"),
    ("adapters.pci:parse_names", "adapters/golden/*/lspci_vmm.txt"),
    ("adapters.pci_express:parse_pci_express", "adapters/golden/*/lspci_vv.txt"),
    ("adapters.pci_express:parse_register", "adapters/golden/*/setpci_w.txt"),
    ("adapters.interrupts:parse_interrupts", "adapters/golden/*/interrupts.txt"),
    ("adapters.lldp:parse_neighbours", "adapters/golden/lldp/*.json"),
    ("adapters.dcb:parse_pfc", "adapters/golden/*/dcb_pfc.json"),
    ("adapters.dcb:parse_trust", "adapters/golden/*/dcb_apptrust.json"),
    ("adapters.dcb:parse_dscp", "adapters/golden/*/dcb_app.json"),
    ("adapters.dcb:parse_classes", "adapters/golden/*/dcb_ets.json"),
    ("adapters.devlink:parse_info", "adapters/golden/*/devlink_info.json"),
    ("adapters.devlink:parse_parameters", "adapters/golden/*/devlink_param.json"),
    ("adapters.mlxconfig:parse_mlxconfig", "adapters/golden/*/mlxconfig*.txt"),
    ("adapters.links:parse_links", "adapters/golden/*/link*.json"),
    ("adapters.rdma:parse_rdma_links", "adapters/golden/*/rdma*.json"),
    ("adapters.bonding:parse_order", "adapters/golden/*/slaves.txt"),
    ("adapters.bonding:parse_speeds", "adapters/golden/*/speeds.txt"),
    ("adapters.queueing:parse_qdiscs", "adapters/golden/*/qdisc.json"),
    ("inventory.facts.flow_steering:parse_steering", "inventory/golden/queues*.txt"),
    ("inventory.facts.interfaces:parse_link", "inventory/golden/ip_link*.json"),
    ("inventory.facts.packet_steering:parse_masks", "inventory/golden/rps*.txt"),
    # doctor
    ("doctor.package_list:installed_packages", "inventory/golden/dpkg_query*.txt"),
    ("doctor.package_list:parse_packages", "../packages.debian"),
    ("doctor.checks.af_xdp:parse_features", "doctor/golden/xdp_features*.json"),
    ("doctor.checks.af_xdp:kernel_version", "doctor/golden/osrelease*.txt"),
    ("doctor.checks.isolated_cores:parse_listed", "doctor/golden/cpus*.txt"),
    ("doctor.checks.neighbours:parse_looks", "doctor/golden/looks*.json"),
    ("doctor.checks._interfaces:parse_interfaces", "doctor/golden/interfaces*.txt"),
    ("doctor.checks._interfaces:default_routes", "doctor/golden/route.txt"),
    ("doctor.checks._interfaces:default_routes_6", "doctor/golden/route_ipv6.txt"),
    ("model.cpu_list:parse_cpu_list", "doctor/golden/cpus*.txt"),
    # monitor
    # loss ledger and health
    ("ledger.sources.conntrack:Conntrack.read", "ledger/golden/nf_conntrack.txt", LEDGER),
    ("ledger.sources.drivers:Drivers.read", "ledger/golden/ethtool_*.txt", LEDGER),
    ("ledger.sources.drivers:devices_and_statistics", "ledger/golden/ethtool_*.txt"),
    ("ledger.sources.ip_layer:IpLayer.read", "ledger/golden/snmp*.txt", LEDGER),
    ("ledger.sources.links:Links.read", "ledger/golden/ip_link*.json", LEDGER),
    ("ledger.sources.nftables:Nftables.read", "ledger/golden/nft*.json", LEDGER),
    ("ledger.sources.qdisc:Qdisc.read", "ledger/golden/tc_qdisc.json", LEDGER),
    ("ledger.sources.softnet:Softnet.read", "ledger/golden/softnet*.txt", LEDGER),
    ("health.probes.card_temperature:CardTemperature.read", "health/golden/hwmon_card.txt", HEALTH),
    ("health.probes.carrier:Carrier.read", "health/golden/carrier.txt", HEALTH),
    ("health.probes.fec:Fec.read", "health/golden/show_fec*.txt", HEALTH),
    ("health.probes.module:Module.read", "health/golden/module*.txt", HEALTH),
    ("health.probes.pcie_errors:PcieErrors.read", "health/golden/aer*.txt", HEALTH),
    ("health.probes.pcie_link:PcieLink.read", "health/golden/pcie_link.txt", HEALTH),
    ("health.probes.phy:Phy.read", "health/golden/phy*.txt", HEALTH),
    ("health.probes.power:Power.read", "health/golden/rapl.txt", HEALTH),
    ("health.probes.processor_temperature:ProcessorTemperature.read", "health/golden/hwmon_processor.txt", HEALTH),
    ("health.probes.throttling:Throttling.read", "health/golden/throttling.txt", HEALTH),
    ("hosts._sections:sections", "health/golden/show_fec*.txt"),
    # bonds of rounds
    ("rounds.connections:parse_sockets", "rounds/golden/ss_*.txt"),
    ("rounds.mounts:mount_of", "rounds/golden/mount_*.txt"),
    ("rounds.bond_reading:moment_in", "rounds/golden/moment.txt"),
    ("rounds.bond_reading:bonds_in", "adapters/golden/bonding/facts.txt", ("bond0",)),
    # tuning
    ("tuning.huge_pages:huge_pages_of_meminfo", "inventory/golden/meminfo*.txt"),
    ("tuning.items._mounts:mounts_of", "tuning/golden/mountinfo.txt"),
    ("tuning.items.boot_parameters:parameters_of", "inventory/golden/cmdline*.txt"),
    ("tuning.items.connection_tracking:values_of_ruleset", "inventory/golden/nft_ruleset*.json", "filter"),
    ("tuning.items.irqbalance:state_of_stat", "inventory/golden/stat*.txt"),
    ("tuning.items.nfsd:versions_of", "tuning/golden/nfsd_versions.txt"),
    ("tuning.items.tuned:profile_of", "tuning/golden/tuned*.txt"),
    ("tuning.owner:start_ticks_of_stat", "inventory/golden/stat*.txt"),
)

WHERE_PARSERS_LIVE = (
    "nicbench.adapters",
    "nicbench.doctor",
    "nicbench.ledger",
    "nicbench.health",
    "nicbench.labs",
    "nicbench.monitor",
    "nicbench.tuning",
    "nicbench.redfish",
    "nicbench.inventory",
)
EXPECTED = (*NOT_UNDERSTOOD, *UNKNOWN, CannotSetError)
PATIENCE_S = 60
"""Far over what any parser needs on any machine: whoever reaches it will not end."""

every_parser = pytest.mark.parametrize("line", PARSERS, ids=lambda line: str(line[0]))


@every_parser
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32 - 1), text=st.text(max_size=200))
def test_hostile_text_is_null_with_a_reason_at_worst(line: tuple[Any, ...], seed: int, text: str) -> None:
    draw = random.Random(seed)
    golden = draw.choice(goldens(line) or (text,))
    for hostile in (text, *(spoilt(golden, text, draw) for _ in range(6))):
        survives(line, hostile)


@every_parser
def test_truncated_text_is_null_with_a_reason_at_worst(line: tuple[Any, ...]) -> None:
    for golden in goldens(line):
        for end in {*range(0, len(golden), max(1, len(golden) // 60)), *_line_ends(golden)[:100]}:
            survives(line, golden[:end])


@every_parser
def test_text_without_end_is_bounded(line: tuple[Any, ...]) -> None:
    for piece in ("a", " ", "\n", "0", "[", '{"a":', "a: 1\n", "\t: ", "/sys/x:1\n", "a b c\n", "-", "\u0665"):
        survives(line, piece * 50_000)


@every_parser
def test_every_golden_is_there_and_says_something(line: tuple[Any, ...]) -> None:
    assert goldens(line), f"no file is like tests/{line[1]}"
    assert any(called(line, golden) is not None for golden in goldens(line))


def test_every_parser_is_in_the_list() -> None:
    listed = {f"nicbench.{line[0]}" for line in PARSERS}
    lacking = sorted(set(_parsers_there_are()) - listed)
    assert not lacking, f"add a line to PARSERS for: {', '.join(lacking)}"


def survives(line: tuple[Any, ...], text: str) -> None:
    """Calls the parser; anything but plain data of bounded size or an expected exception fails the test."""
    try:
        with patience():
            found = plain_data(to_jsonable_python(called(line, text)))
    except EXPECTED:
        return
    assert len(json.dumps(found)) <= 30 * len(text) + 20_000


def called(line: tuple[Any, ...], text: str) -> Any:
    """What the parser makes of the text."""
    parser, of_values = parser_of(line[0])
    return parser(paths_and_values(text) if of_values else text, *line[2:])


@cache
def parser_of(name: str) -> tuple[Callable[..., Any], bool]:
    """The function, and whether it takes paths and values in the place of text."""
    module, _, path = name.partition(":")
    parser: Any = importlib.import_module(f"nicbench.{module}")
    for part in path.split("."):
        parser = getattr(parser, part)
        parser = parser() if inspect.isclass(parser) else parser
    first = next(iter(inspect.signature(parser).parameters))
    return parser, get_type_hints(parser)[first] is not str


@cache
def _texts(pattern: str) -> tuple[str, ...]:
    return tuple(path.read_text(encoding="utf-8") for path in sorted(TESTS.glob(pattern)) or [TESTS / pattern])


def goldens(line: tuple[Any, ...]) -> tuple[str, ...]:
    """The recorded outputs of this parser's tool."""
    return _texts(line[1])


def spoilt(golden: str, text: str, draw: random.Random) -> str:
    """A golden output as a broken tool, another version or an enemy might print it."""
    start, end = sorted((draw.randint(0, len(golden)), draw.randint(0, len(golden))))
    words = golden.split(" ")
    lines = golden.splitlines(keepends=True)
    ways: list[Callable[[], str]] = [
        lambda: golden[:end],
        lambda: golden[start:],
        lambda: golden[:start] + golden[end:],
        lambda: golden[:start] + text + golden[end:],
        lambda: golden[:end] + golden[start:],
        lambda: "".join(draw.sample(lines, len(lines))),
        lambda: " ".join(draw.choice(_NASTY) if draw.random() < 0.1 else word for word in words),
        lambda: "".join(draw.choice(_NASTY) if mark.isdigit() and draw.random() < 0.1 else mark for mark in golden),
        lambda: golden.replace(":", draw.choice(_NASTY)),
        lambda: golden.replace("\n", draw.choice(("", "\r\n", "\n\n", " "))),
        golden.swapcase,
        partial(_other_types, golden, draw),
    ]
    return draw.choice(ways)()


_NASTY = (
    *("", "\0", "-", "-1", "0", "1e999", "NaN", "9" * 400, "9" * 5000, "0x", "²", "٣", "None", "null", "[]", "{}"),
    *('"', "'", "\\", ":", "=", "(", "[", "]", "%s", "{0}", "\x1b[31m", "\u2028", "\ufffd", "<script>", "n/a"),
)


def _other_types(golden: str, draw: random.Random) -> str:
    """JSON whose values have other types than they should have; of other text, two halves swapped."""
    try:
        content = json.loads(golden)
    except ValueError:
        return golden[len(golden) // 2 :] + golden[: len(golden) // 2]
    return json.dumps(_changed(content, draw))


def _changed(content: Any, draw: random.Random) -> Any:
    if draw.random() < 0.05:
        return draw.choice([None, True, -1, 1e308, float("inf"), "", "x", [], [None], {}, {"": []}, 10**30])
    if isinstance(content, dict):
        return {key: _changed(value, draw) for key, value in content.items() if draw.random() < 0.97}
    return [_changed(value, draw) for value in content] if isinstance(content, list) else content


def _line_ends(text: str) -> list[int]:
    return [place for place, mark in enumerate(text) if mark == "\n"]


def _parsers_there_are() -> Iterator[str]:
    """Functions called ``parse_...`` of the packages that read what tools print."""
    for package in WHERE_PARSERS_LIVE:
        root = importlib.import_module(package)
        for info in pkgutil.walk_packages(root.__path__, f"{package}."):
            module = importlib.import_module(info.name)
            for name, value in vars(module).items():
                if name.startswith("parse_") and inspect.isfunction(value) and value.__module__ == info.name:
                    yield f"{info.name}:{name}"


@contextlib.contextmanager
def patience() -> Iterator[None]:
    """Ends a parser that would never end, with the place where it is."""

    def too_long(_number: int, _frame: FrameType | None) -> None:
        pytest.fail(f"still parsing after {PATIENCE_S} s")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
