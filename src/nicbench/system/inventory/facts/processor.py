"""Facts of processors: model, clock, sleep, power, and mitigations."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, TypedDict

from nicbench.core.described import Facts, Label, Subject, Write
from nicbench.core.errors import UnknownFactError
from nicbench.core.units import count_of
from nicbench.hosts.asking import output_of, text_of, values_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact, FilesFact, join_list, join_texts, part_of

_NUMBERS = {
    "CPU(s)": "cpus",
    "Socket(s)": "sockets",
    "Core(s) per socket": "cores_per_socket",
    "Thread(s) per core": "threads_per_core",
}
_CLOCKS = {"CPU min MHz": "minimum_hz", "CPU max MHz": "maximum_hz"}
_TEXTS = {
    "Architecture": "architecture",
    "Vendor ID": "vendor",
    "Model name": "model",
    "CPU family": "family",
    "Model": "model_number",
    "Stepping": "stepping",
    "L1d cache": "level_1_data_cache",
    "L2 cache": "level_2_cache",
    "L3 cache": "level_3_cache",
}
_MICROCODE = re.compile(r"^(?:microcode|revision)\s*:\s*(\S+)$", re.MULTILINE)  # x86, and PowerPC's
_ISOLATION = {
    "isolated": "/sys/devices/system/cpu/isolated",
    "without_timer_tick": "/sys/devices/system/cpu/nohz_full",
    "online": "/sys/devices/system/cpu/online",
}


class _Cpu(TypedDict):
    """All processors together."""

    architecture: str | None
    vendor: str | None
    model: str | None
    family: str | None
    model_number: str | None
    stepping: str | None
    level_1_data_cache: str | None
    level_2_cache: str | None
    level_3_cache: str | None
    cpus: Annotated[int | None, Label("CPUs", alone=True)]
    sockets: int | None
    cores_per_socket: int | None
    threads_per_core: int | None
    minimum_hz: int | None
    maximum_hz: int | None
    microcode: str | None
    cpus_isolated: Annotated[str | None, Label("Isolated CPUs", alone=True)]
    cpus_without_timer_tick: Annotated[str | None, Label("CPUs without timer tick", alone=True)]
    cpus_online: Annotated[str | None, Label("Online CPUs", alone=True)]


def _tell_processors(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "cpu")
    if not found.get("model"):
        return None
    sockets, cores = found.get("sockets"), found.get("cores_per_socket")
    return join_texts(
        f"{sockets} \u00d7 {found['model']}" if sockets else found["model"],
        found.get("vendor"),
        f"{count_of(cores, 'core')}{' each' if sockets != 1 else ''}" if cores else None,
        f"{found['cpus']} CPUs" if found.get("cpus") else None,
    )


def _tell_stepping(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "cpu")
    names = {"family": "family", "model_number": "model", "stepping": "stepping", "microcode": "microcode"}
    return join_texts(*(f"{word} {found[name]}" for name, word in names.items() if found.get(name)))


def _tell_isolated(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "cpu")
    kept = {"cpus_isolated": "isolated", "cpus_without_timer_tick": "without timer tick"}
    told = [f"CPUs {found[name]} {words}" for name, words in kept.items() if found.get(name) not in (None, "", "none")]
    return join_texts(*told) or ("none" if found.get("cpus_isolated") == "none" else None)


class Cpu(Fact):
    """Processors: model, sockets, cores, threads, and which CPUs this process may use.

    From ``lscpu -J`` and ``/proc/cpuinfo``.
    """

    kind = "cpu"
    shape = _Cpu
    of_machine = True
    subjects = (
        Subject("Processors", 90, _tell_processors),
        Subject("Stepping", 100, _tell_stepping),
        Subject("CPUs set apart", 160, _tell_isolated),
    )

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        facts = parse_lscpu(await output_of(host, "lscpu", "-J"))
        try:
            facts["microcode"] = parse_microcode(await text_of(host, "/proc/cpuinfo"))
        except UnknownFactError:
            facts["microcode"] = None
        try:
            lists = await values_of(host, _ISOLATION.values())
        except UnknownFactError:
            lists = {}
        return facts | {
            f"cpus_{name}": _cpu_list(lists[path]) if path in lists else None for name, path in _ISOLATION.items()
        }


def _cpu_list(text: str) -> str:
    """An empty list is a fact, too: no CPU is. Where no CPU ever was to be, ``nohz_full`` prints ``(null)``."""
    return "none" if text in ("", "(null)") else text


def parse_lscpu(text: str) -> dict[str, Any]:
    """What of ``lscpu -J`` a report needs; a field that this version of it does not print is null."""
    fields: dict[str, str] = {}
    _flatten(json.loads(text)["lscpu"], fields)
    numbers = {name: int(fields[field]) if field in fields else None for field, name in _NUMBERS.items()}
    clocks = {name: _hertz(fields.get(field)) for field, name in _CLOCKS.items()}
    return {name: fields.get(field) for field, name in _TEXTS.items()} | numbers | clocks


def parse_microcode(text: str) -> str | None:
    """The revision that every processor bears; several are a fault of their own and all named."""
    return ", ".join(sorted(set(_MICROCODE.findall(text)))) or None


def _hertz(megahertz: str | None) -> int | None:
    """``3700.0000``; lscpu prints "-" or nothing on a virtual machine."""
    return round(float(megahertz) * 1e6) if megahertz and megahertz[0].isdigit() else None


def _flatten(entries: list[dict[str, Any]], into: dict[str, str]) -> None:
    """Newer versions nest the fields below headings."""
    for entry in entries:
        if entry.get("data") is not None:
            into[str(entry["field"]).rstrip(":")] = str(entry["data"])
        _flatten(entry.get("children", []), into)


_FOLDER = "/sys/devices/system/cpu/smt/"


class _Smt(TypedDict):
    """Simultaneous multithreading."""

    active: bool | None
    control: str | None


def _tell_smt(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "smt")
    words = {"notsupported": "not supported", "notimplemented": "not implemented"}
    if found.get("active"):
        return f"on, {part_of(facts, 'cpu').get('threads_per_core') or 'several'} threads a core"
    return words.get(str(found["control"]), str(found["control"])) if found.get("control") else None


def parse_smt(values: dict[str, str]) -> dict[str, Any]:
    """``control`` is on, off, forceoff, notsupported or notimplemented (sysfs-devices-system-cpu)."""
    active = values.get(f"{_FOLDER}active")
    return {"active": None if active is None else active == "1", "control": values.get(f"{_FOLDER}control")}


class Smt(FilesFact):
    """Simultaneous multithreading: whether two threads share a core, and whether that can be switched.

    From ``/sys/devices/system/cpu/smt``.
    """

    kind = "smt"
    shape = _Smt
    of_machine = True
    subjects = (Subject("SMT", 140, _tell_smt),)
    paths = (f"{_FOLDER}active", f"{_FOLDER}control")
    parse = staticmethod(parse_smt)


_POLICIES = "/sys/devices/system/cpu/cpufreq/policy*/"
_PATHS = (
    *(_POLICIES + name for name in ("scaling_driver", "scaling_governor", "scaling_min_freq", "scaling_max_freq")),
    "/sys/devices/system/cpu/intel_pstate/no_turbo",
    "/sys/devices/system/cpu/cpufreq/boost",
)


class _Policy(TypedDict):
    """What all CPUs have, each different value once."""

    driver: list[str] | None
    governor: list[str] | None
    minimum_hz: list[int] | None
    maximum_hz: list[int] | None
    boost: bool | None


def _tell_clock(facts: Facts, write: Write) -> str | None:
    policy, cpu = part_of(facts, "core_clock_policy"), part_of(facts, "cpu")
    limits = [(policy.get(name) or [cpu.get(name)])[0] for name in ("minimum_hz", "maximum_hz")]
    boost = policy.get("boost")
    return join_texts(
        f"{write('_hz', limits[0])} to {write('_hz', limits[1])}" if all(limits) else None,
        f"governor {join_list(policy.get('governor'))}" if policy.get("governor") else None,
        join_list(policy.get("driver")),
        None if boost is None else f"boost {'on' if boost else 'off'}",
    )


def parse_policies(values: dict[str, str]) -> dict[str, Any]:
    """Distinct values over all CPUs; frequencies are in kHz there."""

    def distinct(name: str) -> list[str] | None:
        return sorted({value for path, value in values.items() if path.endswith(f"/{name}")}) or None

    def hertz(name: str) -> list[int] | None:
        return sorted(int(value) * 1000 for value in distinct(name) or []) or None

    no_turbo = values.get("/sys/devices/system/cpu/intel_pstate/no_turbo")
    boost = values.get("/sys/devices/system/cpu/cpufreq/boost")
    return {
        "driver": distinct("scaling_driver"),
        "governor": distinct("scaling_governor"),
        "minimum_hz": hertz("scaling_min_freq"),
        "maximum_hz": hertz("scaling_max_freq"),
        "boost": no_turbo == "0" if no_turbo is not None else boost == "1" if boost is not None else None,
    }


class Frequency(FilesFact):
    """How the core clock is governed: driver, governor, limits, boost. Virtual machines rarely say.

    From ``/sys/devices/system/cpu/cpufreq``.
    """

    kind = "core_clock_policy"
    shape = _Policy
    of_machine = True
    subjects = (Subject("Frequency policy", 110, _tell_clock),)
    paths = _PATHS
    parse = staticmethod(parse_policies)


_IDLE_STATES_FOLDER = "/sys/devices/system/cpu/cpuidle/"
_IDLE_STATES_PATHS = (
    f"{_IDLE_STATES_FOLDER}current_driver",
    f"{_IDLE_STATES_FOLDER}current_governor",
    f"{_IDLE_STATES_FOLDER}current_governor_ro",
    *(f"/sys/devices/system/cpu/cpu*/cpuidle/state*/{name}" for name in ("name", "latency", "disable")),
)
_STATE = re.compile(r"/cpu(\d+)/cpuidle/state(\d+)/(name|latency|disable)$")


class _State(TypedDict):
    """One state."""

    exit_latency_us: int | None
    disabled: str | None


class _IdleStates(TypedDict):
    """Of all CPUs; states by the driver's names."""

    driver: str | None
    governor: str | None
    states: dict[str, _State]


