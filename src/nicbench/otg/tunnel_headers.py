"""Headers that carry other packets: GRE, VXLAN and GTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nicbench.otg.draft import Draft, Field
from nicbench.otg.header import ETHER_TYPES, Encode, Header

_GTP_EXTENSION_WORDS: Final = 2
"""An extension header of OTG's has 48 bits of contents: with length and next type, two words of 32 bits."""


def gre(draft: Draft, header: Header) -> None:
    """RFC 2784 section 2.1. Checksum and reserved1 are there only where ``checksum_present`` is 1."""
    message, path, start = header.message, header.path, draft.at
    present = draft.put_field(message, Field("checksum_present", 1), path)
    draft.put_fields(message, path, Field("reserved0", 12), Field("version", 3))
    protocol = ETHER_TYPES.get(header.next.kind or "", ETHER_TYPES["ipv4"])
    draft.put_field(message, Field("protocol", 16, ETHER_TYPES["ipv4"], tells=2), path, protocol)
    _require_constant(draft, present, f"{path}.checksum_present")
    if present == 1:
        draft.put_checksum(message, "checksum", path, start=start, end=None)
        draft.put_field(message, Field("reserved1", 16), path)
        return
    for name in ("checksum", "reserved1"):
        if (message.get(name) or {}).get("choice") not in (None, "generated") or "value" in (message.get(name) or {}):
            draft.problems.invalid(f"{path}.{name}", "is not sent where checksum_present is 0: set that to 1")


def vxlan(draft: Draft, header: Header) -> None:
    """RFC 7348 section 5. What follows is a whole Ethernet frame, whose lengths leave room for its FCS."""
    specs = (Field("flags", 8, 8), Field("reserved0", 24), Field("vni", 24, tells=2), Field("reserved1", 8))
    draft.put_fields(header.message, header.path, *specs)
    draft.inner = True


def gtpv1(draft: Draft, header: Header) -> None:
    """3GPP TS 29.060 section 6. The optional word is there where one of the flags E, S and PN is 1."""
    message, path, start = header.message, header.path, draft.at
    draft.put_fields(message, path, Field("version", 3, 1), Field("protocol_type", 1, 1), Field("reserved", 1))
    flags = {name: draft.put_field(message, Field(name, 1), path) for name in ("e_flag", "s_flag", "pn_flag")}
    for name, flag in flags.items():
        _require_constant(draft, flag, f"{path}.{name}")
    draft.put_field(message, Field("message_type", 8), path)
    draft.put_length(message, "message_length", path, counted_from=start + 8)
    draft.put_field(message, Field("teid", 32, tells=2), path)
    optional = (Field("squence_number", 16), Field("n_pdu_number", 8), Field("next_extension_header_type", 8))
    if 1 in flags.values():
        draft.put_fields(message, path, *optional)
    else:
        for field in optional:
            if message.get(field.name):
                draft.problems.invalid(f"{path}.{field.name}", "is not sent without e_flag, s_flag or pn_flag: set one")
    extensions = message.get("extension_headers") or ()
    if extensions and flags["e_flag"] != 1:
        draft.problems.invalid(f"{path}.extension_headers", "are announced by e_flag: set it to 1")
    for index, extension in enumerate(extensions):
        _gtp_extension(draft, extension, f"{path}.extension_headers[{index}]")


def _gtp_extension(draft: Draft, message: Mapping[str, Any], path: str) -> None:
    """3GPP TS 29.281 section 5.2.1."""
    specs = (
        Field("extension_length", 8, _GTP_EXTENSION_WORDS),
        Field("contents", 48),
        Field("next_extension_header", 8),
    )
    draft.put_fields(message, path, *specs)


def gtpv2(draft: Draft, header: Header) -> None:
    """3GPP TS 29.274 section 5.1. The tunnel's identifier is there where ``teid_flag`` is 1."""
    message, path, start = header.message, header.path, draft.at
    draft.put_fields(message, path, Field("version", 3, 2), Field("piggybacking_flag", 1))
    flag = draft.put_field(message, Field("teid_flag", 1), path)
    _require_constant(draft, flag, f"{path}.teid_flag")
    draft.put_fields(message, path, Field("spare1", 3), Field("message_type", 8))
    draft.put_length(message, "message_length", path, counted_from=start + 4)
    if flag == 1:
        draft.put_field(message, Field("teid", 32, tells=2), path)
    elif message.get("teid"):
        draft.problems.invalid(f"{path}.teid", "is not sent where teid_flag is 0: set that to 1")
    draft.put_fields(message, path, Field("sequence_number", 24), Field("spare2", 8))


def _require_constant(draft: Draft, flag: object, path: str) -> None:
    if not isinstance(flag, int):
        draft.problems.not_implemented(path, "decides which fields follow, and cannot vary within a flow")


TUNNEL: Final[Mapping[str, Encode]] = {"gre": gre, "vxlan": vxlan, "gtpv1": gtpv1, "gtpv2": gtpv2}
