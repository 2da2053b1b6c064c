"""Captures that a bench file names: the sizes of their frames are those of the tests, and what is wrong with them."""

from __future__ import annotations

import struct
import subprocess
import zlib
from collections.abc import Sequence
from pathlib import Path

import pytest
from scapy.all import Ether, Raw
from scapy.utils import PcapNgWriter
from tests.bench_file.conftest import Read
from tests.distributions import command_of, unpack, unpack_source

from nicbench.bench_file import BenchFile, WrongBenchFileError, load
from nicbench.bench_file.frame_sizes import list_frame_sizes, settle_captures
from nicbench.core.frame_size import mean_bytes, size_label
from nicbench.core.traffic import WrongCaptureError, sizes_of_capture
from nicbench.hosts.kinds.local import LocalHost

HEAD = "nicbench: 1\ntitle: x\nlab: {kind: veth}\ndut: {kind: bridge}\n"
TEST = "tests: [{name: t, method: throughput}]\n"
SMALL = "tests: [{name: t, method: throughput, frame_bytes: [64]}]\n"
REPLAY = "- {{name: {}, method: replay, captures: [{{file: {}.pcap}}]}}\n"
LIKE = "tests: [{name: t, method: throughput, frame_bytes: [like]}]\n"


def capture(lengths: Sequence[int], *, order: str = "<", magic: int = 0xA1B2C3D4, link: int = 1) -> bytes:
    """Frames of this many bytes without FCS."""
    head = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65535, link)
    return head + b"".join(struct.pack(order + "IIII", 1, 0, each, each) + bytes(each) for each in lengths)


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    """A bench file with captures of one size and of three."""
    monkeypatch.chdir(tmp_path)
    Path("one.pcap").write_bytes(capture([1514] * 20))
    Path("three.pcap").write_bytes(capture([60, 570, 1514] * 10))

    def of(text: str) -> BenchFile:
        path = tmp_path / "bench.yaml"
        path.write_text(HEAD + text)
        return load(path)

    return of


@pytest.mark.parametrize(
    "content",
    [
        capture([40, 60, 60, 1514]),
        capture([40, 60, 60, 1514], order=">"),
        capture([40, 60, 60, 1514], magic=0xA1B23C4D),
    ],
)
def test_sizes_have_the_fcs_and_are_filled_up_to_those_of_ethernet(content: bytes) -> None:
    sizes = sizes_of_capture(content)
    assert (dict(sizes.frames_of), sizes.largest_frame) == ({64: 3, 1518: 1}, 4)
    assert sizes.mean_bytes == (3 * 64 + 1518) / 4


def test_a_pcapng_is_read_as_well(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    with PcapNgWriter(str(path)) as writer:
        for length in (60, 61, 1000):
            writer.write(Ether() / Raw(bytes(length - 14)))
    assert dict(sizes_of_capture(path.read_bytes()).frames_of) == {64: 1, 65: 1, 1004: 1}


def with_fcs(*lengths: int) -> bytes:
    """A capture of frames of this many bytes and their FCS, of which the file does not say that they have one."""
    frames = (bytes([number]) * length for number, length in enumerate(lengths))
    whole = (frame + struct.pack("<I", zlib.crc32(frame)) for frame in frames)
    return capture([]) + b"".join(struct.pack("<IIII", 1, 0, len(each), len(each)) + each for each in whole)


def with_fcs_declared(length: int, said: int) -> bytes:
    """A pcapng whose interface says how long the FCS is."""
    section = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
    interface = struct.pack("<IIHHIHHB3xHHI", 1, 32, 1, 0, 0, 13, 1, said, 0, 0, 32)
    return (
        section
        + interface
        + struct.pack("<III", 3, 16 + length, length)
        + bytes(length)
        + struct.pack("<I", 16 + length)
    )


@pytest.mark.parametrize(
    ("content", "sizes"),
    [
        (capture([104, 68], link=0x24000001), {104: 1, 68: 1}),
        (capture([104], order=">", link=0x24000001), {104: 1}),
        (capture([104], link=0x20000001), {108: 1}),  # the bit that says so is not set
        (with_fcs_declared(104, 4), {104: 1}),
        (with_fcs_declared(104, 32), {104: 1}),
        (with_fcs(124, 124), {128: 2}),
        (capture([60]) + struct.pack("<IIII", 1, 0, 116, 100) + bytes(116), {64: 1, 104: 1}),  # 16 of filling
        (with_fcs(124) + capture([124])[24:], {132: 1, 128: 1}),  # not every frame ends so: it is payload
    ],
)
def test_an_fcs_that_was_captured_is_not_counted_twice(content: bytes, sizes: dict[int, int]) -> None:
    assert dict(sizes_of_capture(content).frames_of) == sizes


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "neither pcap nor pcapng"),
        (b"\x0a\x0d\x0d\x0a\x00", "broken after frame 0"),
        (capture([]), "no frame"),
        (capture([60, 60])[:-1], "broken after frame 1"),
        (capture([100, 13]), "frame 2 has 13 bytes"),
        (capture([100, 17], link=0x24000001), "frame 2 has 13 bytes"),
        (capture([60], link=101), "link type 101"),
        (capture([60]) + struct.pack("<IIII", 1, 0, 96, 200) + bytes(96), "of frame 2 it has 96 of 200 bytes"),
        (b"\x1f\x8b\x08\x00", "is packed: unpack it with gunzip"),
        (b"\x28\xb5\x2f\xfd", "is packed: unpack it with unzstd"),
    ],
)
def test_what_is_no_capture_of_whole_frames_is_refused_with_the_frame(content: bytes, said: str) -> None:
    with pytest.raises(WrongCaptureError, match=said):
        sizes_of_capture(content)