def _tell_idle(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "idle_states")
    states = part_of(found, "states")
    if not states:
        return "none used" if found.get("driver") == "none" else None
    told = []
    for name, state in states.items():
        exit_us, disabled = state.get("exit_latency_us"), state.get("disabled")
        off = "" if disabled in (None, "no") else ", disabled" if disabled == "yes" else f", disabled {disabled}"
        told.append(f"{name} ({exit_us} µs{off})" if exit_us is not None else f"{name}{off}")
    return join_texts(", ".join(told), found.get("driver"), by="; ")


def parse_idle_states(values: dict[str, str]) -> dict[str, Any]:
    """States in their order with the time to leave each; disabled: yes, no, or the CPUs on which it is."""
    states: dict[int, dict[str, Any]] = {}
    disabled: dict[int, dict[int, bool]] = {}
    for path, value in values.items():
        found = _STATE.search(path)
        if not found:
            continue
        cpu, number, what = int(found[1]), int(found[2]), found[3]
        if what == "disable":
            disabled.setdefault(number, {})[cpu] = value != "0"
        else:
            state = states.setdefault(number, {})
            state["name" if what == "name" else "exit_latency_us"] = value if what == "name" else int(value)
    driver = values.get(f"{_IDLE_STATES_FOLDER}current_driver")
    governor = values.get(f"{_IDLE_STATES_FOLDER}current_governor") or values.get(
        f"{_IDLE_STATES_FOLDER}current_governor_ro"
    )
    return {
        "driver": driver,
        "governor": governor,
        "states": {
            str(state.get("name", number)): {
                "exit_latency_us": state.get("exit_latency_us"),
                "disabled": _on_which(disabled.get(number, {})),
            }
            for number, state in sorted(states.items())
        },
    }


