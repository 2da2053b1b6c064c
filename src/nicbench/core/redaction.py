"""Makes text safe to show: removes what identifies a machine, and escapes characters that control a terminal."""

from __future__ import annotations

import hashlib
import hmac
import platform
import re
import secrets
from collections.abc import Iterator, Mapping
from typing import Any, Final

_HEX = "[0-9A-Fa-f]"
_MAC = re.compile(
    rf"(?<![0-9A-Fa-f:.-])(?:{_HEX}{{2}}:){{5}}{_HEX}{{2}}(?![0-9A-Fa-f:])|(?<![\w.-])(?:{_HEX}{{2}}-){{5}}{_HEX}{{2}}(?![\w-])"
)
_DOTTED_MAC = re.compile(rf"(?<![\w.])({_HEX}{{4}})\.({_HEX}{{4}})\.({_HEX}{{4}})(?![\w.])")
_CLOCK_IDENTITY = re.compile(rf"(?<![\w.])({_HEX}{{6}})\.{_HEX}{{4}}\.({_HEX}{{6}})(?![\w.])")
"""Matches the identity of a PTP clock as linuxptp writes it, which is made of a MAC address (IEEE 1588, 7.5.2.2)."""
_LONG_ADDRESS = re.compile(rf"(?<![0-9A-Fa-f:])(?:{_HEX}{{2}}:){{7,31}}{_HEX}{{2}}(?![0-9A-Fa-f:])")
"""Matches an InfiniBand address, a world-wide name or a fingerprint."""
_INTERFACE_NAME = re.compile(rf"\b(enx|wlx|ibx|wwx|ethx)({_HEX}{{12}})\b")
"""Matches interface names that systemd makes of a MAC address by default (systemd.net-naming-scheme(7))."""
_EUI64 = re.compile(
    rf"(?<![0-9A-Fa-f])({_HEX}{{1,4}}):({_HEX}{{0,2}})ff:fe({_HEX}{{2}}):({_HEX}{{1,4}})(?![0-9A-Fa-f:])", re.IGNORECASE
)
"""Matches the interface identifier of an IPv6 address that was derived from a MAC address (RFC 4291, appendix A)."""
_UUID = re.compile(rf"(?<![\w-]){_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}(?![\w-])")
_NAMED_VOLUME = re.compile(r"\b(PARTUUID|UUID|LABEL|PARTLABEL)=(?!uuid-)[^\s,\"']+")
_WORLD_WIDE_NAME = re.compile(rf"\b(?:eui\.|naa\.|wwn-0x|0x)({_HEX}{{16}}(?:{_HEX}{{16}})?)\b")
_QUALIFIED_NAME = re.compile(r"\b(nqn\.\d{4}-\d\d\.[\w.-]+|iqn\.\d{4}-\d\d\.[\w.-]+):\S+")

_KINDS: Final = {
    **dict.fromkeys(
        ("serial", "serials", "serial_number", "board_serial", "chassis_serial", "product_serial"), "serial"
    ),
    **dict.fromkeys(("mac", "macs", "permanent_mac", "permanent_address", "chassis_id", "port_id", "guid"), "mac"),
    **dict.fromkeys(("uuid", "uuids", "system_uuid", "machine_id", "node_guid", "sys_image_guid"), "uuid"),
    **dict.fromkeys(("host_name", "hostname", "system_name", "node_name", "chassis_name", "domain_name"), "host"),
    **dict.fromkeys(("asset_tag", "asset_tags"), "asset"),
}
"""Names of fields whose values are identifiers, whatever they look like, with the kind of identifier."""
_WITHIN: Final = {
    "lldp_neighbours": {"name": "host", "chassis": "asset"},
}
"""Names of fields whose values are identifiers only below another field."""
_NO_SECRETS = frozenset(
    {
        *("", "unknown", "none", "n/a", "localhost", "localhost.localdomain", "local", "tester", "peer", "dut"),
        *("net", "kernel", "linux", "debian", "ubuntu", "fedora", "server", "host"),
    }
)
"""Values that identify nothing, among them words that occur in every inventory and that a host may be named by."""
_NO_SECRET_MACS = frozenset({"000000000000", "ffffffffffff"})
_SHORTEST_LEARNT = 3
_KEPT = frozenset({"run_id", "bench_sha256", "histogram", "machine_hash"})
"""Fields that are never redacted: identifiers that link the files of a run folder, and encoded numbers."""


