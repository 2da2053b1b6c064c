"""Huge pages are raised by what a run lacks, and put back."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fakes import FakeHost

from nicbench.core.errors import NotReadyError
from nicbench.tuning.preparation import HugePages, huge_pages_of_meminfo, raise_huge_pages
from nicbench.tuning.stack import UndoStack

PAGES = "/proc/sys/vm/nr_hugepages"
MEBIBYTE = 2**20
MEMINFO = """\
MemTotal:        8145312 kB
HugePages_Total:      10
HugePages_Free:        6
HugePages_Rsvd:        2
HugePages_Surp:        0
Hugepagesize:       2048 kB
Hugetlb:           20480 kB
"""


def test_pages_promised_to_somebody_are_not_available() -> None:
    assert huge_pages_of_meminfo(MEMINFO) == HugePages(page_kib=2048, total=10, available=4)


def test_a_kernel_without_huge_pages_says_so() -> None:
    assert huge_pages_of_meminfo("MemTotal: 8145312 kB\n") is None


@pytest.mark.parametrize(("needed_mebibytes", "lacking"), [(8, 0), (9, 1), (10, 1), (512, 252)])
def test_what_lacks_is_counted_in_whole_pages(needed_mebibytes: int, lacking: int) -> None:
    assert HugePages(page_kib=2048, total=10, available=4).lacking(needed_mebibytes * MEBIBYTE) == lacking


async def test_their_number_is_raised_and_put_back(tmp_path: Path) -> None:
    host = FakeHost(files={"/proc/meminfo": MEMINFO, PAGES: "10\n"})
    stack = UndoStack("run", None, tmp_path / "runtime")
    await raise_huge_pages(stack, host, 512 * MEBIBYTE)
    assert host.files[PAGES] == "262"

    await stack.undo_all()
    assert host.files[PAGES] == "10"


async def test_enough_pages_are_left_as_they_are(tmp_path: Path) -> None:
    host = FakeHost(files={"/proc/meminfo": MEMINFO, PAGES: "10\n"})
    await raise_huge_pages(UndoStack("run", None, tmp_path / "runtime"), host, 8 * MEBIBYTE)

    assert host.writes == []


async def test_memory_too_fragmented_is_an_error_and_nothing_stays_taken(tmp_path: Path) -> None:
    host = FakeHost(files={"/proc/meminfo": MEMINFO, PAGES: "10\n"})
    host.write_filter = lambda _path, text: "100\n" if text == "262" else text
    with pytest.raises(NotReadyError, match="252 more huge pages"):
        await raise_huge_pages(UndoStack("run", None, tmp_path / "runtime"), host, 512 * MEBIBYTE)

    assert host.files[PAGES] == "10"
