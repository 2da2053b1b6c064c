"""Values of /proc and /sys mean the same however the kernel prints them."""

from __future__ import annotations

import pytest

from nicbench.tuning.setting import cpu_mask, plain_value, same_value


@pytest.mark.parametrize(
    ("path", "one", "other", "same"),
    [
        pytest.param("/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n", "4096 131072 6291456", True, id="tabs"),
        pytest.param("/proc/sys/vm/nr_hugepages", "0\n", "1", False, id="another number"),
        pytest.param("/sys/kernel/mm/transparent_hugepage/enabled", "always [never]", "never", True, id="selection"),
        pytest.param("/sys/class/net/d0/queues/rx-0/rps_cpus", "00000000,00000002\n", "2", True, id="mask, padded"),
        pytest.param("/sys/class/net/d0/queues/rx-0/rps_cpus", "1,00000000", "100000000", True, id="mask, wide"),
        pytest.param("/sys/class/net/d0/queues/rx-0/rps_cpus", "3", "1", False, id="another mask"),
        pytest.param("/sys/fs/cgroup/cpuset/cpuset.cpus", "1,2", "12", False, id="a list of CPUs is no mask"),
    ],
)
def test_two_texts_are_the_same_value_or_not(path: str, one: str, other: str, same: bool) -> None:
    assert same_value(path, one, other) is same


def test_the_selected_word_is_the_value() -> None:
    assert plain_value("always defer [madvise] never\n") == "madvise"
    assert plain_value("[fe80::1]") == "[fe80::1]"


@pytest.mark.parametrize(
    ("cpus", "mask"), [((0,), "1"), ((1,), "2"), ((0, 3), "9"), ((32,), "1,00000000"), ((0, 64), "1,00000000,00000001")]
)
def test_a_mask_is_written_in_groups_of_32_bits(cpus: tuple[int, ...], mask: str) -> None:
    assert cpu_mask(cpus) == mask
