"""A described testbed of shared memory, for command lines and addressing; nothing is made."""

from __future__ import annotations

from nicbench.hosts.base import Host
from nicbench.testbed.cores import CoreMap
from nicbench.testbed.labs.base import DutPort, Testbed, TesterPort
from nicbench.testbed.labs.memif import MemifOptions, client_vdev, server_vdev
from nicbench.testbed.labs.veth import mac

FOLDER = "/run/nicbench-memif-test"


def memif_testbed(host: Host, options: MemifOptions | None = None, cores: CoreMap | None = None) -> Testbed:
    options = options or MemifOptions()
    return Testbed(
        tester=host,
        dut=host,
        tester_ports=tuple(
            TesterPort(f"t{port}", {"kind": "vdev", "vdev": client_vdev(options, FOLDER, port)}, mac=mac(0, port))
            for port in range(options.ports)
        ),
        dut_ports=tuple(
            DutPort(f"d{port}", mac=mac(1, port), vdev=server_vdev(options, FOLDER, port))
            for port in range(options.ports)
        ),
        cores=cores or CoreMap(worker=0, dut=(1,), housekeeping=(), shared=False),
        link_bits_per_s=100e9,
        link_is_nominal=True,
        same_port=options.topology == "same-port",
    )
