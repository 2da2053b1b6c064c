"""What a bench file says of a virtual machine."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    model_serializer,
    model_validator,
)

from nicbench.model.base import Frozen
from nicbench.model.quantity import Bytes

Model = Literal["virtio-net-pci", "igb", "e1000e"]
CardName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_.-]{0,14}$")]
Word = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.,:=/+%@-]+$", max_length=200)]
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_TAKEN = ("lo", "all", "default", "none")
SMALLEST_MEMORY_BYTES = 384 * 2**20
LARGEST_MEMORY_BYTES = 2**42
PAGE_SIZES = (2**21, 2**30)


def _card_name(text: str) -> str:
    if text in _TAKEN or text.startswith("eth"):
        raise ValueError(f"`{text}` is a name that the guest's kernel gives: write another, `n0` for instance")
    return text


def _mac(text: str) -> str:
    low = text.lower()
    if not _MAC.fullmatch(low) or int(low[:2], 16) & 1 or low == "00:00:00:00:00:00":
        raise ValueError(f"`{text}` is no MAC address of a card: write six bytes in hex, the first of them even")
    return low


class Card(Frozen):
    """A card, called in the guest as in the bench file: an emulated one, ``n0: {model: igb, network: a, node: 1}``, or
    one of the machine, ``n0: {pci: "0000:65:02.0", mac: 02:00:00:00:00:01}``: a card, or a virtual function of one.

    Cards of one ``network`` are joined, those of other virtual machines of the bench file too; without one the card's
    cable ends nowhere. ``node`` is the NUMA node that its slot belongs to.
    """

    model: Model = "virtio-net-pci"
    network: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,30}$")] | None = None
    node: int | None = Field(default=None, ge=0, le=7)
    mac: Annotated[str, AfterValidator(_mac)] | None = None
    pci: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")] | None = None

    @model_validator(mode="after")
    def _is_one_of_the_two(self) -> Card:
        if self.pci is not None and (self.network is not None or "model" in self.model_fields_set):
            raise ValueError("a card of the machine (`pci`) has no `model` and no `network`: remove them")
        return self

    @model_serializer(mode="wrap")
    def _of_its_kind(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A card of the machine is written without what it has not, so that it can be read again."""
        written: dict[str, Any] = write(self)
        if self.pci is not None:
            written.pop("model", None)
            written.pop("network", None)
        return written


class VmOptions(Frozen):
    """``hosts: {guest: {kind: vm, cpus: 2, memory: 2 GiB, nodes: 2, cards: {n0: {model: igb, network: a}}}}``.

    ``nodes`` are NUMA nodes, among which CPUs and memory are divided evenly. ``accelerator``: ``auto`` is KVM where a
    guest really runs on it, and else emulation.
    """

    cpus: int = Field(default=2, ge=1, le=64)
    memory: Bytes = Field(default=2**30, ge=SMALLEST_MEMORY_BYTES, le=LARGEST_MEMORY_BYTES)
    nodes: int = Field(default=1, ge=1, le=8)
    cards: dict[Annotated[CardName, AfterValidator(_card_name)], Card] = Field(default_factory=dict, max_length=16)
    accelerator: Literal["auto", "kvm", "tcg"] = "auto"
    boot_parameters: tuple[Word, ...] = Field(default=(), max_length=64)
    kernel: Literal["fetched", "machine"] = "fetched"
    pin: tuple[Annotated[int, Field(ge=0, le=8191)], ...] = Field(default=(), max_length=64)
    """The machine's CPU for each of the guest's, in their order; each is its own."""
    huge_pages: Bytes | None = None
    """The size of the machine's pages that the guest's memory is made of, all of it before it starts."""
    memory_nodes: tuple[Annotated[int, Field(ge=0, le=1023)], ...] = Field(default=(), max_length=8)
    """The machine's NUMA node that the memory of each of the guest's nodes is on."""

    @model_validator(mode="after")
    def _nodes_are_there(self) -> VmOptions:
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
        """Whether QEMU itself must have that card, which old ones have not."""
        return any(card.model == "igb" and card.pci is None for card in self.cards.values())

    @property
    def has_iommu(self) -> bool:
        """Whether cards can be given away by vfio: those on PCI Express, whose functions an IOMMU keeps apart."""
        return any(card.model == "igb" or card.pci is not None for card in self.cards.values())
