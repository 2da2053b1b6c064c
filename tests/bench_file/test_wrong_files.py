"""Wrong bench files: where the error points and what it says.

Each case: the text, then line, column, part of the message and part of the next step of every problem.
"""

import pytest
from tests.bench_file.conftest import Expected, assert_refused

HEAD = "nicbench: 1\ntitle: x\n"
LAB = "lab: {kind: veth}\ndut: {kind: policer}\n"
HOSTS = "hosts: {tester: {kind: local}}\n"
EXTERNAL = "dut: {kind: external}\ntests:\n  - {name: t, method: throughput}\n"
TESTS = "tests:\n  - {name: t, method: throughput}\n"

WRONG = {
    "an unknown key names the closest known one": (
        HEAD + "dutt: {kind: policer}\n" + LAB + TESTS,
        [(3, 1, "unknown key `dutt`", "did you mean `dut`?")],
    ),
    "an unknown key of a plug-in's options": (
        HEAD + "lab: {kind: veth, queus: 1}\ndut: {kind: policer}\n" + TESTS,
        [(3, 19, "unknown key `lab.queus`", "did you mean `queues`?")],
    ),
    "a misspelt kind": (
        HEAD + "lab: {knd: veth}\ndut: {kind: policer}\n" + TESTS,
        [(3, 7, "unknown key `knd`", "did you mean `kind`?")],
    ),
    "a kind that does not exist": (
        HEAD + "lab: {kind: vethe}\ndut: {kind: policer}\n" + TESTS,
        [(3, 13, "unknown lab kind `vethe`", "did you mean `veth`?")],
    ),
    "a declared fact that is no value": (
        HEAD + "declared: {switch: {mtu: [1, 2]}, cables: 3}\n" + LAB + TESTS,
        [(3, 20, "`mtu` must be a text, a number, `true` or `false`", None)],
    ),
    "two workers on one CPU": (
        HEAD + "tester: {workers: [{cpu: 1, transmit: [t0]}, {cpu: 1, receive: [t1]}]}\n" + LAB + TESTS,
        [(3, 9, "each worker polls on a CPU of its own", None)],
    ),
    "two workers that only receive at a port of the kernel's tester": (
        HEAD
        + "tester: {driver: xdp, workers: [{cpu: 1, transmit: [t0, t1]}, {cpu: 2, receive: [t0, t1]}, "
        + "{cpu: 3, receive: [t1]}]}\n"
        + LAB
        + TESTS,
        [(3, 9, "a worker that sends nothing must be the only one that receives at port t1", None)],
    ),
    "a worker without a port": (
        HEAD + "tester: {workers: [{cpu: 1}]}\n" + LAB + TESTS,
        [(3, 20, "neither transmits nor receives", None)],
    ),
    "time stamps that the lab's ports do not have": (
        HEAD + "tester: {timestamps: kernel}\n" + LAB + TESTS,
        [(3, 22, "the ports of the veth lab by net_af_xdp have no time stamps of the kernel", "driver: net_pcap")],
    ),
    "time stamps of a card where there is none": (
        HEAD + "tester: {timestamps: card, driver: net_pcap}\n" + LAB + TESTS,
        [(3, 22, "have no time stamps of the card", "write `timestamps: tsc`")],
    ),
    "a kernel's time stamps by the tester inside the kernel, and a card's by AF_XDP": (
        HEAD
        + "tester: {timestamps: card}\n"
        + HOSTS
        + "ports: {t0: {host: tester, device: e0, driver: xdp}, t1: {host: tester, device: e1}}\n"
        + EXTERNAL,
        [(5, 54, "the port `t1` (net_af_xdp) has no time stamps of the card", "`driver: xdp`")],
    ),
    "time stamps of a simulated card without a clock": (
        HEAD + "tester: {timestamps: card}\nlab: {kind: simulated}\ndut: {kind: simulated}\n" + TESTS,
        [(3, 22, "the ports of the simulated lab have no time stamps of the card", "write `card_clock_ppm: 0`")],
    ),
    "ports without the kernel's time stamps, each by name": (
        HEAD
        + "tester: {timestamps: kernel}\n"
        + HOSTS
        + "ports: {t0: {host: tester, device: e0, driver: net_pcap}, t1: {host: tester, device: e1},"
        + " t2: {host: tester, address: 0000:03:00.0},"
        + ' t3: {host: tester, vdev: "net_pcap0,rx_pcap=a.pcap"}}\n'
        + EXTERNAL,
        [
            (5, 59, "the port `t1` (net_af_xdp) has no time stamps of the kernel", "write `driver: net_pcap`"),
            (5, 91, "the port `t2` (a card that the kernel does not see)", None),
            (5, 134, "the port `t3` (net_pcap0)", None),
        ],
    ),
    "ports without a card's time stamps": (
        HEAD
        + "tester: {timestamps: card}\n"
        + HOSTS
        + "ports: {t0: {host: tester, address: 0000:03:00.0}, t1: {host: tester, device: e1}}\n"
        + EXTERNAL,
        [(5, 52, "the port `t1` (net_af_xdp) has no time stamps of the card", "mlx5, ice, hns3")],
    ),
    "text where a number belongs": (
        HEAD + "seed: seven\n" + LAB + TESTS,
        [(3, 7, "`seed` must be a whole number, not `seven`", "write a whole number")],
    ),
    "a quoted number is text": (
        HEAD + 'seed: "7"\n' + LAB + TESTS,
        [(3, 7, "`seed` must be a whole number, not `7`", "write a whole number")],
    ),
    "a number where text belongs": (
        "nicbench: 1\ntitle: 7\n" + LAB + TESTS,
        [(2, 8, "`title` must be text, not `7`", "write it in quotes")],
    ),
    "a list where a section belongs": (
        HEAD + "lab: [veth]\ndut: {kind: policer}\n" + TESTS,
        [(3, 6, "`lab` must be keys and values, not a list", "write `KEY: VALUE`")],
    ),
    "a duplicate key names the line of the first": (
        HEAD + LAB + "dut: {kind: bridge}\n" + TESTS,
        [(5, 1, "the key `dut` is given twice", "the first is on line 4")],
    ),
    "a missing key": (
        "nicbench: 1\n" + LAB + TESTS,
        [(1, 1, "`title` is missing", "add `title: My first run`")],
    ),
    "a missing key of a test": (
        HEAD + LAB + "tests:\n  - method: throughput\n",
        [(6, 5, "`tests[0].name` is missing", "add `name: throughput`")],
    ),
    "another format of bench files": (
        "nicbench: 2\ntitle: x\n" + LAB + TESTS,
        [(1, 11, "this nicbench does not know the format `2` of bench files", "write 1, or install a newer nicbench")],
    ),
    "a duration without its unit": (
        HEAD + LAB + "tests:\n  - {name: t, method: throughput, trial: {duration: 1}}\n",
        [(6, 53, "1 has no unit", '"200 ms"')],
    ),
    "a unit that does not exist": (
        HEAD + LAB + "tests:\n  - {name: t, method: throughput, trial: {duration: 5 parsecs}}\n",
        [(6, 53, "unknown unit 'parsecs'", '"1 s"')],
    ),
    "a share above one": (
        HEAD + LAB + "tests:\n  - {name: t, method: throughput, search: {goals: {PDR: 200 %}}}\n",
        [(6, 57, "exceeds 1 (100 %)", '"0.5 %"')],
    ),
    "a rate without its unit": (
        HEAD + "lab: {kind: veth}\ndut: {kind: policer, rate: 200000}\n" + TESTS,
        [(4, 28, "200000 has no unit", '"200 kpps"')],
    ),
    "no tests": (
        HEAD + LAB + "tests: []\n",
        [(5, 8, "`tests` is empty", "at least 1")],
    ),
    "a frame that Ethernet does not allow": (
        HEAD + LAB + "tests:\n  - {name: t, method: throughput, frame_bytes: [60, 128]}\n",
        [(6, 49, "`tests[0].frame_bytes[0]` is `60`", "at least 64")],
    ),
    "a frame too small for IPv6, UDP and the signature": (
        HEAD + LAB + "traffic: {ip: 6}\ntests:\n  - {name: t, method: throughput, frame_bytes: [64, 128]}\n",
        [(7, 49, "the minimum is 82 bytes", "82 bytes or more")],
    ),
    "default frame sizes too small for IPv6": (
        HEAD + LAB + "traffic: {ip: 6}\n" + TESTS,
        [(7, 5, "64 bytes are too few for IPv6", "82 bytes or more")],
    ),
    "a frame larger than the lab's MTU": (
        HEAD + LAB + "tests:\n  - {name: t, method: throughput, frame_bytes: [1519]}\n",
        [(6, 49, "the maximum is 1518 bytes", "`mtu`")],
    ),
    "two tests of one name": (
        HEAD + LAB + "tests:\n  - {name: t, method: throughput}\n  - {name: t, method: throughput}\n",
        [(7, 12, "there are two tests named `t`", "its own name")],
    ),
    "a test with the name of the calibration": (
        HEAD + LAB + "tests:\n  - {name: ceiling, method: throughput}\n",
        [(6, 12, "`ceiling` is reserved for the tester's own trials", "another name")],
    ),
    "a test that builds on one below it": (
        HEAD + LAB + "tests:\n  - {name: l, method: latency, at: t}\n  - {name: t, method: throughput}\n",
        [(6, 36, "`t` is not above this one", "move it above")],
    ),
    "a test that builds on none": (
        HEAD + LAB + TESTS + "  - {name: l, method: latency, at: tt}\n",
        [(7, 36, "`tt` does not exist", "did you mean `t`?")],
    ),
    "a latency at a frame size that was not measured": (
        HEAD
        + LAB
        + "tests:\n  - {name: t, method: throughput, frame_bytes: [64]}\n"
        + "  - {name: l, method: latency, at: t, frame_bytes: [128]}\n",
        [(7, 52, "does not measure frames of 128 bytes", "add them")],
    ),
    "a latency at a rate that nobody looks for": (
        HEAD + LAB + TESTS + "  - {name: l, method: latency, at: t, of: PDX}\n",
        [(7, 43, "finds no rate named `PDX`", "did you mean `PDR`?")],
    ),
    "a search that does not exist": (
        HEAD + LAB + "tests:\n  - {name: t, method: throughput, search: {kind: step-dwn}}\n",
        [(6, 50, "unknown search `step-dwn`", "did you mean `step-down`?")],
    ),
    "a search whose kind is no text": (
        HEAD + LAB + "tests:\n  - {name: t, method: throughput, search: {kind: {0: mlr}}}\n",
        [(6, 50, "`tests[0].search.kind` must be text", "write text")],
    ),
    "a key that the search does not have": (
        HEAD + LAB + "tests:\n  - {name: t, method: throughput, search: {kind: step-down, stepp: 5 %}}\n",
        [(6, 61, "unknown key `tests[0].search.stepp`", "did you mean `step`?")],
    ),
    "a key of another search": (
        HEAD + LAB + "tests:\n  - {name: t, method: throughput, search: {start: 50 %}}\n",
        [(6, 44, "unknown key `tests[0].search.start`", None)],
    ),
    "a step of nothing": (
        HEAD + LAB + "tests:\n  - {name: t, method: throughput, search: {kind: step-down, step: 0 %}}\n",
        [(6, 67, "more than 0", None)],
    ),
    "a trial of no length": (
        HEAD + LAB + "tests:\n  - {name: t, method: throughput, trial: {duration: 0 s}}\n",
        [(6, 53, "a trial of 0 s", "60 s")],
    ),
    "a trial of less than a millisecond": (
        HEAD + LAB + "tests:\n  - {name: t, method: throughput, trial: {duration: 999 us}}\n",
        [(6, 53, "a trial of 0.000999 s", "1 ms to 1 day")],
    ),
    "times longer than a day": (
        HEAD + LAB + "tests:\n  - {name: t, method: latency, at: t, trial: {settle: 25 h, drain: 25 h}}\n",
        [(6, 55, "longer than a day", "at most 1 day"), (6, 68, "longer than a day", "at most 1 day")],
    ),
    "a simulated DUT that forwards nothing is written otherwise": (
        HEAD + "lab: {kind: simulated, capacity: 0 pps}\ndut: simulated\n" + TESTS,
        [(3, 34, "must be at least 0.001", None)],
    ),
    "faults that are more than every frame": (
        HEAD + "lab: {kind: simulated, loss: 60 %, reorder: 60 %}\ndut: simulated\n" + TESTS,
        [(3, 6, "a frame has one fault", None)],
    ),
    "a delay for which a frame's age is not read": (
        HEAD + "lab: {kind: simulated, delay: 1100 s}\ndut: simulated\n" + TESTS,
        [(3, 6, "latencies are read up to 1000 s", None)],
    ),
    "another DUT in the simulated lab": (
        HEAD + "lab: simulated\ndut: {kind: policer}\n" + TESTS,
        [(4, 13, "a DUT of the kind `policer` does not work", "`dut: {kind: simulated}`")],
    ),
    "the simulated DUT in another lab": (
        HEAD + "lab: veth\ndut: simulated\n" + TESTS,
        [(4, 6, "in the simulated lab only", "`lab: {kind: simulated}`")],
    ),
    "a DUT of the kernel in the lab of shared memory": (
        HEAD + "lab: memif\ndut: {kind: policer}\n" + TESTS,
        [(4, 13, "a DUT of the kind `policer` does not work in the memif lab", "testpmd")],
    ),
    "a DUT in user space between kernel interfaces": (
        HEAD + "lab: veth\ndut: {kind: testpmd}\n" + TESTS,
        [(4, 13, "the testpmd DUT works in the memif lab, or on cards", "`lab: {kind: memif}`")],
    ),
    "zero copy of ordinary pages": (
        HEAD + "lab: {kind: memif, zero_copy: true}\ndut: testpmd\n" + TESTS,
        [(3, 31, "in huge pages", "`tester: {huge_pages: true}`")],
    ),
    "a ring of an odd length": (
        HEAD + "lab: {kind: memif, ring_frames: 3000}\ndut: testpmd\n" + TESTS,
        [(3, 33, "a power of two", None)],
    ),
    "a forward mode that testpmd has not": (
        HEAD + "lab: memif\ndut: {kind: testpmd, forward_mode: macswitch}\n" + TESTS,
        [(4, 36, "`macswitch`", None)],
    ),
    "a priority without a real-time policy": (
        HEAD + "lab: memif\ndut: {kind: testpmd, scheduling: {priority: 5}}\n" + TESTS,
        [(4, 34, "has no priority", None)],
    ),
    "an interface as two ports": (
        HEAD + HOSTS + "ports: {t0: {host: tester, device: e0}, t1: {host: tester, device: e0}}\n" + EXTERNAL,
        [(4, 68, "`t0` and `t1` are both the interface `e0`", "of its own")],
    ),
    "a card as two ports": (
        HEAD
        + HOSTS
        + "ports: {t0: {host: tester, address: 0000:0A:00.0}, t1: {host: tester, address: 0000:0a:00.0}}\n"
        + EXTERNAL,
        [(4, 80, "both the card at `0000:0a:00.0`", "of its own")],
    ),
    "a virtual device as two ports": (
        HEAD + HOSTS + "ports: {t0: {host: tester, vdev: net_null0}, t1: {host: tester, vdev: net_null0}}\n" + EXTERNAL,
        [(4, 71, "both the virtual device `net_null0`", "of its own")],
    ),
    "an interface as a port and under a virtual device": (
        HEAD
        + HOSTS
        + 'ports: {t0: {host: tester, device: e0}, t1: {host: tester, vdev: "net_af_packet0,iface=e0"}}\n'
        + EXTERNAL,
        [(4, 66, "both the interface `e0`", "of its own")],
    ),
    "an interface of this machine as a port of the tester and of a local DUT": (
        HEAD
        + "hosts: {tester: {kind: local}, dut: {kind: local}}\n"
        + "ports: {t0: {host: tester, device: e0}, d0: {host: dut, device: e0}}\nlinks: [t0 <-> d0]\n"
        + EXTERNAL,
        [(4, 65, "both the interface `e0`", "of its own")],
    ),
    "names that no interface has": (
        HEAD
        + HOSTS
        + 'ports: {t0: {host: tester, device: sixteen-letters0}, t1: {host: tester, device: "a b"},'
        + " t2: {host: tester, device: ../e0}}\n"
        + EXTERNAL,
        [
            (4, 36, "`sixteen-letters0` cannot be the name", "1 to 15 characters"),
            (4, 82, "`a b` cannot be the name", "spaces"),
            (4, 117, "`../e0` cannot be the name", "without `/`"),
        ],
    ),
    "a lab and links": (
        HEAD + LAB + "links: [a <-> b]\n" + TESTS,
        [(5, 1, "`links` has no effect", "remove `links`")],
    ),
    "neither a lab nor hosts": (
        HEAD + "dut: {kind: external}\n" + TESTS,
        [(1, 1, "neither a lab nor hosts", "`lab: {kind: veth}`")],
    ),
    "a link to a port that does not exist": (
        HEAD
        + "hosts: {tester: {kind: local}, dut: {kind: netns, namespace: n}}\n"
        + "ports: {t0: {host: tester, device: e0}, d0: {host: dut, device: e1}}\n"
        + "links: [t0 <-> d9]\ndut: {kind: bridge}\n"
        + TESTS,
        [
            (4, 41, "no link leads to the port `d0`", "links"),
            (5, 9, "there is no port `d9`", "known ports: `t0`, `d0`"),
        ],
    ),
    "a link that is none": (
        HEAD + "links: [t0 - d0]\ndut: {kind: external}\n" + TESTS,
        [(3, 9, "`t0 - d0` is not a link", None)],
    ),
    "a port with two ways to reach it": (
        HEAD
        + "hosts: {tester: {kind: local}}\n"
        + "ports: {t0: {host: tester, device: e0, address: 0000:03:00.0}}\ndut: {kind: external}\n"
        + TESTS,
        [(4, 9, "exactly one of", "write `device: ")],
    ),
    "an unknown threshold": (
        HEAD + LAB + "thresholds: {longest_gap: 3}\n" + TESTS,
        [(5, 14, "unknown key `thresholds.longest_gap`", "did you mean `longest_gap_ms`?")],
    ),
    "a list at the top": ("- a\n", [(1, 1, "starts with a list", "keys and values")]),
    "one word": ("hello\n", [(1, 1, "starts with `hello`", "keys and values")]),
    "nothing at all": ("", [(1, 1, "is empty", "nicbench init")]),
    "only comments": ("# nothing\n", [(1, 1, "is empty", "nicbench init")]),
    "a tab": ("a:\n\tb: 1\n", [(2, 1, "a tab is used", "spaces")]),
    "an open bracket": ("a: [1,\n", [(2, 1, "never closed", "close it")]),
    "an open quote": ("a: 'x\n", [(2, 1, "never closed", "close the quote")]),
    "a colon in plain text": ("a: b: c\n", [(1, 5, "a `:` is not expected here", "quotes")]),
    "a merge key": ("<<: {a: 1}\n", [(1, 1, "merge keys", "anchor")]),
    "two documents": ("a: 1\n---\nb: 2\n", [(2, 1, "second document", "one document")]),
    "YAML 1.1": ("%YAML 1.1\n---\na: 1\n", [(2, 1, "YAML 1.1 is asked for", "1.2")]),
    "an alias without its anchor": ("a: *b\n", [(1, 4, "has no anchor", "`&b`")]),
    "a key that is a list": ("{[a]: 1}\n", [(1, 2, "a key must be a word", "quotes")]),
    "a frame too large for AF_XDP": (
        HEAD
        + "hosts: {tester: {kind: local}, d: {kind: netns, namespace: d}}\n"
        + "ports: {t0: {host: tester, device: e0}, d0: {host: d, device: e1}}\nlinks: [t0 <-> d0]\n"
        + "dut: {kind: external}\ntester: {driver: net_af_xdp}\n"
        + "tests:\n  - {name: t, method: throughput, frame_bytes: [9018]}\n",
        [(9, 49, "9018 bytes are too many for AF_XDP at port `t0`", "net_af_packet")],
    ),
    "several problems are all told, in the order of the file": (
        "nicbench: 1\ntitle: 7\nsed: 1\n"
        + LAB
        + "tests:\n  - {name: t, method: throughput, trial: {duration: 1, drain: x}}\n",
        [
            (2, 8, "must be text", "write it in quotes"),
            (3, 1, "unknown key `sed`", "`seed`"),
            (7, 53, "1 has no unit", "write"),
            (7, 63, "'x' is not a duration", "write"),
        ],
    ),
}


@pytest.mark.parametrize(("text", "expected"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_file_is_refused_with_place_message_and_next_step(text: str, expected: list[Expected]) -> None:
    assert_refused(text, *expected)
