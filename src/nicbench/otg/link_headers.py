"""Headers of the link layer: Ethernet, VLAN tags (IEEE 802.1Q), MPLS labels, PPP, pause frames and custom bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nicbench.otg.draft import Draft, Field, is_given, mac
from nicbench.otg.header import ETHER_TYPES, LAST_RESORT_ETHER_TYPE, PPP_PROTOCOLS, Encode, Header
from nicbench.otg.patterns import Kind, Pattern

_VLAN_TYPE: Final = ETHER_TYPES["vlan"]
_PAUSE_ADDRESS: Final = 0x0180C2000001
_MAC_CONTROL: Final = 0x8808


def ethernet(draft: Draft, header: Header) -> None:
    """IEEE 802.3 section 3.1.1. The EtherType of a VLAN tag that follows stands here, and is its ``tpid``."""
    draft.put_fields(header.message, header.path, mac("dst"), mac("src"))
    _put_type(draft, header, "ether_type")
    queue = Pattern(f"{header.path}.pfc_queue", 3, Kind.NUMBER, draft.problems)
    if queue.read(header.message.get("pfc_queue"), 0) != 0:
        draft.problems.not_implemented(f"{header.path}.pfc_queue", "queues of priority flow control are not chosen")


def vlan(draft: Draft, header: Header) -> None:
    """IEEE 802.1Q section 9.6: the tag's control information, and the type of what follows."""
    specs = (Field("priority", 3), Field("cfi", 1), Field("id", 12, tells=1))
    draft.put_fields(header.message, header.path, *specs)
    _put_type(draft, header, None)


def _put_type(draft: Draft, header: Header, name: str | None) -> None:
    """Adds the type of what follows: of a tag its ``tpid``; else as given by ``name``; else the known number."""
    following = header.next
    given = header.message.get(name) if name else None
    own = bool(name) and is_given(given)
    if following.kind == "vlan" and is_given(following.message.get("tpid")):
        if own and given != following.message["tpid"]:
            draft.problems.invalid(
                f"{header.path}.{name}", "the vlan header after it has a tpid, which stands there: give one of both"
            )
        pattern = Pattern(f"{header.path}: tpid of the vlan header after it", 16, Kind.NUMBER, draft.problems)
        draft.put(16, pattern.read(following.message["tpid"], _VLAN_TYPE), tells=1)
        return
    auto = ETHER_TYPES.get(following.kind or "", LAST_RESORT_ETHER_TYPE)
    if name:
        draft.put_field(header.message, Field(name, 16, LAST_RESORT_ETHER_TYPE, tells=1), header.path, auto)
    else:
        draft.put(16, auto, tells=1)


def mpls(draft: Draft, header: Header) -> None:
    """RFC 3032 section 2.1; the last of a stack has the bottom bit."""
    message, path = header.message, header.path
    draft.put_field(message, Field("label", 20, 16, tells=1), path)
    draft.put_field(message, Field("traffic_class", 3), path)
    draft.put_field(message, Field("bottom_of_stack", 1, 1), path, 0 if header.next.kind == "mpls" else 1)
    draft.put_field(message, Field("time_to_live", 8, 64), path)


def ppp(draft: Draft, header: Header) -> None:
    """RFC 1662 section 3.1."""
    message, path = header.message, header.path
    draft.put_fields(message, path, Field("address", 8, 0xFF), Field("control", 8, 0x03))
    protocol = PPP_PROTOCOLS.get(header.next.kind or "", PPP_PROTOCOLS["ipv4"])
    draft.put_field(message, Field("protocol_type", 16, PPP_PROTOCOLS["ipv4"]), path, protocol)


def ethernet_pause(draft: Draft, header: Header) -> None:
    """IEEE 802.3 annex 31B."""
    specs = (
        mac("dst", _PAUSE_ADDRESS),
        mac("src"),
        Field("ether_type", 16, _MAC_CONTROL),
        Field("control_op_code", 16, 0x0001),
        Field("time", 16),
    )
    draft.put_fields(header.message, header.path, *specs)


def pfc_pause(draft: Draft, header: Header) -> None:
    """IEEE 802.1Q section 36 (priority-based flow control)."""
    specs = (
        mac("dst", _PAUSE_ADDRESS),
        mac("src"),
        Field("ether_type", 16, _MAC_CONTROL),
        Field("control_op_code", 16, 0x0101),
        Field("class_enable_vector", 16),
        *(Field(f"pause_class_{priority}", 16) for priority in range(8)),
    )
    draft.put_fields(header.message, header.path, *specs)


def custom(draft: Draft, header: Header) -> None:
    """Bytes as the client gives them."""
    if header.message.get("metric_tags"):
        draft.problems.not_implemented(f"{header.path}.metric_tags", "metrics by tag are not kept: leave it out")
    digits = str(header.message.get("bytes", "")).replace(":", "").replace(" ", "")
    digits = digits[2:] if digits[:2] in ("0x", "0X") else digits
    try:
        draft.put_bytes(bytes.fromhex(digits))
    except ValueError:
        draft.problems.invalid(f"{header.path}.bytes", "is no even number of hexadecimal digits")


LINK: Final[Mapping[str, Encode]] = {
    "ethernet": ethernet,
    "vlan": vlan,
    "mpls": mpls,
    "ppp": ppp,
    "ethernetpause": ethernet_pause,
    "pfcpause": pfc_pause,
    "custom": custom,
}
