"""The hash of receive side scaling, by the vectors of its specification."""

from __future__ import annotations

import ipaddress

import pytest

from nicbench.stats.queues import Toeplitz, queue_of

# Microsoft, "Verifying the RSS Hash Calculation": the key, and addresses with ports, hash with ports, hash without.
KEY = bytes.fromhex("6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa")
VECTORS = (
    ("66.9.149.187", 2794, "161.142.100.80", 1766, 0x51CCC178, 0x323E8FC2),
    ("199.92.111.2", 14230, "65.69.140.83", 4739, 0xC626B0EA, 0xD718262A),
    ("24.19.198.95", 12898, "12.22.207.184", 38024, 0x5C2B394A, 0xD2D0A5DE),
    ("3ffe:2501:200:1fff::7", 2794, "3ffe:2501:200:3::1", 1766, 0x40207D3D, 0x2CC18CD5),
)


@pytest.mark.parametrize(("source", "source_port", "destination", "destination_port", "with_ports", "without"), VECTORS)
def test_the_hash_of_the_specification_is_found(
    source: str, source_port: int, destination: str, destination_port: int, with_ports: int, without: int
) -> None:
    addresses = ipaddress.ip_address(source).packed + ipaddress.ip_address(destination).packed
    ports = source_port.to_bytes(2) + destination_port.to_bytes(2)
    assert Toeplitz(KEY, len(addresses))(addresses) == without
    assert Toeplitz(KEY, len(addresses) + 4)(addresses + ports) == with_ports


def test_low_bits_of_the_hash_choose_the_queue() -> None:
    assert [queue_of(value, (0, 1, 2, 3, 0, 1, 2, 0)) for value in (3, 7, 0xFFFF_FFF8)] == [3, 0, 0]


def test_a_key_that_is_too_short_is_refused() -> None:
    with pytest.raises(ValueError, match="too short"):
        Toeplitz(KEY[:15], 12)