class IdleStates(FilesFact):
    """C-states: who chooses them, how long each takes to leave, and which are disabled. Waking costs latency.

    From ``/sys/devices/system/cpu/cpuidle``.
    """

    kind = "idle_states"
    shape = _IdleStates
    of_machine = True
    subjects = (Subject("C-states", 130, _tell_idle),)
    paths = _IDLE_STATES_PATHS
    parse = staticmethod(parse_idle_states)


def _on_which(cpus: dict[int, bool]) -> str | None:
    on = sorted(cpu for cpu, is_so in cpus.items() if is_so)
    if not cpus:
        return None
    return "no" if not on else "yes" if len(on) == len(cpus) else f"on CPUs {', '.join(map(str, on))}"


_PLATFORM = "/sys/firmware/acpi/platform_profile"
_ASPM = "/sys/module/pcie_aspm/parameters/policy"
_PER_CPU = {
    "energy_performance_preference": "energy_preference",
    "energy_perf_bias": "energy_bias",
}
_POWER_POLICY_PATHS = (
    _PLATFORM,
    _ASPM,
    "/sys/devices/system/cpu/cpufreq/policy*/energy_performance_preference",
    "/sys/devices/system/cpu/cpu*/power/energy_perf_bias",
    "/sys/devices/system/cpu/intel_pstate/status",
    "/sys/devices/system/cpu/amd_pstate/status",
)


