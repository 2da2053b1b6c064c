"""How two clocks differ, from questions and answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nicbench.core.clocks import ClockOffset, Exchange, clock_warnings, offset_of
from nicbench.core.machine import cpu_list, parse_cpu_list

_DELAYS = st.integers(0, 10**9)


@given(
    offset_ns=st.integers(-(10**12), 10**12),
    delays=st.lists(st.tuples(_DELAYS, _DELAYS), min_size=1, max_size=8),
)
def test_the_true_offset_lies_within_the_uncertainty(offset_ns: int, delays: list[tuple[int, int]]) -> None:
    now = 1_700_000_000 * 10**9
    exchanges = [
        Exchange(sent_ns=now, said_ns=now + there + offset_ns, received_ns=now + there + back) for there, back in delays
    ]
    found = offset_of("a", exchanges)

    assert abs(found.offset_s - offset_ns / 1e9) <= found.uncertainty_s + 1e-6
    assert found.uncertainty_s == pytest.approx(min(there + back for there, back in delays) / 2e9)


def test_without_an_exchange_nothing_is_known() -> None:
    with pytest.raises(ValueError, match="empty"):
        offset_of("a", [])


def test_what_is_told_of_a_clock() -> None:
    assert _offset(0.0123, 0.0004).in_words == "a: its clock is 12.3 ms ahead (+- 400 µs)"
    assert _offset(-2.5, 0.001).in_words == "a: its clock is 2.5 s behind (+- 1 ms)"
    assert _offset(0.0001, 0.0004).in_words == "a: its clock is as ours, to 400 µs"
    assert _offset(0.0, 0.0, 0).in_words == "a: the clock of this machine"


@pytest.mark.parametrize(
    ("offset", "said"),
    [
        ((0.3, 0.1), "300 ms ahead"),
        ((-0.3, 0.1), "300 ms behind"),
        ((0.15, 0.06), None),
        ((0.0, 0.2), "known to 200 ms only"),
    ],
)
def test_only_what_is_sure_is_a_warning(offset: tuple[float, float], said: str | None) -> None:
    warnings = clock_warnings([_offset(*offset)])

    assert bool(warnings) == (said is not None)
    assert said is None or said in warnings[0]


def _offset(offset_s: float, uncertainty_s: float, exchanges: int = 10) -> ClockOffset:
    return ClockOffset(host="a", offset_s=offset_s, uncertainty_s=uncertainty_s, exchanges=exchanges)


# Lists of CPUs are read and written as the kernel does.


@pytest.mark.parametrize(
    ("text", "cpus", "again"),
    [
        ("0", (0,), "0"),
        ("0-2,5", (0, 1, 2, 5), "0-2,5"),
        ("3,7-8\n", (3, 7, 8), "3,7-8"),
        ("5,0-1,1", (5, 0, 1), "0-1,5"),
        ("6,2-3", (6, 2, 3), "2-3,6"),
        ("\n", (), ""),
    ],
)
def test_a_list_is_read_and_written(text: str, cpus: tuple[int, ...], again: str) -> None:
    assert parse_cpu_list(text) == cpus
    assert cpu_list(cpus) == again


@pytest.mark.parametrize("text", ["(null)", "3-1", "0-", "0-99999", "-1", "0x3"])
def test_what_is_no_list_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_cpu_list(text)


def test_the_same_cpus_named_a_thousand_times_take_no_memory() -> None:
    with pytest.raises(ValueError, match="more CPUs than there can be"):
        parse_cpu_list("0-8191," * 1000)