class Redactor:
    """Redacts text and plain data; an identifier learnt in one place is found in every other."""

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key if key is not None else secrets.token_bytes(32)
        self._learnt: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None

    @classmethod
    def of_this_machine(cls) -> Redactor:
        """Returns a redactor that knows this machine's name; other hosts' names are added with their inventory."""
        redactor = cls()
        redactor.learn_host_name(platform.node())
        return redactor

    def learn_host_name(self, name: str) -> None:
        """Learns the name of a host, with and without its domain."""
        for each in (name.strip(), name.strip().partition(".")[0]):
            self._learn("host", each)

    def learn(self, content: Any) -> None:
        """Learns each identifier in plain data by the name of its field, and each MAC address in any text."""
        for kind, value in _identifiers(content):
            if kind == "host":
                self.learn_host_name(value)
            else:
                self._learn(kind, value)
        for text in _texts(content):
            for mac in _MAC.findall(text):
                self._learn_mac(mac)

    def __call__(self, content: Any) -> Any:
        """Returns the data without identifiers, in keys, too."""
        self.learn(content)
        return self._redact(content)

    def redact_text(self, text: str) -> str:
        """Returns the text without identifiers."""
        if self._pattern is None and self._learnt:
            longest_first = sorted(map(re.escape, self._learnt), key=len, reverse=True)
            self._pattern = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(longest_first)})(?![A-Za-z0-9])", re.IGNORECASE)
        text = _QUALIFIED_NAME.sub(lambda found: f"{found[1]}:{self._token('serial', found[0])}", text)
        text = _UUID.sub(lambda found: self._token("uuid", found[0]), text)
        text = _NAMED_VOLUME.sub(lambda found: f"{found[1]}={self._token('uuid', found[0])}", text)
        text = _LONG_ADDRESS.sub(lambda found: self._token("address", found[0]), text)
        text = _MAC.sub(lambda found: self._mac_token(found[0]), text)
        text = _DOTTED_MAC.sub(lambda found: self._mac_token("".join(found.groups())), text)
        text = _CLOCK_IDENTITY.sub(lambda found: self._mac_token("".join(found.groups())), text)
        text = _INTERFACE_NAME.sub(lambda found: f"{found[1]}-{self._mac_token(found[2])}", text)
        text = _EUI64.sub(self._redact_derived, text)
        text = _WORLD_WIDE_NAME.sub(lambda found: self._token("serial", found[0]), text)
        if self._pattern is not None:
            text = self._pattern.sub(lambda found: self._learnt[found[0].lower()], text)
        return text

    def _redact(self, content: Any, under: str = "") -> Any:
        if under in _KEPT:
            return content
        if isinstance(content, Mapping):
            return {self.redact_text(str(name)): self._redact(value, str(name)) for name, value in content.items()}
        if isinstance(content, list | tuple):
            return [self._redact(value, under) for value in content]
        return self.redact_text(content) if isinstance(content, str) else content

    def _learn(self, kind: str, value: str) -> None:
        value = value.strip()
        if len(value) < _SHORTEST_LEARNT or value.lower() in _NO_SECRETS:
            return
        if _MAC.fullmatch(value):
            self._learn_mac(value)
        elif not _is_token(value):
            self._remember(value, self._token(kind, value))

    def _learn_mac(self, mac: str) -> None:
        """Learns a MAC address without separators, too, as names of files and interfaces may contain it."""
        bare = _strip_separators(mac)
        if bare not in _NO_SECRET_MACS:
            self._remember(bare, self._mac_token(mac))

    def _remember(self, value: str, token: str) -> None:
        if self._learnt.get(value.lower()) != token:
            self._learnt[value.lower()] = token
            self._pattern = None

    def _mac_token(self, mac: str) -> str:
        return mac if _strip_separators(mac) in _NO_SECRET_MACS else self._token("mac", _strip_separators(mac))

    def _redact_derived(self, found: re.Match[str]) -> str:
        """Returns the token of the MAC address that an interface identifier was derived from.

        To restore the MAC address, the second-lowest bit of the first octet is inverted.
        """
        first, second, third, last = (
            found[1].zfill(4),
            (found[2] or "").zfill(2),
            found[3],
            found[4].zfill(4),
        )
        octet = f"{int(first[:2], 16) ^ 0x02:02x}"
        return self._mac_token(f"{octet}{first[2:]}{second}{third}{last}")

    def _token(self, kind: str, value: str) -> str:
        digest = hmac.new(self._key, f"{kind} {value.lower()}".encode(), hashlib.sha256).hexdigest()
        return f"{kind}-{digest[:8]}"


