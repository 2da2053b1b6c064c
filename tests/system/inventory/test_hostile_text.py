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

from nicbench.hosts.asking import paths_and_values
from nicbench.measure.health.base import HealthView
from nicbench.measure.ledger.base import Side
from nicbench.measure.ledger.base import View as LedgerView
from nicbench.system.inventory.base import NOT_UNDERSTOOD, UNKNOWN, plain_data
from nicbench.tuning.setting import CannotSetError

TESTS = Path(__file__).parents[2]

# Hosts as the ledger and the health gate see them, with the interfaces of their goldens.
LEDGER = LedgerView(Side.DUT, ("d0", "d1", "eth2"), drivers={"d0": "veth", "eth2": "mlx5_core"})
HEALTH = HealthView("DUT", ("ens1f0np0", "enp4s0f0"), {"ens1f0np0": "mlx5_core", "enp4s0f0": "ixgbe"})

# One line a parser: its module and name below `nicbench`, the goldens below `tests`, and what else it is called with.
PARSERS = (
    # inventory, shared and of the machine
    ("hosts.asking:paths_and_values", "system/inventory/golden/numa*.txt"),
    ("system.adapters.ethtool:parse_stamp_setting", "system/adapters/golden/hwstamp_ctl*.txt"),
    ("system.inventory.base:parse_meminfo", "system/inventory/golden/meminfo*.txt"),
    ("system.inventory.facts.machine:parse_bounds", "system/inventory/golden/container_bounds*.txt"),
    ("system.inventory.facts.processor:parse_lscpu", "system/inventory/golden/lscpu*.json"),
    ("system.inventory.facts.processor:parse_policies", "system/inventory/golden/cpufreq*.txt"),
    ("system.inventory.facts.memory:selected_word", "system/inventory/golden/transparent*.txt"),
    ("system.inventory.facts.machine:parse_virtualization", "system/inventory/golden/lscpu*.json"),
    ("system.inventory.facts.kernel:is_running", "system/inventory/golden/processes*.txt", "irqbalance"),
    ("system.inventory.facts.kernel:parse_command_line", "system/inventory/golden/cmdline*.txt"),
    ("system.inventory.facts.processor:parse_vulnerabilities", "system/inventory/golden/vulnerabilities*.txt"),
    ("system.inventory.facts.memory:parse_nodes", "system/inventory/golden/numa*.txt", ("t0",)),
    ("system.inventory.facts.kernel:parse_os_release", "system/inventory/golden/os_release*.txt"),
    ("system.inventory.facts.kernel:parse_packages", "system/inventory/golden/dpkg_query*.txt"),
    ("system.inventory.facts.kernel:parse_version", "system/inventory/golden/versions*.txt"),
    ("system.inventory.facts.kernel:parse_settings", "system/inventory/golden/sysctls*.txt"),
    ("system.inventory.facts.memory:parse_structures", "system/inventory/golden/dmidecode*.txt"),
    ("system.inventory.facts.machine:parse_fru", "system/inventory/golden/ipmi_fru*.txt"),
    ("system.inventory.facts.machine:parse_sensors", "system/inventory/golden/ipmi_fans*.txt"),
    ("system.inventory.facts.processor:parse_microcode", "system/inventory/golden/cpuinfo*.txt"),
    ("system.inventory.facts.storage:parse_lsblk", "system/inventory/golden/lsblk*.json"),
    ("system.inventory.facts.storage:parse_nvme_list", "system/inventory/golden/nvme_list*.json"),
    ("system.inventory.facts.machine:parse_fans", "system/inventory/golden/ipmi_fans*.txt"),
    ("system.inventory.facts.machine:parse_hwmon_fans", "system/inventory/golden/hwmon_fans*.txt"),
    ("system.inventory.facts.kernel:parse_ruleset", "system/inventory/golden/nft_ruleset*.json"),
    ("system.inventory.facts.machine:parse_identity", "system/inventory/golden/dmi_id*.txt"),
    ("system.inventory.facts.processor:parse_idle_states", "system/inventory/golden/cpuidle*.txt"),
    ("system.inventory.facts.kernel:parse_mask", "system/inventory/golden/irq_default*.txt"),
    ("system.inventory.facts.kernel:parse_iommu", "system/inventory/golden/iommu*.txt"),
    ("system.inventory.facts.kernel:parse_last_update", "system/inventory/golden/last_update*.txt"),
    ("system.inventory.facts.memory:parse_memory", "system/inventory/golden/dmidecode_memory*.txt"),
    ("system.inventory.facts.adapter:parse_ofed", "system/inventory/golden/ofed*.txt"),
    ("system.inventory.facts.processor:parse_power_policy", "system/inventory/golden/power_policy*.txt"),
    ("system.inventory.facts.machine:parse_supplies", "system/inventory/golden/ipmi_fru*.txt"),
    ("system.inventory.facts.machine:parse_supply_states", "system/inventory/golden/ipmi_supplies*.txt"),
    ("system.inventory.facts.kernel:parse_security", "system/inventory/golden/lsm*.txt"),
    ("system.inventory.facts.processor:parse_smt", "system/inventory/golden/smt*.txt"),
    ("system.inventory.facts.kernel:parse_tools", "system/inventory/golden/tools*.txt"),
    (
        "system.inventory.facts.storage:parse_controllers",
        "system/inventory/golden/lspci_storage*.txt",
    ),
    ("system.inventory.facts.kernel:parse_tuned", "system/inventory/golden/tuned*.txt"),
    # inventory, of management controllers
    ("system.redfish.answers:parse_service", "system/redfish/golden/*/root.json"),
    ("system.redfish.answers:parse_members", "system/redfish/golden/*/systems.json"),
    ("system.redfish.answers:parse_system", "system/redfish/golden/*/system.json"),
    ("system.redfish.answers:parse_bios", "system/redfish/golden/*/bios.json"),
    ("system.redfish.readings:parse_chassis_of_system", "system/redfish/golden/*/system.json"),
    ("system.redfish.readings:parse_chassis", "system/redfish/golden/*/chassis.json"),
    ("system.redfish.readings:parse_watts", "system/redfish/golden/*/power.json"),
    # power
    ("measure.power.base:read_zones", "measure/power/golden/rapl*.txt"),
    ("measure.power.base:parse_rapl", "measure/power/golden/rapl*.txt"),
    ("measure.power.base:parse_hwmon", "measure/power/golden/hwmon*.txt"),
    ("measure.power.base:parse_dcmi", "measure/power/golden/dcmi*.txt"),
    # inventory, of network adapters
    ("system.adapters.ethtool:parse_hash_fields", "system/adapters/golden/*/n_udp4.txt"),
    ("system.adapters.ethtool:parse_flow_rules", "system/adapters/golden/*/n_rules.txt"),
    ("system.adapters.ethtool:parse_driver", "system/adapters/golden/*/i.txt"),
    ("system.adapters.ethtool:parse_limits", "system/adapters/golden/*/[gl].txt"),
    ("system.adapters.ethtool:parse_features", "system/adapters/golden/*/k.*"),
    ("system.adapters.ethtool:parse_coalescing", "system/adapters/golden/*/c.txt"),
    ("system.adapters.ethtool:parse_pause", "system/adapters/golden/*/a.*"),
    ("system.adapters.ethtool:parse_fec", "system/adapters/golden/*/fec.*"),
    ("system.adapters.ethtool:parse_link_settings", "system/adapters/golden/*/settings.txt"),
    ("system.adapters.ethtool:parse_receive_hashing", "system/adapters/golden/*/x.txt"),
    ("system.adapters.ethtool:parse_private_flags", "system/adapters/golden/*/priv.txt"),
    ("system.adapters.ethtool:parse_energy", "system/adapters/golden/*/eee*.txt"),
    ("system.adapters.ethtool:parse_time_stamping", "system/adapters/golden/*/T.txt"),
    ("system.adapters.ethtool:parse_module", "system/adapters/golden/*/m.txt"),
    ("system.adapters.pci:parse_pci", "system/adapters/golden/*/sysfs.txt"),
    ("system.adapters.pci:parse_names", "system/adapters/golden/*/lspci_vmm.txt"),
    ("system.adapters.pci:parse_pci_express", "system/adapters/golden/*/lspci_vv.txt"),
    ("system.adapters.pci:parse_register", "system/adapters/golden/*/setpci_w.txt"),
    ("system.adapters.pci:parse_interrupts", "system/adapters/golden/*/interrupts.txt"),
    ("system.adapters.links:parse_neighbours", "system/adapters/golden/lldp/*.json"),
    ("system.adapters.links:parse_pfc", "system/adapters/golden/*/dcb_pfc.json"),
    ("system.adapters.links:parse_trust", "system/adapters/golden/*/dcb_apptrust.json"),
    ("system.adapters.links:parse_dscp", "system/adapters/golden/*/dcb_app.json"),
    ("system.adapters.links:parse_classes", "system/adapters/golden/*/dcb_ets.json"),
    ("system.adapters.pci:parse_info", "system/adapters/golden/*/devlink_info.json"),
    ("system.adapters.pci:parse_parameters", "system/adapters/golden/*/devlink_param.json"),
    ("system.adapters.pci:parse_mlxconfig", "system/adapters/golden/*/mlxconfig*.txt"),
    ("system.adapters.links:parse_links", "system/adapters/golden/*/link*.json"),
    ("system.adapters.links:parse_rdma_links", "system/adapters/golden/*/rdma*.json"),
    ("system.adapters.links:parse_order", "system/adapters/golden/*/slaves.txt"),
    ("system.adapters.links:parse_speeds", "system/adapters/golden/*/speeds.txt"),
    ("system.adapters.links:parse_qdiscs", "system/adapters/golden/*/qdisc.json"),
    ("system.inventory.facts.adapter:parse_rdma_devices", "system/adapters/golden/*/infiniband.txt"),
    ("system.inventory.facts.queues:parse_steering", "system/inventory/golden/queues*.txt"),
    ("system.inventory.facts.interface:parse_link", "system/inventory/golden/ip_link*.json"),
    ("system.inventory.facts.queues:parse_masks", "system/inventory/golden/rps*.txt"),
    # XDP
    ("system.xdp.abilities:parse_flags", "system/xdp/golden/flags*.json"),
    ("system.xdp.abilities:parse_attempt", "system/xdp/golden/attempt*.json"),
    ("system.xdp.abilities:parse_kernel", "system/xdp/golden/osrelease*.txt"),
    ("system.xdp.abilities:parse_queues", "system/xdp/golden/queues*.txt"),
    ("system.xdp.abilities:parse_received", "system/xdp/golden/received.json"),
    ("system.xdp.abilities:missing_capabilities", "system/xdp/golden/status*.txt"),
    # doctor
    ("doctor.checks.software:parse_installed_packages", "system/inventory/golden/dpkg_query*.txt"),
    ("doctor.checks.software:parse_packages", "../packages.debian"),
    ("doctor.checks.cores:parse_listed", "doctor/golden/cpus*.txt"),
    ("doctor.checks.cores:parse_looks", "doctor/golden/looks*.json"),
    ("doctor.base:parse_interfaces", "doctor/golden/interfaces*.txt"),
    ("doctor.base:default_routes", "doctor/golden/route.txt"),
    ("doctor.base:default_routes_6", "doctor/golden/route_ipv6.txt"),
    ("core.machine:parse_cpu_list", "doctor/golden/cpus*.txt"),
    # monitor
    # loss ledger and health
    ("measure.ledger.sources.kernel:Conntrack.read", "measure/ledger/golden/nf_conntrack.txt", LEDGER),
    ("measure.ledger.sources.drivers:Drivers.read", "measure/ledger/golden/ethtool_*.txt", LEDGER),
    ("measure.ledger.sources.drivers:devices_and_statistics", "measure/ledger/golden/ethtool_*.txt"),
    ("measure.ledger.sources.kernel:IpLayer.read", "measure/ledger/golden/snmp*.txt", LEDGER),
    ("measure.ledger.sources.kernel:Links.read", "measure/ledger/golden/ip_link*.json", LEDGER),
    ("measure.ledger.sources.kernel:Nftables.read", "measure/ledger/golden/nft*.json", LEDGER),
    ("measure.ledger.sources.kernel:Qdisc.read", "measure/ledger/golden/tc_qdisc.json", LEDGER),
    ("measure.ledger.sources.kernel:Softnet.read", "measure/ledger/golden/softnet*.txt", LEDGER),
    ("measure.health.probes.adapters:CardTemperature.read", "measure/health/golden/hwmon_card.txt", HEALTH),
    ("measure.health.probes.adapters:Carrier.read", "measure/health/golden/carrier.txt", HEALTH),
    ("measure.health.probes.adapters:Fec.read", "measure/health/golden/show_fec*.txt", HEALTH),
    ("measure.health.probes.adapters:Module.read", "measure/health/golden/module*.txt", HEALTH),
    ("measure.health.probes.adapters:PcieErrors.read", "measure/health/golden/aer*.txt", HEALTH),
    ("measure.health.probes.adapters:PcieLink.read", "measure/health/golden/pcie_link.txt", HEALTH),
    ("measure.health.probes.adapters:Phy.read", "measure/health/golden/phy*.txt", HEALTH),
    ("measure.health.probes.processors:Power.read", "measure/health/golden/rapl.txt", HEALTH),
    (
        "measure.health.probes.processors:ProcessorTemperature.read",
        "measure/health/golden/hwmon_processor.txt",
        HEALTH,
    ),
    ("measure.health.probes.processors:Throttling.read", "measure/health/golden/throttling.txt", HEALTH),
    ("hosts.asking:split_sections", "measure/health/golden/show_fec*.txt"),
    # bonds of rounds
    ("measure.host_readings:parse_sockets", "measure/golden/ss_*.txt"),
    ("measure.host_readings:mount_of", "measure/golden/mount_*.txt"),
    ("measure.host_readings:parse_moment", "measure/golden/moment.txt"),
    ("measure.host_readings:parse_bonds", "system/adapters/golden/bonding/facts.txt", ("bond0",)),
    # tuning
    ("testbed.duts.ovs:parse_statistics", "testbed/duts/golden/ovs_pmd_stats*.txt"),
    ("testbed.duts.vpp:parse_interfaces", "testbed/duts/golden/vpp_show_interface*.txt"),
    ("testbed.duts.vpp:parse_errors", "testbed/duts/golden/vpp_show_errors*.txt"),
    ("testbed.duts.vpp:parse_runtime", "testbed/duts/golden/vpp_show_runtime*.txt"),
    ("tuning.preparation:huge_pages_of_meminfo", "system/inventory/golden/meminfo*.txt"),
    ("tuning.items.storage:mounts_of", "tuning/golden/mountinfo.txt"),
    ("tuning.items.kernel:parameters_of", "system/inventory/golden/cmdline*.txt"),
    (
        "tuning.items.kernel:values_of_ruleset",
        "system/inventory/golden/nft_ruleset*.json",
        "filter",
    ),
    ("tuning.items.steering:state_of_stat", "system/inventory/golden/stat*.txt"),
    ("tuning.items.storage:versions_of", "tuning/golden/nfsd_versions.txt"),
    ("tuning.items.kernel:profile_of", "tuning/golden/tuned*.txt"),
    ("hosts.owner:start_ticks_of_stat", "system/inventory/golden/stat*.txt"),
)

