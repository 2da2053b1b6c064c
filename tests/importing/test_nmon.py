"""Recordings of nmon: what several versions write is read alike, and what is wrong has its line and its section."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench.core.errors import WrongFileError
from nicbench.importing.folder import rows
from nicbench.importing.nmon import Recording, read_nmon

SMALL = """\
AAA,progname,nmon
AAA,version,16n
AAA,host,client
AAA,interval,1
CPU001,CPU 1 client,User%,Sys%,Wait%,Idle%,Steal%
NET,Network I/O client,eth0-read-KB/s,eth0-write-KB/s
ZZZZ,T0001,23:59:59,31-DEC-2026
CPU001,T0001,10.0,5.0,0.0,85.0,0.0
NET,T0001,100.0,1.0
ZZZZ,T0002,00:00:00,01-JAN-2027
CPU001,T0002,20.0,5.0,0.0,75.0,0.0
NET,T0002,200.0,2.0
"""


def values(recording: Recording, sample: int = 0) -> dict[str, int | None]:
    return {f"{one.metric} {one.of}".strip(): one.value for one in recording.samples[sample].readings}


def test_what_nmon_16_recorded_on_linux(golden: Path) -> None:
    recording = read_nmon((golden / "linux_16n.nmon").read_text(), "linux_16n.nmon")
    assert (recording.host, recording.recorder, recording.interval_s) == ("vm", "nmon 16n", 1.0)
    assert [sample.interval_s for sample in recording.samples] == [1.0] * 4
    found = values(recording)
    assert {name.split()[-1] for name in found if name.startswith("cpu_")} == {"cpu0", "cpu1"}
    assert sum(value or 0 for name, value in found.items() if name.endswith(" cpu0")) == pytest.approx(1e9, rel=2e-3)
    assert {"receive_bytes eth0", "transmit_packets lo", "disk_written_bytes vda", "disk_busy_ns vda"} <= found.keys()
    assert found["memory_total_bytes"] == round(24105.6 * 2**20)
    assert "VM" in recording.left_out


def test_a_sorted_file_of_an_older_nmon_is_read_as_it_was_before_it_was_sorted(golden: Path) -> None:
    recording = read_nmon((golden / "linux_14i_sorted.nmon").read_text(), "x.nmon")
    first, second = values(recording), values(recording, 1)
    assert (first["cpu_user_ns cpu0"], second["cpu_user_ns cpu0"]) == (200_000_000, 600_000_000)  # of 2 s
    assert second["cpu_idle_ns cpu1"] is None
    assert "cpu_steal_ns cpu0" not in first
    assert (first["receive_bytes eth0.100"], first["transmit_bytes eth0.100"]) == (2_048_000, 20_480)
    assert second["disk_busy_ns sda"] == 2_026_000_000
    assert first["memory_cached_bytes"] == 537_395_200


def test_aix_has_its_own_columns_and_a_snapshot_that_came_late_took_longer(golden: Path) -> None:
    recording = read_nmon((golden / "aix_topas.nmon").read_text(), "x.nmon")
    assert (recording.host, recording.recorder) == ("lpar1", "topas_nmon TOPAS-NMON")
    assert [sample.interval_s for sample in recording.samples] == [60.0, 60.0, 90.0]
    first = values(recording)
    assert first["cpu_user_ns all"] == 9_600_000_000
    assert first["memory_free_bytes"] == 451_646 * 2**20
    assert first["swap_total_bytes"] == 131_584 * 2**20
    assert first["receive_packets en0"] == 636_270
    assert first["disk_read_bytes hdisk2"] == 2048 * 1024 * 60
    assert values(recording, 2)["receive_bytes en0"] == 100 * 1024 * 90


def test_snapshots_a_second_apart_are_a_second_long_though_the_clock_tells_whole_seconds() -> None:
    text = SMALL.replace("ZZZZ,T0002,00:00:00,01-JAN-2027", "ZZZZ,T0002,23:59:59,31-DEC-2026")
    first, second = read_nmon(text, "x.nmon").samples
    assert (first.interval_s, second.interval_s) == (1.0, 1.0)
    assert second.at_s > first.at_s


def test_machines_recorded_at_once_are_on_one_time_and_others_on_their_own() -> None:
    one = read_nmon(SMALL, "x.nmon")
    later = read_nmon(SMALL.replace("23:59:59,31-DEC", "23:59:58,31-DEC"), "y.nmon", "other")
    another_day = read_nmon(SMALL.replace("DEC-2026", "DEC-2025").replace("JAN-2027", "JAN-2026"), "z.nmon", "third")
    assert {row[1]: row[2] for row in reversed([*rows([one, later])])} == {"client": 2.0, "other": 1.0}
    assert {row[1]: row[2] for row in reversed([*rows([one, another_day])])} == {"client": 1.0, "third": 1.0}


def test_the_last_line_of_a_recording_that_was_killed_is_left_out() -> None:
    cut = read_nmon(SMALL[:-4], "x.nmon")
    assert "receive_bytes eth0" not in values(cut, 1)
    assert values(cut, 1)["cpu_user_ns cpu0"] == 200_000_000


def test_another_name_for_the_machine() -> None:
    assert read_nmon(SMALL, "x.nmon", "server").host == "server"


MORE = """\
NETPACKET,Network Packets client,eth0-read/s,eth0-write/s
DISKREAD,Disk Read KB/s client,vda
NETPACKET,T0001,5.0,5.0
DISKREAD,T0001,8.0
NETPACKET,T0002,5.0,5.0
DISKREAD,T0002,8.0
ZZZZ,T0003,00:00:01,01-JAN-2027
CPU001,T0003,20.0,5.0,0.0,75.0,0.0
NET,T0003,300.0,3.0
NETPACKET,T0003,5.0,5.0
DISKREAD,T0003,8.0
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("T0002,200.0,2.0", "T0002,200.0,7.0,2.0,7.0"),
        ("T0002,200.0,2.0", "T0002,200.0"),
        ("T0002,5.0,5.0", "T0002,5.0"),
    ],
    ids=["one came", "one went", "one went in the packets alone"],
)
def test_where_an_interface_came_or_went_the_rest_is_read_and_no_later_column_is_taken_for_another(
    old: str, new: str
) -> None:
    recording = read_nmon((SMALL + MORE).replace(old, new), "x.nmon")
    first, second, third = (values(recording, number) for number in range(3))
    assert (first["receive_bytes eth0"], first["receive_packets eth0"]) == (102_400, 5)
    for later in (second, third):  # the third has as many values as the heading, of other interfaces perhaps
        assert not [name for name in later if "receive" in name or "transmit" in name]
        assert (later["cpu_user_ns cpu0"], later["disk_read_bytes vda"]) == (200_000_000, 8192)
    assert "NET and NETPACKET from T0002 on, as interfaces came or went" in recording.left_out