class _Power(TypedDict):
    """Of the platform and of all CPUs."""

    platform_profile: str | None
    energy_preference: list[str] | None
    energy_bias: list[str] | None
    scaling_mode: str | None
    pci_express_power: str | None


def _tell_power(facts: Facts, write: Write) -> str | None:
    found, tuned = part_of(facts, "power_policy"), part_of(facts, "tuned")
    profile = f"tuned profile {tuned['profile']}" if tuned.get("profile") else None
    return join_texts(
        f"platform profile {found['platform_profile']}" if found.get("platform_profile") else None,
        f"energy preference {join_list(found.get('energy_preference'))}" if found.get("energy_preference") else None,
        f"{profile}{'' if tuned.get('running') else ' (not running)'}" if profile else None,
        f"PCI Express power {found['pci_express_power']}" if found.get("pci_express_power") else None,
    )


def parse_power_policy(values: dict[str, str]) -> dict[str, Any]:
    """Distinct values over all CPUs; of the PCI Express policy (``default [performance] powersave``) the chosen one."""
    facts: dict[str, Any] = {"platform_profile": values.get(_PLATFORM)}
    for file, name in _PER_CPU.items():
        facts[name] = sorted({value for path, value in values.items() if path.endswith(f"/{file}")}) or None
    facts["scaling_mode"] = next((value for path, value in values.items() if path.endswith("_pstate/status")), None)
    chosen = values.get(_ASPM, "").partition("[")[2].partition("]")
    facts["pci_express_power"] = chosen[0] if chosen[1] else None
    return facts


class PowerPolicy(FilesFact):
    """How the machine trades speed for power: platform profile, energy preference and bias of its processors.

    From ``/sys/firmware/acpi``, ``cpufreq`` and ``pcie_aspm``.
    """

    kind = "power_policy"
    shape = _Power
    of_machine = True
    subjects = (Subject("Power policy", 120, _tell_power),)
    paths = _POWER_POLICY_PATHS
    parse = staticmethod(parse_power_policy)


_MITIGATIONS_FOLDER = "/sys/devices/system/cpu/vulnerabilities/"
_NOT_AFFECTED = "Not affected"


def _tell_mitigations(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "mitigations")
    if facts.get("mitigations") is None:
        return None
    open_ones = [name for name, state in found.items() if str(state).startswith("Vulnerable")]
    working = [name for name in found if name not in open_ones]
    return join_texts(
        ", ".join(working) if working else "none at work",
        f"vulnerable: {', '.join(open_ones)}" if open_ones else None,
        by="; ",
    )


def parse_vulnerabilities(values: dict[str, str]) -> dict[str, str]:
    """Name and state, without those that this processor does not have."""
    return {path.removeprefix(_MITIGATIONS_FOLDER): state for path, state in values.items() if state != _NOT_AFFECTED}


class Mitigations(FilesFact):
    """Mitigations of processor vulnerabilities: they cost forwarding speed, so they are disclosed one by one.

    From ``/sys/devices/system/cpu/vulnerabilities``.
    """

    kind = "mitigations"
    shape = dict[str, str]
    of_machine = True
    subjects = (Subject("Mitigations", 280, _tell_mitigations),)
    paths = (f"{_MITIGATIONS_FOLDER}*",)
    parse = staticmethod(parse_vulnerabilities)


_CLOCK_SOURCE_FOLDER = "/sys/devices/system/clocksource/clocksource0/"


class _ClockSource(TypedDict):
    """The clock source in use, and those that there are."""

    current: str
    available: str


def _tell_clock_source(facts: Facts, write: Write) -> str | None:
    return part_of(facts, "clock_source").get("current")


class ClockSource(Fact):
    """The kernel's clock source: other than the TSC, reading the clock is slow and the engine's time is doubtful.

    From ``/sys/devices/system/clocksource``.
    """

    kind = "clock_source"
    shape = _ClockSource
    of_machine = True
    subjects = (Subject("Clock source", 270, _tell_clock_source),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, str]:
        return {
            "current": (await text_of(host, f"{_CLOCK_SOURCE_FOLDER}current_clocksource")).strip(),
            "available": (await text_of(host, f"{_CLOCK_SOURCE_FOLDER}available_clocksource")).strip(),
        }
