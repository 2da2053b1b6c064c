"""The plan of the synthetic run: a kernel forwarder behind a 10 Gb/s veth."""

from __future__ import annotations

from nicbench.core.plan import Plan, PlannedTest, ThresholdRow

SIZES = (64, 128, 256, 512, 1024, 1280, 1518)
LINK_BITS_PER_S = 10e9


def synthetic_plan(run_id: str, title: str) -> Plan:
    """What was resolved before the first trial."""
    search = {"kind": "mlr", "goals": {"NDR": 0.0, "PDR": 0.005}, "precision": 0.01, "maximum_trials": 8}
    times = {"duration": 1.0, "drain": 0.2, "settle": 0.1}
    return Plan(
        run_id=run_id,
        title=title,
        nicbench_version="0.1.0",
        seed=1,
        command=("nicbench", "run", "examples/kernel-forward.yaml"),
        lab={"kind": "veth", "link_bits_per_s": 10e9, "mtu_bytes": 1500},
        dut={"kind": "kernel-forward"},
        dut_disclosure={
            "kind": "kernel-forward",
            "name": "kernel IP forwarding",
            "forwarding": True,
            "sysctl": {"net.ipv4.ip_forward": 1, "net.core.netdev_max_backlog": 1000},
            "receive_steering": {"rps_cpus": "2", "device": "d0"},
            "commands": ["ip -n nb-dut route add 198.19.0.0/16 dev d1", "sysctl -w net.ipv4.ip_forward=1"],
        },
        cores={"worker": 0, "dut": [1], "housekeeping": [1], "shared": True},
        link_bits_per_s=LINK_BITS_PER_S,
        link_is_nominal=True,
        statements=(
            "A lab of veth pairs measures this machine's kernel and processor, not a network card.",
            "The line rate of a veth is nominal: 10 Gb/s is what it claims, not what it can carry.",
        ),
        facts={"veth_peer_queues": 1, "offloads_off": ["gro", "gso", "tso", "tx-checksumming"]},
        tester={
            "engine": "nicbench-packets 0.1.0",
            "dpdk": "DPDK 22.11.4",
            "cpu_baseline": "x86-64",
            "clock": {"source": "tsc", "hz": 2.596e9, "resolution_ns": 1},
            "eal_arguments": [
                "--no-pci",
                "--no-huge",
                "-m",
                "512",
                "--lcores",
                "0@0",
                "--file-prefix",
                "nb-7f",
                "--vdev",
                "net_af_xdp0,iface=t0",
                "--vdev",
                "net_af_xdp1,iface=t1",
            ],
            "ports": [
                {
                    "name": "t0",
                    "driver": "net_af_xdp",
                    "mac": "02:00:00:00:00:01",
                    "transmit_descriptors": 2048,
                    "receive_descriptors": 8192,
                    "send_buffer_bytes": 134217728,
                    "max_frame_bytes": 1518,
                },
                {
                    "name": "t1",
                    "driver": "net_af_xdp",
                    "mac": "02:00:00:00:00:02",
                    "transmit_descriptors": 2048,
                    "receive_descriptors": 8192,
                    "send_buffer_bytes": 134217728,
                    "max_frame_bytes": 1518,
                },
            ],
        },
        traffic={"ip": 4, "flows": 256, "bidirectional": False},
        addressing=(
            {"transmit": 0, "receive": 1, "source_address": "198.18.0.2", "destination_address": "198.19.0.2"},
        ),
        tests=(
            PlannedTest(
                name="throughput",
                method="throughput",
                description="NDR and PDR of seven frame sizes",
                options={"frame_bytes": SIZES, "search": search, "trial": times},
                points=7,
                estimate_s=78.4,
            ),
            PlannedTest(
                name="latency",
                method="latency",
                description="Latency at the NDR and at half of it",
                options={"at": "throughput", "of": "NDR", "loads": [100.0, 50.0], "trial": times},
                points=14,
                estimate_s=19.6,
            ),
        ),
        thresholds=(
            ThresholdRow(
                name="longest_gap_ms",
                value=20.0,
                unit="ms",
                why="A receive ring of 8192 frames overflows after it.",
            ),
            ThresholdRow(
                name="total_gap_share",
                value=0.05,
                unit="share of the transmission",
                why="So much of the time nobody sent or received.",
            ),
            ThresholdRow(
                name="unsent_share",
                value=0.001,
                unit="share of the intended frames",
                why="The load was not what it claims to be.",
            ),
        ),
        deviations=(
            "trial duration 1 s, RFC 2544 section 24 asks for 60 s",
            "drain 0.2 s, RFC 2544 section 23 asks for 2 s",
        ),
    )
