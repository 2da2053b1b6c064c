"""Looks at a core, decoded."""

from __future__ import annotations

import zlib
from base64 import b64encode

import pytest

from nicbench.core.trial import Looks
from nicbench.stats.cpu import SLOW_SHARE, decode_looks, shared_share


def looks(shares: bytes, begins_ns: int = -3, slot_ns: int = 10) -> Looks:
    return Looks(begins_ns=begins_ns, slot_ns=slot_ns, shares=b64encode(zlib.compress(shares)).decode())


def test_each_look_has_the_time_of_its_slot_and_an_empty_slot_is_left_out() -> None:
    assert decode_looks(looks(bytes((100, 0, 57)))) == ((-3, 1.0), (17, 0.57))


def test_the_share_of_slow_looks_is_of_those_in_the_period() -> None:
    seen = looks(bytes((50, 100, 80, 79, 0, 0)), begins_ns=0)

    assert SLOW_SHARE == 0.8
    assert shared_share(seen, 0, 100) == 0.5
    assert shared_share(seen, 10, 40) == pytest.approx(1 / 3)
    assert shared_share(seen, 40, 60) is None


@pytest.mark.parametrize("shares", ["?", "AAAA", b64encode(zlib.compress(b"1" * 50)[:-5]).decode()])
def test_damaged_looks_are_an_error(shares: str) -> None:
    with pytest.raises(ValueError, match="looks at a core"):
        decode_looks(Looks(begins_ns=0, slot_ns=1, shares=shares))


def test_looks_that_unpack_without_end_are_an_error() -> None:
    with pytest.raises(ValueError, match="more than"):
        decode_looks(looks(bytes(2**21)))