@pytest.mark.acceptance
def test_every_capture_of_whole_ethernet_frames_that_tcpdump_reads_is_read(tmp_path: Path) -> None:
    """Tried with the captures of tcpdump's own tests, which hold what protocols are broken by."""
    captures = unpack_source("sid", "tcpdump", tmp_path) / "tests"
    tcpdump = command_of(unpack("trixie", ("tcpdump",), tmp_path), "tcpdump")
    files = read = cut = 0
    for path in sorted(captures.glob("*.pcap*")):
        words = f"{tcpdump} -nn --count -r {path}"
        counted = subprocess.run(words, shell=True, capture_output=True, text=True, check=False)
        if counted.returncode or "EN10MB" not in counted.stderr or counted.stdout.startswith("0 "):
            continue
        try:
            frames = str(sum(sizes_of_capture(path.read_bytes()).frames_of.values()))
        except WrongCaptureError as error:
            frames = str(error)
        cut += frames.startswith("is cut: of frame")
        read += frames == counted.stdout.split()[0]
        files += 1
    assert read > 200
    assert read + cut == files


@pytest.mark.parametrize(
    ("text", "size", "mean"),
    [
        ("traffic: {pcap: one.pcap}\n" + TEST, "1518", 1518),
        ("traffic: {pcap: three.pcap}\n" + TEST, "capture", (64 + 574 + 1518) / 3),
        (
            "traffic: {pcap: one.pcap}\ntests: [{name: t, method: throughput, frame_bytes: [maximum]}]\n",
            "1518",
            1518,
        ),
        (
            "traffic:\n  pcap: three.pcap\n  mixes: {like: [{frame_bytes: 1518, weight: 2}, "
            "{frame_bytes: 64, weight: 2}, {frame_bytes: 574, weight: 2}]}\n" + LIKE,
            "like",
            (64 + 574 + 1518) / 3,
        ),
        (
            "traffic: {streams: [{name: a, share: 25 %, pcap: three.pcap}, {name: b, share: 75 %, frame_bytes: 64}]}\n"
            + TEST,
            "streams",
            (64 + 574 + 1518) / 12 + 48,
        ),
    ],
)
def test_a_test_has_the_sizes_of_the_capture(read: Read, text: str, size: str, mean: float) -> None:
    (found,) = list_frame_sizes(read(text))
    assert size_label(found) == size
    assert mean_bytes(found) == pytest.approx(mean)


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        (
            "traffic: {pcap: one.pcap}\n" + SMALL,
            6, 53, "the frames of one.pcap have 1518 bytes with FCS, and the test sends 64",
        ),
        (
            "traffic: {pcap: three.pcap}\ntests: [{name: t, method: throughput, frame_bytes: [imix]}]\n",
            6, 53, "have 64 to 1518 bytes with FCS (mean 718.7), and the test sends `imix`",
        ),
        ("traffic: {pcap: nosuch.pcap}\n" + TEST, 5, 17, "nosuch.pcap cannot be read: No such file"),
        (
            "tests:\n" + REPLAY.format("a", "one") + REPLAY.format("b", "nosuch"),
            7, 47, "nosuch.pcap cannot be read: No such file",
        ),
        (
            "traffic: {flows: 1}\ntests: [{name: t, method: throughput, frame_bytes: [capture]}]\n",
            6, 53, "there is none",
        ),
        (
            "traffic: {pcap: one.pcap, mixes: {capture: [{frame_bytes: 64, weight: 1}]}}\n" + TEST,
            5, 10, "`capture` has a meaning of its own",
        ),
        (
            "traffic: {streams: [{name: a, share: 50 %, pcap: one.pcap}, {name: b, share: 50 %}]}\n" + TEST,
            5, 61, "the stream `b` has no frame size",
        ),
        (
            "traffic: {streams: [{name: a, share: 50 %, pcap: one.pcap, frame_bytes: 64}, "
            "{name: b, share: 50 %, frame_bytes: 64}]}\n" + TEST,
            5, 60, "so `frame_bytes` has no effect",
        ),
        (
            "traffic: {streams: [{name: a, share: 100 %, pcap: one.pcap}, "
            "{name: b, rate: 1 kpps, frame_bytes: 64}]}\n" + TEST,
            5, 78, "would change the mean frame size",
        ),
        (
            "traffic: {streams: [{name: a, share: 100 %, pcap: one.pcap}]}\n" + SMALL,
            6, 53, "the streams have frame sizes of their own",
        ),
        (
            "traffic: {pcap: three.pcap}\ntests: [{name: a, method: address-caching}]\n",
            6, 27, "`address-caching` sends frames of its own, and not those of three.pcap",
        ),
        (
            "tests: [{name: r, method: replay, captures: [{file: nosuch.pcap}]}]\n",
            5, 53, "nosuch.pcap cannot be read: No such file",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_sent_is_refused_before_the_run(
    read: Read, text: str, line: int, column: int, said: str
) -> None:
    with pytest.raises(WrongBenchFileError) as caught:
        read(text)
    (problem,) = caught.value.problems
    assert (problem.position.line, problem.position.column) == (line, column)
    assert said in problem.message


def test_a_frame_that_the_ports_do_not_take_is_named(read: Read) -> None:
    Path("large.pcap").write_bytes(capture([60, 1515]))
    with pytest.raises(WrongBenchFileError, match=r"frame 2 of `large.pcap` has 1519 bytes with FCS.* take 1518"):
        read("tests: [{name: r, method: replay, captures: [{file: large.pcap}]}]\n")


FAR = (
    "nicbench: 1\ntitle: x\nhosts: {tester: {kind: ssh, address: far}, d: {kind: ssh, address: farther}}\n"
    "ports: {t0: {host: tester, device: e0}, t1: {host: tester, device: e1}, d0: {host: d, device: e0}, "
    "d1: {host: d, device: e1}}\nlinks: [t0 <-> d0, t1 <-> d1]\ndut: {kind: external}\n"
)


async def test_a_capture_on_another_machine_is_read_when_the_run_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bench.yaml"
    path.write_text(FAR + "traffic: {pcap: far.pcap}\n" + TEST)
    bench = load(path)
    assert [test.build().frame_sizes() for test in bench.tests] == [("capture",)], "nobody knows them yet"
    monkeypatch.chdir(tmp_path)
    Path("far.pcap").write_bytes(capture([996]))
    settled = await settle_captures(bench, LocalHost())
    assert list_frame_sizes(settled) == (1000,)


async def test_other_sizes_than_those_of_a_capture_on_another_machine_are_refused_when_the_run_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bench.yaml"
    path.write_text(FAR + "traffic: {pcap: far.pcap}\n" + SMALL)
    bench = load(path)
    monkeypatch.chdir(tmp_path)
    Path("far.pcap").write_bytes(capture([996]))
    with pytest.raises(WrongBenchFileError, match=r"far\.pcap have 1000 bytes"):
        await settle_captures(bench, LocalHost())
