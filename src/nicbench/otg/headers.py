"""The headers of a flow's packet: from OTG's list to template, varying fields and fixups of one frame.

Each header class that moves packets is a function of ``link_headers``, ``network_headers``, ``transport_headers`` or
``tunnel_headers``. What no function encodes is refused with the path of its field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nicbench.otg.draft import Draft
from nicbench.otg.header import Encode, Header, Next
from nicbench.otg.link_headers import LINK
from nicbench.otg.network_headers import NETWORK
from nicbench.otg.refusals import Problems
from nicbench.otg.transport_headers import TRANSPORT
from nicbench.otg.tunnel_headers import TUNNEL

ENCODERS: Final[Mapping[str, Encode]] = {**LINK, **NETWORK, **TRANSPORT, **TUNNEL}
"""How each header class is encoded, by its name in OTG."""
_MOST_HEADERS: Final = 64
_LEAVE_ADDRESSES: Final = frozenset({*NETWORK, "custom"})
"""Headers behind which a checksum still covers the addresses; custom bytes may be an extension header of IPv6."""
_NO_NEXT: Final = Next(None, {})


def encode_packet(packet: Sequence[Mapping[str, Any]], path: str, problems: Problems) -> Draft:
    """Assembles the headers of a packet; without any, an Ethernet header with OTG's defaults."""
    draft = Draft(problems)
    if len(packet) > _MOST_HEADERS:
        problems.invalid(path, f"has {len(packet)} headers, of at most {_MOST_HEADERS}")
        return draft
    kinds = [str(header.get("choice", "ethernet")) for header in packet] or ["ethernet"]
    bodies: list[Mapping[str, Any]] = [header.get(kind) or {} for header, kind in zip(packet, kinds, strict=False)]
    bodies = bodies or [{}]
    for index, (kind, body) in enumerate(zip(kinds, bodies, strict=True)):
        here = f"{path}[{index}].{kind}"
        last = index + 1 == len(kinds)
        following = _NO_NEXT if last else Next(kinds[index + 1], bodies[index + 1])
        encode = ENCODERS.get(kind)
        if encode is None:
            problems.not_implemented(here, f"this header is not encoded; {', '.join(sorted(ENCODERS))} are")
        else:
            encode(draft, Header(body, here, following))
        if kind not in _LEAVE_ADDRESSES:
            draft.addresses = None
    return draft
