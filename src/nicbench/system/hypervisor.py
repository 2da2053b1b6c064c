"""Virtual machines: whether a machine is one, and what its hypervisor (libvirt, ESXi) says of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NoReturn
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers.expat import ExpatError, ParserCreate

from nicbench.core.errors import NicbenchError
from nicbench.core.frozen import frozen
from nicbench.core.machine import HypervisorTable
from nicbench.hosts.base import Host

# Whether a machine is virtual.


async def is_virtual_machine(host: Host) -> bool | None:
    """Reads the flags of an x86 processor; other processors have no such flag, so systemd is asked.

    None where neither says.
    """
    virtual = flag_of_hypervisor(await host.read_file("/proc/cpuinfo") or "")
    if virtual is not None:
        return virtual
    try:
        found = await host.run(("systemd-detect-virt", "--vm"), check=False)
    except NicbenchError:
        return None
    kind = found.stdout.strip()  # "none" with the exit status 1
    return kind != "none" if kind else None


def flag_of_hypervisor(cpuinfo: str) -> bool | None:
    """Whether a hypervisor has set its flag in the text of /proc/cpuinfo; None where the processor has no flags."""
    flags = next((line for line in cpuinfo.splitlines() if line.startswith("flags")), None)
    return None if flags is None else "hypervisor" in flags.partition(":")[2].split()


# Reads a guest's definition as ``virsh dumpxml`` writes it (libvirt's domain XML,
# https://libvirt.org/formatdomain.html).  Documents with a document type are refused, so that no entity is ever
# expanded.

_DEEPEST = 64
_BYTES = {"b": 1, "bytes": 1, "k": 2**10, "kib": 2**10, "m": 2**20, "mib": 2**20, "g": 2**30, "gib": 2**30,
          "t": 2**40, "tib": 2**40, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}  # fmt: skip
_SAVE = "save it anew: virsh dumpxml GUEST > FILE"


def read_domain(content: bytes) -> tuple[HypervisorTable, ...]:
    """Returns the tables of a domain: the guest, its pinned CPUs, its devices. ValueError if the text is not a
    domain.
    """
    root = _parse(content)
    if root.tag != "domain":
        raise ValueError(f"is the <{root.tag}> of libvirt and not a <domain>; {_SAVE}")
    facts = tuple((label, text) for label, text in _facts(root) if text)
    if not facts:
        raise ValueError(f"is a <domain> that says nothing of its CPUs or memory; {_SAVE}")
    pins = tuple(_pins(root))
    devices = tuple(_devices(root))
    return (
        HypervisorTable(title="Guest", rows=facts),
        *((HypervisorTable(title="Pinned", heads=("Thread", "CPUs of the host"), rows=pins),) if pins else ()),
        *(
            (HypervisorTable(title="Network devices", heads=("Device", "On the host", "MAC", "Details"), rows=devices),)
            if devices
            else ()
        ),
    )


@frozen
class LiveGuest:
    """What a guest has of its host: ``functions`` by their PCI addresses, and memory ``pages`` in words."""

    functions: tuple[str, ...]
    pages: str


def read_live_guest(content: bytes) -> LiveGuest:
    """Returns what a domain has of its host. ValueError if the text is not a domain."""
    root = _parse(content)
    addresses = [_pci(device.find("source/address")) for device in root.findall("devices/hostdev[@type='pci']")]
    return LiveGuest(tuple(sorted(addresses)), _pages(root))


def _parse(content: bytes) -> Element:
    parser, builder, depth = ParserCreate(), TreeBuilder(), 0

    def refuse(*_: object) -> NoReturn:
        raise ValueError(f"has a document type, which libvirt does not write; {_SAVE}")

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise ValueError(f"has elements {depth} deep, which libvirt does not write; {_SAVE}")
        builder.start(tag, attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, builder.data
    try:
        parser.Parse(content, True)
    except ExpatError as error:
        why = str(error).partition(":")[0]
        raise ValueError(f"is not XML: {why}, line {error.lineno}, column {error.offset + 1}; {_SAVE}") from error
    return builder.close()


def _facts(root: Element) -> Iterator[tuple[str, str]]:
    yield "Hypervisor", root.get("type", "")
    yield "Machine", _get(root, "os/type", "machine")
    yield "Firmware", root.findtext("os/loader", "").strip() or _get(root, "os", "firmware")
    current, most = _get(root, "vcpu", "current"), root.findtext("vcpu", "").strip()
    yield "vCPUs", f"{current} of {most}" if current and current != most else most
    yield "vCPU placement", _get(root, "vcpu", "placement")
    yield "CPU", _cpu(root)
    yield "Memory", _memory(root.find("memory"))
    yield "Memory pages", _pages(root)
    yield "Memory locked", "yes" if root.find("memoryBacking/locked") is not None else "no"
    yield (
        "Memory shared with other pages of the host (KSM)",
        ("no" if root.find("memoryBacking/nosharepages") is not None else "allowed"),
    )
    yield "NUMA nodes of the host", _nodes(root)
    cells = root.findall("cpu/numa/cell")
    yield (
        "NUMA nodes of the guest",
        "; ".join(
            f"node {cell.get('id', number)}: vCPUs {cell.get('cpus', '?')}, {_memory(cell, cell.get('memory'))}"
            for number, cell in enumerate(cells)
        ),
    )
    yield "I/O threads", root.findtext("iothreads", "").strip()
    iommu = root.find("devices/iommu")
    yield "IOMMU of the guest", "" if iommu is None else iommu.get("model", "yes")


_PARTS_OF_A_CPU = {"sockets": "socket", "dies": "die", "cores": "core", "threads": "thread"}


def _cpu(root: Element) -> str:
    cpu = root.find("cpu")
    if cpu is None:
        return ""
    topology = cpu.find("topology")
    counted = () if topology is None else ((topology.get(name), one) for name, one in _PARTS_OF_A_CPU.items())
    shape = ", ".join(f"{count} {one if count == '1' else f'{one}s'}" for count, one in counted if count)
    parts = (cpu.get("mode"), cpu.findtext("model", "").strip(), shape)
    return ", ".join(part for part in parts if part)


def _memory(element: Element | None, text: str | None = None) -> str:
    written = (element.text if text is None and element is not None else text) or ""
    unit = "KiB" if element is None else element.get("unit", "KiB")
    try:
        size = int(written) * _BYTES[unit.lower()]
    except (ValueError, KeyError):
        return f"{written.strip()} {unit}".strip() if written.strip() else ""
    return f"{size / 2**30:g} GiB" if size % 2**28 == 0 else f"{size / 2**20:g} MiB"


def _pages(root: Element) -> str:
    pages = root.find("memoryBacking/hugepages")
    if pages is None:
        return "ordinary"
    sizes = [
        _memory(page, page.get("size")) + (f" (guest nodes {page.get('nodeset')})" if page.get("nodeset") else "")
        for page in pages.findall("page")
    ]
    return f"huge, {', '.join(sizes)}" if sizes else "huge, of the host's default size"


def _nodes(root: Element) -> str:
    memory = root.find("numatune/memory")
    of_cells = root.findall("numatune/memnode")
    texts = (
        []
        if memory is None
        else [f"{memory.get('nodeset') or memory.get('placement', '?')} ({memory.get('mode', 'strict')})"]
    )
    texts += [f"guest node {one.get('cellid')}: {one.get('nodeset')} ({one.get('mode', 'strict')})" for one in of_cells]
    return "; ".join(texts)


def _pins(root: Element) -> Iterator[tuple[str, str]]:
    names = {"vcpupin": "vCPU", "iothreadpin": "I/O thread", "emulatorpin": "emulator"}
    for tag, name in names.items():
        for pin in root.findall(f"cputune/{tag}"):
            number = pin.get("vcpu") or pin.get("iothread") or ""
            yield f"{name} {number}".strip(), pin.get("cpuset", "?")
    for one in root.findall("cputune/vcpusched"):
        policy = " ".join(text for text in (one.get("scheduler"), one.get("priority")) if text)
        yield f"scheduling of vCPUs {one.get('vcpus', '?')}", policy


def _devices(root: Element) -> Iterator[tuple[str, str, str, str]]:
    for device in root.findall("devices/hostdev"):
        if device.get("type") == "pci":
            yield "PCI device", _pci(device.find("source/address")), "", _details(device)
        elif device.get("type") == "mdev":
            yield "mediated device", _get(device, "source/address", "uuid"), "", _details(device)
    for interface in root.findall("devices/interface"):
        kind = interface.get("type", "?")
        source = interface.find("source")
        on_host = _pci(interface.find("source/address")) if kind == "hostdev" else ""
        if source is not None and not on_host:
            on_host = " ".join(value for name, value in source.attrib.items() if name not in ("index", "portid"))
        yield _KINDS.get(kind, kind), on_host, _get(interface, "mac", "address"), _details(interface)


_KINDS = {"hostdev": "virtual function", "vhostuser": "vhost-user", "direct": "macvtap"}


def _details(device: Element) -> str:
    driver = device.find("driver")
    drawn = {} if driver is None else dict(driver.attrib)
    queues = drawn.pop("queues", None)
    rest = ", ".join(f"{'driver' if name == 'name' else name} {value}" for name, value in drawn.items())
    vlan = [tag.get("id", "?") for tag in device.findall("vlan/tag")]
    parts = (
        _get(device, "model", "type"),
        f"{queues} queues" if queues else "",
        rest,
        f"VLAN {', '.join(vlan)}" if vlan else "",
        f"managed {device.get('managed')}" if device.get("managed") else "",
    )
    return ", ".join(part for part in parts if part)


def _pci(address: Element | None) -> str:
    if address is None:
        return ""
    try:
        domain, bus, slot, function = (int(address.get(name, "0"), 0) for name in ("domain", "bus", "slot", "function"))
    except ValueError:
        return " ".join(address.attrib.values())
    return f"{domain:04x}:{bus:02x}:{slot:02x}.{function:x}"


def _get(root: Element, path: str, attribute: str) -> str:
    found = root.find(path)
    return "" if found is None else found.get(attribute, "")


# Reads what ``esxcli`` of VMware ESXi prints: ``get`` (a fact a line) and ``list`` (a table with a ruler).

_RULER = re.compile(r"^\s*-{2,}(\s+-{2,})*\s*$")
_ESXI_SAVE = "save the output of esxcli as it is printed, without --formatter: esxcli network nic list > FILE"
_MOST_ROWS = 1000


def read_esxcli(content: bytes, title: str) -> HypervisorTable:
    """Returns the table of one output. ValueError if it is not of esxcli, or of a command that failed."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"is not text (byte {error.start + 1}); {_ESXI_SAVE}") from error
    lines = [line.rstrip() for line in text.expandtabs().splitlines() if line.strip()]
    if not lines:
        raise ValueError(f"is empty; {_ESXI_SAVE}")
    if lines[0].lstrip().lower().startswith(("error:", "usage:", "errors:", "unable to")):
        raise ValueError(f"holds an error of esxcli ({lines[0].strip()[:80]}); {_ESXI_SAVE}")
    if len(lines) > _MOST_ROWS:
        raise ValueError(f"has {len(lines)} lines, more than the {_MOST_ROWS} of such an output; {_ESXI_SAVE}")
    if len(lines) > 1 and _RULER.match(lines[1]):
        return _table(lines, title)
    rows = tuple(_esxi_facts(lines))
    if not rows:
        raise ValueError(f"has neither a table with a ruler of dashes nor lines of `Name: value`; {_ESXI_SAVE}")
    return HypervisorTable(title=title, rows=rows)


