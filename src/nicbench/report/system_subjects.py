"""The subjects of the system configuration table: each in one line, from the facts of a machine, or None."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from nicbench.report.facts import plain
from nicbench.system.redfish.answers import group_of

Facts = Mapping[str, Any]
Tell = Callable[[Facts], str | None]


def _part(facts: Facts, name: str) -> Mapping[str, Any]:
    found = facts.get(name)
    return found if isinstance(found, Mapping) else {}


def _join(*parts: object, by: str = ", ") -> str | None:
    return by.join(str(part) for part in parts if part not in (None, "", [])) or None


def _list(values: Any) -> str | None:
    return ", ".join(map(str, values)) if isinstance(values, list) and values else None


def _machine(facts: Facts) -> str | None:
    found = _part(facts, "firmware")
    board = _join(found.get("board_vendor"), found.get("board"), by=" ")
    return _join(
        _join(found.get("vendor"), found.get("product"), by=" "),
        f"board {board}" if board else None,
        found.get("chassis"),
    )


def _bios(facts: Facts) -> str | None:
    found = _part(facts, "firmware")
    return _join(_join(found.get("bios_vendor"), found.get("bios_version"), by=" "), found.get("bios_date"))


def _bios_settings(facts: Facts) -> str | None:
    """Those that change network results, by what they do; the others stand below the table."""
    found = _part(facts, "bios_settings")
    groups: dict[str, list[str]] = {}
    others = 0
    for name, value in _part(found, "attributes").items():
        group = group_of(str(name))
        if group is None:
            others += 1
        else:
            groups.setdefault(group, []).append(f"{name} {plain('', value)}")
    waiting = [f"{name} {plain('', value)}" for name, value in _part(found, "pending").items()]
    return _join(
        *(f"{group}: {', '.join(told)}" for group, told in groups.items()),
        f"pending until a reboot: {', '.join(waiting)}" if waiting else None,
        f"{others} others, below" if others else None,
        by="; ",
    )


def _operating_system(facts: Facts) -> str | None:
    return str(facts["operating_system"]) if facts.get("operating_system") else None


def _kernel(facts: Facts) -> str | None:
    found = _part(facts, "kernel")
    return _join(found.get("release"), found.get("version"))


def _command_line(facts: Facts) -> str | None:
    return _part(facts, "kernel").get("command_line")


def _last_updates(facts: Facts) -> str | None:
    return str(facts["last_updates"]) if facts.get("last_updates") else None


def _hypervisor(facts: Facts) -> str | None:
    found = _part(facts, "hypervisor")
    if found.get("virtual_machine") is None:
        return None
    return _join("virtual machine", found.get("vendor")) if found["virtual_machine"] else "none: this is hardware"


def _processors(facts: Facts) -> str | None:
    found = _part(facts, "cpu")
    if not found.get("model"):
        return None
    sockets, cores = found.get("sockets"), found.get("cores_per_socket")
    return _join(
        f"{sockets} \u00d7 {found['model']}" if sockets else found["model"],
        found.get("vendor"),
        f"{cores} core{'s' if cores != 1 else ''}{' each' if sockets != 1 else ''}" if cores else None,
        f"{found['cpus']} CPUs" if found.get("cpus") else None,
    )


def _stepping(facts: Facts) -> str | None:
    found = _part(facts, "cpu")
    names = {"family": "family", "model_number": "model", "stepping": "stepping", "microcode": "microcode"}
    return _join(*(f"{word} {found[name]}" for name, word in names.items() if found.get(name)))


def _clock(facts: Facts) -> str | None:
    policy, cpu = _part(facts, "core_clock_policy"), _part(facts, "cpu")
    limits = [(policy.get(name) or [cpu.get(name)])[0] for name in ("minimum_hz", "maximum_hz")]
    boost = policy.get("boost")
    return _join(
        f"{plain('_hz', limits[0])} to {plain('_hz', limits[1])}" if all(limits) else None,
        f"governor {_list(policy.get('governor'))}" if policy.get("governor") else None,
        _list(policy.get("driver")),
        None if boost is None else f"boost {'on' if boost else 'off'}",
    )


def _power(facts: Facts) -> str | None:
    found, tuned = _part(facts, "power_policy"), _part(facts, "tuned")
    profile = f"tuned profile {tuned['profile']}" if tuned.get("profile") else None
    return _join(
        f"platform profile {found['platform_profile']}" if found.get("platform_profile") else None,
        f"energy preference {_list(found.get('energy_preference'))}" if found.get("energy_preference") else None,
        f"{profile}{'' if tuned.get('running') else ' (not running)'}" if profile else None,
        f"PCI Express power {found['pci_express_power']}" if found.get("pci_express_power") else None,
    )


def _idle(facts: Facts) -> str | None:
    found = _part(facts, "idle_states")
    states = _part(found, "states")
    if not states:
        return "none used" if found.get("driver") == "none" else None
    told = []
    for name, state in states.items():
        exit_us, disabled = state.get("exit_latency_us"), state.get("disabled")
        off = "" if disabled in (None, "no") else ", disabled" if disabled == "yes" else f", disabled {disabled}"
        told.append(f"{name} ({exit_us} µs{off})" if exit_us is not None else f"{name}{off}")
    return _join(", ".join(told), found.get("driver"), by="; ")


def _smt(facts: Facts) -> str | None:
    found = _part(facts, "smt")
    words = {"notsupported": "not supported", "notimplemented": "not implemented"}
    if found.get("active"):
        return f"on, {_part(facts, 'cpu').get('threads_per_core') or 'several'} threads a core"
    return words.get(str(found["control"]), str(found["control"])) if found.get("control") else None


def _numa(facts: Facts) -> str | None:
    found = _part(facts, "numa")
    nodes = _part(found, "cpus_by_node")
    distances = _part(found, "distances_by_node")
    if not nodes:
        return None
    told = "; ".join(f"node {node}: CPUs {cpus}" for node, cpus in nodes.items())
    return _join(told, f"distances {' / '.join(distances.values())}" if distances else None, by="; ")


def _isolated(facts: Facts) -> str | None:
    found = _part(facts, "cpu")
    kept = {"cpus_isolated": "isolated", "cpus_without_timer_tick": "without timer tick"}
    told = [f"CPUs {found[name]} {words}" for name, words in kept.items() if found.get(name) not in (None, "", "none")]
    return _join(*told) or ("none" if found.get("cpus_isolated") == "none" else None)


def _interrupts(facts: Facts) -> str | None:
    running = facts.get("irqbalance_running")
    return None if running is None else "irqbalance runs" if running else "irqbalance does not run"


def _memory(facts: Facts) -> str | None:
    modules, memory = _part(facts, "memory_modules"), _part(facts, "memory")
    total = modules.get("total_bytes") or memory.get("total_bytes")
    return plain("_bytes", total) if total else None


def _modules(facts: Facts) -> str | None:
    found = _part(facts, "memory_modules")
    told = []
    for kind in found["installed"] if found else ():
        rated, running = kind.get("rated_mt_per_s"), kind.get("running_mt_per_s")
        told.append(
            _join(
                f"{kind['count']} \u00d7 {plain('_bytes', kind['size_bytes'])}",
                _join(kind.get("vendor"), kind.get("model"), by=" "),
                _join(kind.get("type"), kind.get("form"), by=" "),
                f"rated {rated} MT/s" if rated else None,
                f"running at {running} MT/s" if running else None,
            )
        )
    slots = f"{found['modules']} of {found['slots']} slots" if found.get("slots") else None
    return _join(*told, slots, found.get("error_correction"), by="; ")


def _huge_pages(facts: Facts) -> str | None:
    found = _part(facts, "huge_pages")
    if found.get("pages") is None:
        return None
    size = plain("_bytes", found.get("page_bytes"))
    return _join(f"{found['pages']} of {size}", f"transparent: {found.get('transparent')}")


def _controllers(facts: Facts) -> str | None:
    return _join(
        *(
            _join(f"{_times(each)}{_join(each.get('vendor'), each.get('model'), by=' ')}", each.get("driver"))
            for each in facts.get("storage_controllers") or ()
        ),
        by="; ",
    )


def _drives(facts: Facts) -> str | None:
    return _join(
        *(
            _join(
                f"{_times(each)}{_join(each.get('vendor'), each.get('model'), by=' ') or 'unnamed'}",
                plain("_bytes", each.get("size_bytes")),
                each.get("interface"),
                f"firmware {each['firmware']}" if each.get("firmware") else None,
            )
            for each in facts.get("drives") or ()
        ),
        by="; ",
    )


def _times(part: Mapping[str, Any]) -> str:
    return f"{part['count']} \u00d7 " if part.get("count", 1) > 1 else ""


def _adapters(facts: Facts) -> str | None:
    """Each interface of the test, from whatever facts know it by its name, and its card by its bus."""
    return _join(*(_adapter(facts, name, link) for name, link in _part(facts, "interfaces").items()), by="; ")


def _adapter(facts: Facts, name: str, link: Any) -> str | None:
    link = link if isinstance(link, Mapping) else {}
    driver = _part(_part(facts, "drivers"), name) or _part(link, "driver")
    card = _part(_part(facts, "pci_adapters"), str(driver.get("bus") or name))
    slot = _part(card, "link")
    speed = _part(_part(facts, "link_settings"), name).get("speed_bits_per_s")
    return _join(
        _join(name, _join(card.get("vendor"), card.get("model"), by=" "), by=": "),
        f"driver {_join(driver.get('name'), driver.get('version'), by=' ')}"
        if driver.get("name")
        else link.get("kind"),
        f"firmware {driver['firmware']}" if driver.get("firmware") else None,
        plain("_bits_per_s", speed) if speed else None,
        f"PCI Express {slot.get('speed_gt_per_s'):g} GT/s x{slot['lanes']}" if slot.get("lanes") else None,
        f"MTU {link['mtu_bytes']}" if link.get("mtu_bytes") else None,
    )


def _fans(facts: Facts) -> str | None:
    found = _part(facts, "fans")
    speeds = [speed for speed in _part(found, "speed_per_minute").values() if speed is not None]
    turning = f"{min(speeds)} to {max(speeds)} per minute" if speeds else None
    return _join(str(found["count"]), turning) if found.get("count") else None


def _supplies(facts: Facts) -> str | None:
    found = _part(facts, "power_supplies")
    kinds = [
        _join(f"{each['count']} \u00d7 {_join(each.get('vendor'), each.get('model'), by=' ')}")
        for each in found.get("installed") or ()
    ]
    states = [f"{name}: {state}" for name, state in _part(found, "states").items()]
    return _join(*kinds, *states, by="; ")


def _mitigations(facts: Facts) -> str | None:
    found = _part(facts, "mitigations")
    if facts.get("mitigations") is None:
        return None
    open_ones = [name for name, state in found.items() if str(state).startswith("Vulnerable")]
    working = [name for name in found if name not in open_ones]
    return _join(
        ", ".join(working) if working else "none at work",
        f"vulnerable: {', '.join(open_ones)}" if open_ones else None,
        by="; ",
    )


def _security(facts: Facts) -> str | None:
    found = _part(facts, "security_modules")
    if not found:
        return None
    apparmor = found.get("apparmor")
    return _join(
        f"SELinux {found.get('selinux')}", None if apparmor is None else f"AppArmor {'on' if apparmor else 'off'}"
    )


def _firewall(facts: Facts) -> str | None:
    found = _part(facts, "firewall")
    if found.get("rules") is None:
        return None
    return _join(f"{found['rules']} rules" if found["rules"] else "no rules", *found.get("hooks", ()), by="; ")


def _iommu(facts: Facts) -> str | None:
    found = _part(facts, "iommu")
    if found.get("active") is None:
        return None
    groups = ", ".join(f"{count} groups {kind}" for kind, count in _part(found, "groups_by_type").items())
    return _join("on" if found["active"] else "off", groups)


def _clock_source(facts: Facts) -> str | None:
    return _part(facts, "clock_source").get("current")


def _software(facts: Facts) -> str | None:
    return _join(*(f"{name} {version}" for name, version in _part(facts, "software").items() if version))


SUBJECTS: Final[dict[str, Tell]] = {
    "Machine": _machine,
    "BIOS": _bios,
    "BIOS settings": _bios_settings,
    "Operating system": _operating_system,
    "Kernel": _kernel,
    "Kernel command line": _command_line,
    "Last updates": _last_updates,
    "Hypervisor": _hypervisor,
    "Processors": _processors,
    "Stepping": _stepping,
    "Frequency policy": _clock,
    "Power policy": _power,
    "C-states": _idle,
    "SMT": _smt,
    "NUMA": _numa,
    "CPUs set apart": _isolated,
    "Interrupts": _interrupts,
    "Memory": _memory,
    "Memory modules": _modules,
    "Huge pages": _huge_pages,
    "Storage controllers": _controllers,
    "Drives": _drives,
    "Network adapters": _adapters,
    "Fans": _fans,
    "Power supplies": _supplies,
    "IOMMU": _iommu,
    "Clock source": _clock_source,
    "Mitigations": _mitigations,
    "Security modules": _security,
    "Firewall": _firewall,
    "Software": _software,
}
FACT_OF: Final[dict[Tell, str]] = {
    _machine: "firmware",
    _bios: "firmware",
    _bios_settings: "bios_settings",
    _last_updates: "last_updates",
    _hypervisor: "hypervisor",
    _clock: "core_clock_policy",
    _power: "power_policy",
    _idle: "idle_states",
    _smt: "smt",
    _numa: "numa",
    _modules: "memory_modules",
    _controllers: "storage_controllers",
    _drives: "drives",
    _fans: "fans",
    _supplies: "power_supplies",
    _security: "security_modules",
    _firewall: "firewall",
    _iommu: "iommu",
    _processors: "cpu",
    _stepping: "cpu",
    _mitigations: "mitigations",
    _adapters: "interfaces",
}
"""Whose reason stands for a subject that is not told."""