def is_redacted(value: object) -> bool:
    """Whether the value contains a redaction token, which cannot be compared with the tokens of another run."""
    return isinstance(value, str) and _TOKEN.search(value) is not None


_TOKEN = re.compile(r"\b(?:serial|mac|uuid|host|asset|address)-[0-9a-f]{8}\b")


def _is_token(value: str) -> bool:
    return _TOKEN.fullmatch(value) is not None


def _strip_separators(mac: str) -> str:
    return re.sub(r"[^0-9a-f]", "", mac.lower())


def _identifiers(content: Any, kind: str | None = None, names: Mapping[str, str] = _KINDS) -> Iterator[tuple[str, str]]:
    if isinstance(content, Mapping):
        for name, value in content.items():
            below = {**names, **_WITHIN.get(str(name), {})}
            yield from _identifiers(value, names.get(str(name), kind if isinstance(value, list) else None), below)
    elif isinstance(content, list | tuple):
        for value in content:
            yield from _identifiers(value, kind, names)
    elif isinstance(content, str) and kind is not None:
        yield kind, content


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, Mapping):
        for name, value in content.items():
            yield str(name)
            yield from _texts(value)
    elif isinstance(content, list | tuple):
        for value in content:
            yield from _texts(value)
    elif isinstance(content, str):
        yield content


# Environment variables: who reads a report may see what a tool ran with, and no password.


_SECRET_NAME = re.compile(
    r"passw(?:or)?d|passphrase|(?:^|_)pass(?:$|_)|secret|token|credential|auth|cookie|(?:^|_|api|access|private)key(?:$|_)",
    re.IGNORECASE,
)
_SECRET_VALUE = re.compile(
    r"-----BEGIN|^(?:Bearer|Basic) |\beyJ[\w-]{10,}\.[\w-]+"
    r"|\b(?:ghp|gho|ghs|github_pat|glpat|xox[bp]|sk)[-_]\w{10,}|\bAKIA\w{16}"
)
_USER_OF_URL = re.compile(r"(?<=://)[^/@\s]+@")
HIDDEN: Final = "(not kept: it looks like a secret)"


def hide_secrets(variables: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables with ``HIDDEN`` for each secret, known by its name or its form, and no user in a URL."""
    return {
        name: HIDDEN
        if _SECRET_NAME.search(name) or _SECRET_VALUE.search(value)
        else _USER_OF_URL.sub("(not kept)@", value)
        for name, value in variables.items()
    }


# Text from others made harmless to look at: what steers a terminal or turns words around is written as its number.


# C0 without tab and newline, DEL and C1 (a terminal obeys them), what orders text by direction (Unicode UAX #9),
# line separators, the byte-order mark and non-characters, and surrogates, which no UTF-8 can hold.
_STEERING: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff]"
)
_LONGEST_NAME: Final = 120


def make_visible(text: str) -> str:
    r"""Returns ``text`` with each control character written as ``\x1b`` or ``\u202e``; tabs and newlines stay."""
    return _STEERING.sub(_number, text)


def visible_in_json(document: str) -> str:
    r"""Returns a JSON document with each control character written as ``\u001b``: a parser restores the original."""
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", document)


def visible_name(name: str) -> str:
    """Returns a file's name for a sentence: on one line, of bounded length, without control characters."""
    plain = make_visible(name).replace("\n", "\\n").replace("\t", "\\t")
    return plain if len(plain) <= _LONGEST_NAME else f"{plain[:_LONGEST_NAME]}…"


def _number(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