def _table(lines: Sequence[str], title: str) -> HypervisorTable:
    """Columns stand where the ruler's dashes do; numbers may be set to the right below a longer ruler."""
    spans = [found.span() for found in re.finditer(r"-+", lines[1])]
    starts = [begin for begin, _ in spans]
    ends = [*starts[1:], None]

    def cells(line: str) -> tuple[str, ...]:
        return tuple(line[begin:end].strip() for begin, end in zip(starts, ends, strict=True))

    heads, rows = cells(lines[0]), tuple(map(cells, lines[2:]))
    if not rows:
        raise ValueError(f"is a table without rows; {_ESXI_SAVE}")
    return HypervisorTable(title=title, heads=heads, rows=rows)


def _esxi_facts(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Facts by their path: what is indented below a line without a value belongs to it."""
    above: list[tuple[int, str]] = []
    for line in lines:
        indent = len(line) - len(line.lstrip())
        above = [(depth, name) for depth, name in above if depth < indent]
        name, colon, value = line.strip().partition(": ")
        if not colon and line.strip().endswith(":"):
            name, colon = line.strip()[:-1], ":"
        elif not colon:
            name, colon, value = line.strip().partition(":")
            if colon:  # as in `CPU:0`, above the facts of one of several
                name, value = f"{name} {value}", ""
        if not colon and above and indent:  # an element of a list
            yield ", ".join(part for _, part in above), name
            continue
        if value:
            yield ", ".join([*(part for _, part in above), name]), value.strip()
        else:
            above.append((indent, name))