def test_where_a_drive_came_the_network_is_read() -> None:
    recording = read_nmon((SMALL + MORE).replace("DISKREAD,T0003,8.0", "DISKREAD,T0003,8.0,1.0"), "x.nmon")
    assert values(recording, 2)["receive_bytes eth0"] == 307_200
    assert "disk_read_bytes vda" in values(recording, 1)
    assert "disk_read_bytes vda" not in values(recording, 2)


@pytest.mark.parametrize(
    ("old", "new", "place", "says"),
    [
        (SMALL, "a,b\n1,2\n", "1:1", "is no file of nmon"),
        (SMALL, "", "1:1", "has no snapshot"),
        ("5.0,0.0,85.0,0.0", "5.0,x,85.0,0.0", "8:23", "CPU001: `x` is no number of `Wait%`"),
        ("85.0,0.0", "85.0", "8:32", "CPU001: the value of `Steal%` is missing"),
        ("85.0,0.0", "85.0,0.0,7.0", "8:36", "CPU001: 6 values, and the heading on line 5 names 5"),
        (
            "ZZZZ,T0002",
            "NET,again,eth1-read-KB/s\nZZZZ,T0002",
            "10:1",
            "NET: its columns are named otherwise on line 6",
        ),
        ("T0001,100.0,1.0", "T0001,inf,1.0", "9:11", "NET: `inf` is no number of"),
        ("T0001,100.0,1.0", "T0001,1e999,1.0", "9:11", "NET: `1e999` cannot be"),
        ("T0001,100.0,1.0", "T0001,-x,1.0", "9:11", "NET: `-x` is no number of"),
        ("T0001,100.0,1.0", "T0001,1_0,1.0", "9:11", "NET: `1_0` is no number of"),
        ("NET,Network I/O client,eth0-read-KB/s,eth0-write-KB/s\n", "", "8:1", "NET: there is no line that names"),
        ("T0001,10.0,5.0", "T0001,90.0,50.0", "8:14", "CPU001: 225.0 % of a CPU's time"),
        ("00:00:00,01-JAN-2027", "00:00:00,01-JAN-2026", "10:12", "ZZZZ: the time goes back"),
        ("00:00:00,01-JAN-2027", "midnight", "10:12", "ZZZZ: `midnight` is no time"),
        ("ZZZZ,T0002,00:00:00,01-JAN-2027\n", "", "10:1", "CPU001: the snapshot T0002 has no time"),
        ("ZZZZ,T0002", "ZZZZ,T0001", "10:1", "ZZZZ: T0001 stands twice, first on line 7"),
        ("AAA,host,client\n", "", "1:1", "AAA: there is no line AAA,host"),
        ("31-DEC-2026", f"31-DEC-{'9' * 40}", "7:12", "ZZZZ: `23:59:59"),
        ("ZZZZ,T0001,", "ZZZZ,Tuesday,", "7:6", "no number of a snapshot"),
        ("ZZZZ,T0001,", "ZZZZ,,", "7:6", "no number of a snapshot"),
        ("ZZZZ,T0001,", f"ZZZZ,T{'1' * 5000},", "7:6", "no number of a snapshot"),
    ],
)
def test_what_is_wrong_is_told_with_line_column_and_section(old: str, new: str, place: str, says: str) -> None:
    assert old in SMALL
    with pytest.raises(WrongFileError) as caught:
        read_nmon(SMALL.replace(old, new), "x.nmon")
    assert caught.value.place == f"x.nmon:{place}"
    assert says in caught.value.message