WHERE_PARSERS_LIVE = (
    "nicbench.system.adapters",
    "nicbench.doctor",
    "nicbench.measure.ledger",
    "nicbench.measure.health",
    "nicbench.measure.power",
    "nicbench.testbed.labs",
    "nicbench.monitor",
    "nicbench.tuning",
    "nicbench.system.redfish",
    "nicbench.system.inventory",
    "nicbench.system.xdp",
)
EXPECTED = (*NOT_UNDERSTOOD, *UNKNOWN, CannotSetError)
PATIENCE_S = 60
"""Far over what any parser needs on any machine: whoever reaches it will not end."""

every_parser = pytest.mark.parametrize("line", PARSERS, ids=lambda line: str(line[0]))


@pytest.mark.sampled(20)
@every_parser
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32 - 1), text=st.text(max_size=200))
def test_hostile_text_is_null_with_a_reason_at_worst(line: tuple[Any, ...], seed: int, text: str) -> None:
    draw = random.Random(seed)
    golden = draw.choice(goldens(line) or (text,))
    for hostile in (text, *(spoilt(golden, text, draw) for _ in range(6))):
        survives(line, hostile)


@pytest.mark.sampled(20)
@every_parser
def test_truncated_text_is_null_with_a_reason_at_worst(line: tuple[Any, ...]) -> None:
    for golden in goldens(line):
        for end in {*range(0, len(golden), max(1, len(golden) // 60)), *_line_ends(golden)[:100]}:
            survives(line, golden[:end])


@pytest.mark.sampled(6)
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
    parser = importlib.import_module(f"nicbench.{module}")
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
    ways = [
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
        pytest.fail(f"still parsing after {PATIENCE_S} s of CPU time")

    before = signal.signal(signal.SIGPROF, too_long)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
