"""Options of hosts in a bench file: containers, machines reached by ssh, and virtual machines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Protocol

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    model_serializer,
    model_validator,
)

from nicbench.core.base import Frozen, why_of
from nicbench.core.errors import UsageError
from nicbench.core.machine import cpu_list, parse_cpu_list
from nicbench.core.quantity import Bytes, Seconds
from nicbench.core.registry import find
from nicbench.hosts.base import Host

_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./:@-]{0,254}")
_NETWORK = re.compile(r"host|none|ns:/[^\s,]+")
# nicbench finds, watches and ends containers itself: these options would prevent that.
_RESERVED_ARGUMENTS = (
    *("--pid", "--name", "--rm", "-d", "--detach", "--restart", "--entrypoint"),
    *("-i", "--interactive", "-t", "--tty"),
)
_SMALLEST_CONTAINER_BYTES = 16 * 1024 * 1024
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_RESERVED_CARD_NAMES = ("lo", "all", "default", "none")
SMALLEST_MEMORY_BYTES = 384 * 2**20
LARGEST_MEMORY_BYTES = 2**42
PAGE_SIZES = (2**21, 2**30)


# The host inside a wrapper: ``inner: {kind: netns, namespace: router}``.


def _complete_section(value: Any, information: ValidationInfo) -> dict[str, Any]:
    """Fills in the defaults of the section's kind; ValueError where the section is wrong."""
    section = {"kind": value} if isinstance(value, str) else value
    kinds = find("nicbench.hosts.kinds", Host)
    if not isinstance(section, dict) or section.get("kind") not in kinds:
        raise ValueError(f"it must be a host: its kind is one of {', '.join(kinds)}")
    given = {key: each for key, each in section.items() if key != "kind"}
    try:
        options = kinds[section["kind"]].Options.model_validate(given, context=information.context)
    except ValidationError as error:
        first = error.errors()[0]
        where = ", ".join(map(str, first["loc"]))
        raise ValueError(f"{where + ': ' if where else ''}{why_of(first)}") from error
    return {"kind": section["kind"], **options.model_dump()}


Inner = Annotated[dict[str, Any], BeforeValidator(_complete_section)]
"""A host's section: ``kind`` and the options of that kind."""


# Containers.


def _check_image(text: str) -> str:
    if not _IMAGE.fullmatch(text):
        raise ValueError(f"{text!r} is no name of an image: write it as the engine's `images` shows it")
    return text


def _check_folder(text: str) -> str:
    if not text.startswith("/") or ":" in text or not text.isprintable():
        raise ValueError(f"{text!r} is no folder of a root file system: write an absolute path without a colon")
    return text


def _check_network(text: str) -> str:
    if not _NETWORK.fullmatch(text):
        raise ValueError(f"{text!r} is no network: write `host`, `none`, or `ns:/run/netns/NAME`")
    return text


def _number_as_text(value: Any) -> Any:
    """Converts a number to text: YAML reads ``cpus: 3`` as a number."""
    return str(value) if type(value) is int else value


