"""What somebody writes who has read one example: each message names the place and what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench.bench_file import WrongBenchFileError
from nicbench.bench_file.load import parse

LAB = """\
nicbench: 1
title: Mine
lab: {kind: veth}
dut: {kind: kernel-forward}
tests:
  - {name: throughput, method: throughput, frame_bytes: [64]}
"""
CARDS = """\
nicbench: 1
title: Mine
hosts: {tester: {kind: local}}
ports:
  t0: {host: tester, address: 0000:03:00.0}
  t1: {host: tester, device: eth9}
dut: {kind: external}
tests:
  - {name: throughput, method: throughput}
"""
STREAMS = """\
nicbench: 1
title: Mine
lab: {kind: clients}
dut: {kind: server}
tests:
  - {name: tcp, method: stream, workload: iperf3, duration: 1 s}
"""


@pytest.mark.parametrize(
    ("written", "found", "replaced", "message", "step"),
    [
        (
            LAB,
            "nicbench: 1",
            "nicbench: 2",
            "1:11: this nicbench does not know the format `2`",
            "install a newer nicbench",
        ),
        (LAB, "title: Mine", "title:", "2:1: `title` must be text, not `null`", "write it in quotes"),
        (
            LAB,
            "[64]",
            "[64, jumbo]",
            "there is no mix of sizes called `jumbo`",
            "write a size in bytes, or a mix: `imix`",
        ),
        (
            LAB,
            "[64]",
            "[64], search: {precision: 0,5 %}",
            "unknown key `tests[0].search.5 %`",
            "write a decimal point: `precision: 0.5 %`",
        ),
        (
            LAB,
            "[64]",
            "[64], search: {precision: 100 %}",
            "`tests[0].search.precision` is 100 %: it must be less than 50 %",
            "write a value that is less than 50 %",
        ),
        (
            LAB,
            "[64]}",
            "[64]}\n  - {name: l, method: latency, at: throughput, loads: [50 %, 150 %]}",
            "`tests[1].loads[1]` is 150 %: it must be at most 100 %",
            "at most 100 %",
        ),
        (
            LAB,
            "{kind: veth}\ndut: {kind: kernel-forward}",
            "{kind: simulated}",
            "`dut` is missing",
            "add `dut: {kind: simulated}`",
        ),
        (
            LAB,
            "{kind: veth}",
            "{kind: simulated, capacity: 500 kbps}",
            "'500 kbps' is a bit rate, and not a frame rate",
            'write "200 kpps"',
        ),
        (
            LAB,
            "{kind: veth}",
            "{ports: 2}",
            "3:6: `kind` is missing in `lab`",
            "one of: `clients`, `memif`, `simulated`",
        ),
        (
            LAB,
            "{kind: kernel-forward}",
            "{backlog_frames: 5}",
            "4:6: `kind` is missing in `dut`",
            "`bridge`, `external`",
        ),
        (LAB, "method: throughput, ", "", "6:5: `method` is missing in `tests`", "`latency`, `load-sweep`"),
        (LAB, "method: throughput, ", "", "`method` is missing", "add `method: throughput`, or another of: "),
        (LAB, "{kind: veth}", "\n  - kind: veth", "`lab` must be keys and values, not a list", "without a `-`"),
        (LAB, "frame_bytes: [64]", "frame_bytes: 64", "must be a list, not `64`", "write `[64]`"),
        (LAB, "frame_bytes: [64]", "frame_size: [64]", "unknown key `tests[0].frame_size`", "`frame_bytes`"),
        (LAB, "frame_bytes: [64]", "sizes: [64]", "unknown key `tests[0].sizes`", "did you mean `frame_bytes`?"),
        (LAB, "frame_bytes: [64]", "trial: {duration: 1}", "1 has no unit", 'for example "200 ms"'),
        (LAB, "method: throughput", "method: thruput", "unknown test method `thruput`", "did you mean `throughput`?"),
        (LAB, "method: throughput", "method: rfc2544", "unknown test method `rfc2544`", "known methods: "),
        (LAB, "name: throughput, ", "", "`tests[0].name` is missing", "add `name: throughput`"),
        (
            LAB,
            "name: throughput, method: throughput",
            "name: l, method: latency, at: throughput",
            "works on its results",
            "add a `throughput` test before it: `- {name: throughput, method: throughput}`",
        ),
        (
            LAB,
            "name: throughput, method: throughput",
            "name: l, method: latency",
            "`tests[0].at` is missing",
            "above it; where there is none, add `- {name: throughput, method: throughput}`",
        ),
        (
            LAB,
            "name: throughput, method: throughput",
            "name: l, method: latency, at: l, loads: [100 kpps]",
            "'100 kpps' is not a percentage",
            'write "50 %"',
        ),
        (LAB, "title: Mine\n", "", "`title` is missing", "add `title: My first run`"),
        (LAB, "  - {", "\t- {", "6:1: a tab is used where spaces are needed", "indent with spaces"),
        (LAB, "{kind: veth}", "veht", "unknown lab kind `veht`", "did you mean `veth`?"),
        (LAB, "lab: {kind: veth}\n", "", "neither a lab nor hosts and ports", "`lab: {kind: veth}`"),
        (
            LAB.replace("{kind: kernel-forward}", "{kind: simulated}"),
            "lab: {kind: veth}\n",
            "",
            "neither a lab nor hosts and ports",
            "add `lab: {kind: simulated}`\n",
        ),
        (
            LAB,
            "name: throughput, method: throughput, frame_bytes: [64]",
            "name: l, method: latency, at: throughput, frame_size: [64]",
            "unknown key `tests[0].frame_size`",
            "did you mean `frame_bytes`?",
        ),
        (LAB, "tests:", "thresholds: {unsent_share: 1 %}\ntests:", "must be a number, not `1 %`", "write 0.01"),
        (LAB, "tests:", "tuning: {dut: {mtuu: 9000}}\ntests:", "unknown tuning item `mtuu`", "did you mean `mtu`?"),
        (CARDS, "address:", "pci:", "5:22: unknown key `ports.t0.pci`", "did you mean `address`?"),
        (CARDS, "device:", "interface:", "6:22: unknown key `ports.t1.interface`", "did you mean `device`?"),
        (CARDS, "0000:03:00.0", "03:00.0", "`ports.t0.address` cannot be `03:00.0`", "write it like `0000:03:00.0`"),
        (CARDS, "tester, device", "testr, device", "there is no host `testr`", "did you mean `tester`?"),
        (STREAMS, "iperf3", "iperf4", "unknown workload `iperf4`", "did you mean"),
        (STREAMS, "workload:", "tool:", "unknown key `tests[0].tool`", "did you mean `workload`?"),
        (
            STREAMS,
            "{kind: server}",
            "{kind: file-server, memory: 1 MiB}",
            "`dut.share` is missing",
            "add `share: sftp`",
        ),
    ],
)
def test_a_beginner_is_told_what_to_write(written: str, found: str, replaced: str, message: str, step: str) -> None:
    assert found in written
    with pytest.raises(WrongBenchFileError) as error:
        parse(written.replace(found, replaced, 1).encode(), Path("mine.yaml"))
    shown = str(error.value)
    assert message in shown
    assert step in shown
    assert "Value error" not in shown
