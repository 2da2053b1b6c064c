"""Lists of CPUs are read and written as the kernel does."""

from __future__ import annotations

import pytest

from nicbench.core.machine import cpu_list, parse_cpu_list


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
