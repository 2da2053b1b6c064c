"""The ports of a bench file: what it says of each, and the ports while ``stages/hosts.py`` prepares them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface, ip_address, ip_interface
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, PlainSerializer, PlainValidator, StringConstraints, model_validator

from nicbench.core.base import Distinct, Frozen, optional
from nicbench.core.bond import HASHED_MODES
from nicbench.core.traffic import KernelDriver, Name
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.hosts.options import CardMac
from nicbench.tuning.changes import Changes

# What a bench file says of a port: its interface or card, and the bond, virtual function, address or RDMA device
# that nicbench makes. Pure.


BondMode = Literal["balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb"]
HashPolicy = Literal["layer2", "layer2+3", "layer3+4", "encap2+3", "encap3+4", "vlan+srcmac"]
"""The values of ``xmit_hash_policy``: which fields of a frame choose the port that it leaves by."""
LACP: Final = "802.3ad"
DEFAULT_POLICY: Final = "layer3+4"
"""The policy of the published study (docs/studies.md); by the driver's ``layer2`` each client uses only one port."""
_MIIMON_MS: Final = 100

Device = Annotated[str, Field(pattern=r"^[^/\s:]{1,15}$")]
"""The name of an interface, as the kernel accepts it."""


class BondSettings(Frozen):
    """Options of every bond, by default those of the published study: LACP, ``layer3+4``, links polled each 100 ms.

    ``policy`` None is the default, where the mode hashes. ``miimon`` is in ms. With ``lacp_rate: fast`` partners send
    every second, so that they find each other in seconds; with ``slow`` every 30 s. With fewer links up than
    ``min_links`` the bond is down.
    """

    mode: BondMode = "802.3ad"
    """The mode, in the driver's words."""
    policy: HashPolicy | None = None
    """`xmit_hash_policy` of `802.3ad` and `balance-xor`; without it `layer3+4`. The driver's own default, `layer2`,
    sends everything for one client through one port.
    """
    miimon: int = Field(default=_MIIMON_MS, ge=1, le=10_000)
    """Milliseconds between two checks of the links."""
    lacp_rate: Literal["slow", "fast"] | None = None
    """Of `802.3ad`: `fast` (what is used without it) sends LACP frames every second, `slow` every 30 s."""
    min_links: int | None = Field(default=None, ge=0, le=64)
    """Of `802.3ad`: the bond is down with fewer links up; without it 0."""

    @model_validator(mode="after")
    def _check_mode(self) -> Self:
        if self.policy is not None and self.mode not in HASHED_MODES:
            hashed = " and ".join(sorted(HASHED_MODES))
            raise ValueError(f"`{self.mode}` does not hash, so `policy` has no effect: remove it; {hashed} hash")
        for key in ("lacp_rate", "min_links"):
            if getattr(self, key) is not None and self.mode != LACP:
                raise ValueError(f"`{key}` is an option of LACP: remove it, or write `mode: {LACP}`")
        return self

    @property
    def hashes_by(self) -> str | None:
        """The policy, the default where none is given; None where the mode does not hash."""
        return (self.policy or DEFAULT_POLICY) if self.mode in HASHED_MODES else None

    def data(self) -> dict[str, str | int]:
        """The values that ``ip -j -d link show`` must show afterwards, by its names, in the order of setting them."""
        wanted: dict[str, str | int] = {"mode": self.mode, "miimon": self.miimon}
        if self.hashes_by is not None:
            wanted["xmit_hash_policy"] = self.hashes_by
        if self.mode == LACP:
            wanted["ad_lacp_rate"] = self.lacp_rate or "fast"
            wanted["min_links"] = self.min_links or 0
        return wanted


class BondOptions(BondSettings):
    """``bond: {of: [e0, e1, e2, e3], mode: 802.3ad, policy: layer3+4}`` of a port; ``mtu`` of the bond in bytes."""

    of: Distinct[Device] = Field(min_length=1, max_length=64)
    """The interfaces, in the order in which they join."""
    mtu: int | None = Field(default=None, ge=68, le=65535)
    """MTU of the bond and all its interfaces in bytes; without it, it is left alone."""

    @model_validator(mode="after")
    def _check_links(self) -> Self:
        require_links(self, len(self.of))
        return self


def require_links(settings: BondSettings, links: int) -> None:
    """Raises ValueError where a bond with this number of links could never be up."""
    if settings.min_links is not None and settings.min_links > links:
        raise ValueError(
            f"a bond of {links} links can never have the {settings.min_links} of `min_links`: write at most {links}"
        )


