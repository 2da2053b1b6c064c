"""The hash of receive side scaling, by the vectors of its specification."""

from __future__ import annotations

import ipaddress
import random

import pytest

from nicbench.stats.queues import Flows, Toeplitz, most_to_mean, queue_of, spread_by_chance

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


# Spread over queues: what chance explains, and what it does not.


def assigned(flows: list[Flows], queues: int, draw: random.Random) -> list[float]:
    """Each flow on a queue at random, as an ideal hash does it."""
    loads = [0.0] * queues
    for each in flows:
        for _ in range(each.count):
            loads[draw.randrange(queues)] += each.frames
    return loads


@pytest.mark.parametrize(
    "flows",
    [[Flows(16, 100.0)], [Flows(4096, 1.0)], [Flows(255, 1.0), Flows(1, 255.0)]],
    ids=["few", "many", "elephant"],
)
def test_an_ideal_hash_is_called_worse_as_seldom_as_asked(flows: list[Flows], draw: random.Random) -> None:
    found = [spread_by_chance(flows, assigned(flows, 8, draw), 1, draws=2000) for _ in range(200)]
    below = sum(each is not None and each.probability < 0.05 for each in found)
    assert below <= 25  # of 200, where 10 are expected: more has a probability of less than 1 in 10,000


def test_the_interval_of_chance_has_the_index_of_equal_flows_within() -> None:
    chance = spread_by_chance([Flows(256, 10.0)], [640.0] * 4, 1)
    # Shares of F flows over n queues: the index is about 1 / (1 + (n - 1) / F).
    assert chance.index_lower < 1 / (1 + 3 / 256) < chance.index_upper
    assert 1.0 < chance.most_to_mean_lower < chance.most_to_mean_upper < 1.5
    assert chance.probability == 1.0  # nothing spreads better


def test_a_queue_that_is_left_out_is_worse_than_chance_with_flows_enough() -> None:
    left_out = [85.0, 86.0, 85.0, 0.0]
    many, few = (spread_by_chance([Flows(count, 256.0 / count)], left_out, 1) for count in (256, 4))
    assert many.probability < 1e-4
    assert few.probability > 0.05  # four flows leave a queue out by chance alone


def test_one_queue_with_everything_has_the_mean_times_the_queues() -> None:
    assert most_to_mean([0.0, 8.0, 0.0, 0.0]) == 4.0
    assert most_to_mean([0.0, 0.0]) is None
    assert spread_by_chance([Flows(8, 1.0)], [0.0, 0.0], 1) is None