def _normalise_cpus(text: str) -> str:
    try:
        cpus = parse_cpu_list(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no list of CPUs: write it like `0-3,6`") from error
    if not cpus:
        raise ValueError("it names no CPU: write it like `0-3,6`, or leave it out")
    return cpu_list(cpus)


def _check_arguments(arguments: tuple[str, ...]) -> tuple[str, ...]:
    for argument in arguments:
        if argument.partition("=")[0] in _RESERVED_ARGUMENTS:
            raise ValueError(f"{argument!r} is given by nicbench, which starts, watches and ends the container")
    return arguments


class ContainerOptions(Frozen):
    """Options of a container: ``hosts: {dut: {kind: container, image: debian, cpus: 0-3, memory: 2 GiB}}``."""

    engine: Literal["podman", "docker"] = "podman"
    """The container engine."""
    image: Annotated[str, AfterValidator(_check_image)] | None = None
    """An image that is already there. nicbench pulls none, so that no run changes what it measures. Give this or
    `root`.
    """
    root: Annotated[str, AfterValidator(_check_folder)] | None = None
    """A folder with a root file system, used beneath an overlay that is thrown away (podman). `/` is the machine's
    own, without what is mounted in it.
    """
    network: Annotated[str, AfterValidator(_check_network)] = "host"
    """`host`: the network of the `inner` host. `ns:/run/netns/NAME` (podman): a namespace. `none`: no network."""
    cpus: Annotated[str, BeforeValidator(_number_as_text), AfterValidator(_normalise_cpus)] | None = None
    """CPUs that the container may use, as `0-3,6`; without it all."""
    cpu_time: Annotated[float, Field(ge=0.01, le=8192)] | None = None
    """CPU time that its processes together may use, in CPUs: `1.5` is 1.5 s in each second (`--cpus` of the engine).
    Without it the CPU time is unlimited.
    """
    memory: Annotated[Bytes, Field(ge=_SMALLEST_CONTAINER_BYTES)] | None = None
    """Memory that it may use; without it the memory is unlimited."""
    memory_node: Annotated[int, Field(ge=0, le=1023)] | None = None
    """The NUMA node of its memory; without it any."""
    folders: tuple[Annotated[str, AfterValidator(_check_folder)], ...] = ()
    """Folders of the machine that it sees under the same path and may write to, with what is mounted there."""
    privileged: bool = False
    """All rights and devices, and a writable `/proc/sys`."""
    arguments: Annotated[tuple[str, ...], AfterValidator(_check_arguments)] = ()
    """Further arguments of the engine's `run`, for example `["--ulimit=memlock=-1"]`."""
    engine_arguments: tuple[str, ...] = ()
    """Arguments before `run`, for example `["--storage-driver=vfs"]`."""
    inner: Inner = Field(default_factory=lambda: {"kind": "local"})
    """The host that the engine runs on, if it has no name of its own in the file. The container joins the network
    namespace of a `netns` host, and the engine runs outside of it (podman).
    """

    @model_validator(mode="after")
    def _check_file_system(self) -> ContainerOptions:
        if (self.image is None) == (self.root is None):
            raise ValueError("a container has either an `image` or a `root`: give one of them")
        if self.engine == "docker" and self.root is not None:
            raise ValueError("docker cannot run a root file system: use `engine: podman`, or an `image`")
        if self.engine == "docker" and self.network.startswith("ns:"):
            raise ValueError("docker cannot join a namespace by its path: use `engine: podman`, or `network: host`")
        return self


# Machines reached by ssh. A password cannot be given, on purpose.


SshWord = Annotated[str, Field(pattern=r"^[^-\s][^\s]*$", max_length=255)]
"""A word that ssh cannot take for an option (no leading dash) and that can be an address or name (no space)."""


def _as_hops(value: Any) -> Any:
    """Makes a single jump host, or a list of them, a tuple."""
    return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value


Hops = Annotated[tuple[SshWord, ...], BeforeValidator(_as_hops)]


class SshOptions(Frozen):
    """Options of a host reached by ssh: ``hosts: {client1: {kind: ssh, address: 10.0.0.5}}``.

    What is not given here is taken from ~/.ssh/config.
    """

    address: SshWord
    """A name, an address, or an alias of `~/.ssh/config`."""
    user: SshWord | None = None
    """The user to log in as; without it as ssh does."""
    port: int | None = Field(default=None, ge=1, le=65535)
    """The port of sshd; without it as ssh does."""
    key: str | None = None
    """The file of a private key. Without it: the keys of the agent, of `~/.ssh/config`, and the usual ones. It is
    offered to jump hosts too, unless `~/.ssh/config` has one for them. Passwords are not supported.
    """
    known_hosts: str | None = None
    """The file of host keys. Without it as `~/.ssh/config` says, else `~/.ssh/known_hosts` and
    `/etc/ssh/ssh_known_hosts`.
    """
    jump: Hops = ()
    """A host to go through, or a list of them, the nearest first: `user@bastion:22`."""
    proxy_command: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Instead of `jump`: a command, as a list of words, whose stdin and stdout are the connection."""
    connect_timeout: Seconds = Field(default=10.0, gt=0.0, le=300.0)
    """How long a connection may take to come about."""
    lease: Seconds = Field(default=10.0, ge=3.0, le=300.0)
    """A host that hears nothing of nicbench for this time ends what nicbench started there. nicbench gives up a host
    that is silent for so long.
    """

    @model_validator(mode="after")
    def _check_way(self) -> SshOptions:
        if self.jump and self.proxy_command:
            raise ValueError("has `jump` and `proxy_command`: write one of them")
        return self


# Virtual machines.


Model = Literal["virtio-net-pci", "igb", "e1000e", "vmxnet3"]
CardName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_.-]{0,14}$")]
Word = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.,:=/+%@-]+$", max_length=200)]


def _check_card_name(text: str) -> str:
    if text in _RESERVED_CARD_NAMES or text.startswith("eth"):
        raise ValueError(f"`{text}` is a name that the guest's kernel gives: write another, `n0` for instance")
    return text


def _normalise_mac(text: str) -> str:
    low = text.lower()
    if not _MAC.fullmatch(low) or int(low[:2], 16) & 1 or low == "00:00:00:00:00:00":
        raise ValueError(f"`{text}` is not a unicast MAC address: write six bytes in hex, the first of them even")
    return low


CardMac = Annotated[str, AfterValidator(_normalise_mac)]
"""The MAC address of one card, in lower case."""
NewCardName = Annotated[CardName, AfterValidator(_check_card_name)]
"""A card's name that the guest's kernel does not give by itself."""


class Card(Frozen):
    """A network card of a guest, which has the same name there as in the bench file.

    It is emulated (``n0: {model: igb, network: a, node: 1}``), or it is a card or virtual function of the machine that
    is passed through (``n0: {pci: "0000:65:02.0", mac: 02:00:00:00:00:01}``). Cards with the same ``network`` are
    connected, across all virtual machines of the bench file; a card without one has no link partner. ``node`` is the
    NUMA node of its slot.
    """

    model: Model = "virtio-net-pci"
    """`igb` (Intel 82576) has virtual functions and hardware time stamps. All but `virtio-net-pci` give the guest an
    IOMMU. `virtio-net-pci` and `igb` run XDP programs in the driver, `e1000e` does not, `vmxnet3` since Linux 6.6.
    """
    network: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,30}$")] | None = None
    """Cards of one network are joined, also those of other guests of the file. Two are joined as by a cable. Without
    it the cable ends nowhere.
    """
    loop: bool = False
    """A loop plug: what the card sends comes back to it."""
    node: int | None = Field(default=None, ge=0, le=7)
    """The NUMA node of its slot."""
    mac: CardMac | None = None
    """MAC address; without it nicbench chooses one."""
    pci: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")] | None = None
    """Instead of `model` and `network`: the PCI address of a card or virtual function of this machine."""

    @model_validator(mode="after")
    def _check_origin(self) -> Card:
        if self.pci is not None and (self.network is not None or "model" in self.model_fields_set):
            raise ValueError("a card of the machine (`pci`) has no `model` and no `network`: remove them")
        if self.loop and (self.pci is not None or self.network is not None):
            raise ValueError("`loop` is a plug of an emulated card that is in no network: remove `network` or `pci`")
        return self

    @model_serializer(mode="wrap")
    def _write(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Omits ``model`` and ``network`` of a card that is passed through, so that the result can be read again."""
        written: dict[str, Any] = write(self)
        if self.pci is not None:
            written.pop("model", None)
            written.pop("network", None)
        return written


class VmOptions(Frozen):
    """Options of a virtual machine.

    For example ``hosts: {guest: {kind: vm, cpus: 2, memory: 2 GiB, nodes: 2, cards: {n0: {model: igb, network: a}}}}``.
    CPUs and memory are divided evenly among the NUMA ``nodes``. ``accelerator: auto`` is KVM where a guest really runs
    with it, and emulation elsewhere.
    """

    cpus: int = Field(default=2, ge=1, le=64)
    """Processors."""
    memory: Bytes = Field(default=2**30, ge=SMALLEST_MEMORY_BYTES, le=LARGEST_MEMORY_BYTES)
    """Memory. What the guest writes to files is kept in it too."""
    nodes: int = Field(default=1, ge=1, le=8)
    """NUMA nodes. Processors and memory are divided evenly among them."""
    cards: dict[NewCardName, Card] = Field(default_factory=dict, max_length=16)
    """Emulated cards, by the names of their interfaces in the guest."""
    accelerator: Literal["auto", "kvm", "tcg"] = "auto"
    """`kvm`, `tcg` (emulation), or `auto`: KVM where a kernel really boots with it, which is tried once after each
    boot of this machine.
    """
    boot_parameters: tuple[Word, ...] = Field(default=(), max_length=64)
    """Further parameters of the guest's kernel. They are verified in its `/proc/cmdline`."""
    kernel: Literal["fetched", "machine"] = "fetched"
    """`fetched`: the kernel that `scripts/fetch-vm` fetched. `machine`: the one that this machine runs, from `/boot`.
    """
    pin: tuple[Annotated[int, Field(ge=0, le=8191)], ...] = Field(default=(), max_length=64)
    """The CPU of this machine for each CPU of the guest, in order: `[4, 5]`. The pins are read back; the other threads
    of QEMU run beside them.
    """
    huge_pages: Bytes | None = None
    """`1 GiB` or `2 MiB`: back the guest's memory with huge pages of this size, allocated before it starts and, with
    KVM, locked. Missing pages are added and given back.
    """
    memory_nodes: tuple[Annotated[int, Field(ge=0, le=1023)], ...] = Field(default=(), max_length=8)
    """The NUMA node of this machine for the memory of each node of the guest: `[0]`. Size and node of the pages are
    read back.
    """

    @model_validator(mode="after")
    def _check_consistency(self) -> VmOptions:
        if self.cpus % self.nodes:
            raise ValueError(f"{self.cpus} CPUs cannot be divided among {self.nodes} nodes: write a multiple")
        for name, card in self.cards.items():
            if card.node is not None and card.node >= self.nodes:
                raise ValueError(f"the card `{name}` is on node {card.node}, and there are nodes 0 to {self.nodes - 1}")
        self._check_placement()
        macs = [card.mac for card in self.cards.values() if card.mac is not None]
        if len(macs) != len(set(macs)):
            raise ValueError("two cards have the same MAC address: give each one of its own")
        given = [card.pci for card in self.cards.values() if card.pci is not None]
        if len(given) != len(set(given)):
            raise ValueError("two cards are the same card of the machine (`pci`): give each one of its own")
        return self

    def _check_placement(self) -> None:
        if self.pin and (len(self.pin) != self.cpus or len(set(self.pin)) != self.cpus):
            raise ValueError(
                f"`pin` names a CPU of the machine for each of the guest's: write {self.cpus} different ones"
            )
        if self.memory_nodes and len(self.memory_nodes) != self.nodes:
            raise ValueError(f"`memory_nodes` names a node of the machine for each of the guest's: write {self.nodes}")
        if self.huge_pages is None:
            return
        page = int(self.huge_pages)
        if page not in PAGE_SIZES:
            raise ValueError("pages of x86 that are huge have 2 MiB or 1 GiB: write `huge_pages: 1 GiB`")
        if int(self.memory) % (page * self.nodes):
            raise ValueError(f"the memory of each node must be whole pages of {page // 2**20} MiB: write more `memory`")

    @property
    def needs_igb(self) -> bool:
        """Whether QEMU must be recent enough to emulate the igb card."""
        return any(card.model == "igb" and card.pci is None for card in self.cards.values())

    @property
    def has_iommu(self) -> bool:
        """Whether the guest has an IOMMU, so that its PCI Express cards can be assigned by vfio."""
        return any(card.model != "virtio-net-pci" or card.pci is not None for card in self.cards.values())


# Makes hosts from plain data: from the hosts of a bench file, and from the specs in undo.json.


class HostChoice(Protocol):
    """A host in a bench file: its kind, that kind's options, and the name of the host that it is made on."""

    @property
    def kind(self) -> str: ...
    @property
    def options(self) -> Frozen: ...
    @property
    def on(self) -> str | None: ...


def build_hosts(choices: Mapping[str, HostChoice], there: Mapping[str, Host] | None = None) -> dict[str, Host]:
    """Makes the hosts of a bench file, by name and in its order, without touching any machine.

    A wrapper gets the host that it stands on (``on``) from the same bench file. Hosts in ``there`` exist already
    (running virtual machines) and are used as they are.
    """
    made = dict(there or {})

    def make(name: str) -> Host:
        if name not in made:
            made[name] = host_from_spec(
                spec_of(choices, name), name, None if (on := choices[name].on) is None else make(on)
            )
        return made[name]

    return {name: make(name) for name in choices}


def spec_of(choices: Mapping[str, HostChoice], name: str) -> dict[str, Any]:
    """Returns the spec (see ``Host.spec``) of a host of a bench file, with that of the host that it stands on."""
    choice = choices[name]
    own = {"kind": choice.kind, **choice.options.model_dump(mode="json")}
    if find("nicbench.hosts.kinds", Host)[choice.kind].made_here:
        own["guest"] = name  # two guests with the same options are still two hosts
    return own if choice.on is None else {**own, "inner": spec_of(choices, choice.on)}


def host_from_spec(spec: Mapping[str, Any], name: str | None = None, inner: Host | None = None) -> Host:
    """Makes a host from what ``Host.spec`` returned. A wrapper whose spec has no ``inner`` wraps this machine.

    ``inner`` is the wrapped host where it exists already; it then takes the place of the one in the spec.
    """
    kinds = find("nicbench.hosts.kinds", Host)
    kind = spec.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        raise UsageError(f"no host of kind {kind!r}", next_step=f"kinds: {', '.join(kinds)}")
    return kinds[kind].of_spec(spec, name, host_from_spec if inner is None else lambda _: inner)