def create_command(name: str, settings: BondSettings) -> tuple[str, ...]:
    """The command that makes the bond, without ports and down."""
    words = {"ad_lacp_rate": "lacp_rate"}
    data = [word for key, value in settings.data().items() for word in (words.get(key, key), str(value))]
    return ("ip", "link", "add", "name", name, "type", "bond", *data)


def join_commands(name: str, port: str) -> tuple[tuple[str, ...], ...]:
    """The commands by which a port joins the bond: it must be down for that, and the bond brings it up."""
    link = ("ip", "link", "set", "dev", port)
    return ((*link, "down"), (*link, "master", name))


Interface = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,14}$")]


class VirtualFunctionOptions(Frozen):
    """``virtual_function: {of: enp1s0f0, number: 0, mac: 02:00:00:00:00:01, trust: true}`` (SR-IOV).

    An option that is ``None`` keeps the value of the adapter's driver; without a ``mac`` the function gets a locally
    administered one, the same in every run.
    """

    of: Interface
    """The interface of the physical function."""
    number: int = Field(ge=0, le=255)
    """The number of the virtual function, from 0."""
    mac: CardMac | None = None
    """MAC address, set on the physical function. Without it nicbench sets a locally administered one, the same in
    every run.
    """
    vlan: int | None = Field(default=None, ge=0, le=4094)
    """The adapter tags the frames with this VLAN, unseen by the function; 0 for no tag. Without it, tagging stays
    unchanged.
    """
    trust: bool | None = None
    """Whether the function may take other addresses and receive every frame. Without it, it is left alone."""
    spoof_check: bool | None = None
    """Whether the adapter drops frames that the function sends from other addresses than its own. Without it, it is
    left alone.
    """

    @property
    def device(self) -> str:
        """The name of its interface where the port gives none, as systemd would name it."""
        return f"{self.of}v{self.number}"

    @property
    def given_mac(self) -> str:
        """``mac``, or an address derived from the adapter's name and the number."""
        digest = hashlib.sha256(f"{self.of} {self.number}".encode()).digest()
        return self.mac or ":".join(("02", *(f"{byte:02x}" for byte in digest[:5])))


def set_command(options: VirtualFunctionOptions) -> tuple[str, ...]:
    """The command that sets the function, on the host of the physical function (ip-link(8))."""
    words = ["ip", "link", "set", "dev", options.of, "vf", str(options.number), "mac", options.given_mac]
    if options.vlan is not None:
        words += ["vlan", str(options.vlan)]
    for name, wanted in (("spoofchk", options.spoof_check), ("trust", options.trust)):
        if wanted is not None:
            words += [name, "on" if wanted else "off"]
    return tuple(words)


def expected_values(options: VirtualFunctionOptions) -> dict[str, Any]:
    """The values that must be read back once the function is set, by the names of ``actual_values``."""
    wanted = {"vlan": options.vlan, "spoof_check": options.spoof_check, "trust": options.trust}
    return {"mac": options.given_mac, **{name: value for name, value in wanted.items() if value is not None}}


