"""Connection tracking as the kernel prints it: the table, and what it had no place for."""

from __future__ import annotations

from nicbench.system.adapters.conntrack import read_look, read_statistics

STATISTICS = """entries  found invalid insert_failed drop early_drop
00000011  00000000 00000001 00000002 0000000a 00000003
00000011  00000000 00000000 00000000 00000010 00000000
"""


def test_counts_are_sums_over_the_cpus() -> None:
    counts = read_statistics(STATISTICS)
    assert (counts["drop"], counts["early_drop"], counts["invalid"]) == (26, 3, 1)


def test_what_could_not_be_inserted_for_another_reason_was_not_refused_for_want_of_room() -> None:
    look = read_look("262144\n17\n" + STATISTICS)
    assert look is not None
    assert (look.limit, look.held, look.refused, look.replaced) == (262_144, 17, 24, 3)


def test_a_kernel_that_tracks_nothing_has_no_table() -> None:
    assert read_look("") is None
    assert read_look("cat: No such file or directory\n") is None