def actual_values(function: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a function that ``system.adapters.links.virtual_functions`` has read."""
    vlans = function["vlans"] or [0]
    return {
        "mac": str(function["mac"] or "").lower(),
        "vlan": int(vlans[0] or 0),
        "spoof_check": function["spoof_check"],
        "trust": function["trusted"],
    }


FIRST_BOND = "bond0"
"""The name of a bond that nicbench makes, where its port gives it none."""


def _parse_address(value: Any) -> Any:
    """The address of a port: with a prefix length that of an interface, without one a plain address."""
    if isinstance(value, IPv4Address | IPv6Address):
        return value
    try:
        if not isinstance(value, str):
            raise ValueError
        return ip_interface(value) if "/" in value else ip_address(value)
    except ValueError:
        raise ValueError(f"`{value}` is not an address: write `198.18.0.1`, or `198.18.0.1/24` to assign it") from None


PortAddress = Annotated[
    IPv4Address | IPv6Address, PlainValidator(_parse_address), PlainSerializer(str, when_used="json-unless-none")
]


class Port(Frozen):
    """A port on real hosts: given by interface, by PCI address, or (tester only) as a DPDK virtual device."""

    host: Name
    """The name of its host."""
    device: str | None = None
    """The name of a kernel interface; of a `bond`, the name that the bond gets."""
    address: str | None = Field(default=None, pattern=r"^[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]$")
    """A PCI address, of a tester's port or of a DUT that is a DPDK program."""
    vdev: str | None = None
    """A DPDK virtual device in DPDK's words, for example `net_null0` (tester only)."""
    bond: BondOptions | None = optional(None)
    """nicbench makes a bond of interfaces of the host (workloads only)."""
    virtual_function: VirtualFunctionOptions | None = optional(None)
    """nicbench makes the port as a virtual function of an adapter."""
    bind: Literal["vfio-pci"] | None = optional(None)
    """nicbench binds the card of `device`, `address` or `virtual_function` to vfio-pci for DPDK, and gives it back."""
    mac: CardMac | None = optional(None)
    """The MAC address that frames to a port given by `address` must carry; without it as the kernel says."""
    driver: KernelDriver | None = None
    """How the tester uses a kernel interface; without it as the tester's `driver`."""
    ip: PortAddress | None = None
    """The address of a port of workloads, or of a DUT that is set up by hand. With a prefix length (`198.18.0.1/24`)
    nicbench sets the address and removes it afterwards; without one the interface must have it. Without `ip` the
    interface's own address is used.
    """
    rdma: Literal["rxe"] | None = optional(None)
    """nicbench makes soft RoCE over the interface, and removes it (workloads only)."""
    devargs: str = ""
    """Further arguments of the DPDK driver."""
    queue: int = Field(default=0, ge=0)
    """The queue that AF_XDP uses."""
    lossless: bool = False
    """The port pushes back instead of losing frames. What it refuses counts against the DUT."""

    @model_validator(mode="after")
    def _name_what_is_made(self) -> Self:
        made = FIRST_BOND if self.bond is not None else None
        if self.virtual_function is not None and self.bind is None:
            made = self.virtual_function.device
        if made is not None and self.device is None:
            # With a validator of mode "before" or "wrap" pydantic would validate the port as Python data, not as JSON.
            object.__setattr__(self, "device", made)
        return self

    @property
    def own_ip(self) -> IPv4Address | IPv6Address | None:
        """``ip`` without its prefix length."""
        return self.ip.ip if isinstance(self.ip, IPv4Interface | IPv6Interface) else self.ip

    @property
    def given_ip(self) -> IPv4Interface | IPv6Interface | None:
        """The address that nicbench assigns; None where the port has one already, or needs none."""
        return self.ip if isinstance(self.ip, IPv4Interface | IPv6Interface) else None

    @property
    def devices(self) -> tuple[str, ...]:
        """The kernel interfaces that the port is made of, as they are before nicbench changes anything."""
        if self.bond is not None:
            return self.bond.of
        if self.bind is not None:
            return ()
        return () if self.device is None else (self.device,)

    @property
    def is_made(self) -> bool:
        """Whether nicbench must make something before the port can be used."""
        made = (self.given_ip, self.bond, self.virtual_function, self.bind, self.rdma)
        return any(each is not None for each in made)


# The ports of a bench file while they are prepared: the steps of ``stages/hosts.py`` work on one ``Making``.


@dataclass
class Making:
    """The state that the steps of making ports share; a step that changes a port's device replaces it in ``ports``.

    ``hosts`` are the live hosts by name, ``created`` the namespaces that nicbench makes (``create: true``), ``facts``
    what the report says of the ports.
    """

    hosts: Mapping[str, Host]
    ports: dict[str, Port]
    changes: Changes
    created: tuple[NetnsHost, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)

    def network_of(self, port: Port) -> Host:
        """The host in whose network stack a port's interfaces are at the end."""
        return self.hosts[port.host].network

    def ports_in(self, namespace: NetnsHost) -> dict[str, Port]:
        """The ports whose host is this namespace, or a container that uses its network."""
        spec = namespace.spec()
        return {name: port for name, port in self.ports.items() if self.network_of(port).spec() == spec}

    def tell(self, fact: str, name: str, value: Any) -> None:
        """Adds one line to a fact of the report that has several."""
        self.facts.setdefault(fact, {})[name] = value


def origin_of(making: Making, port: Port) -> Host:
    """The host where the port's card is before anything is made: outside any namespace that nicbench makes."""
    network = making.network_of(port)
    created = any(network.spec() == made.spec() for made in making.created)
    return network.inner if created and isinstance(network, NetnsHost) else network


def place_of(port: Port, name: str) -> str:
    """The place of an error: the host and the port, as the bench file names them."""
    return f"{port.host}, port {name}"
