"""A lab of veth pairs (`veth`): tester and DUT are network namespaces of one machine and exchange real frames.

Neither namespace has a default route or another link, so that no frame can leave. This measures the machine, not a
card.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.described import Label, Unit
from nicbench.core.errors import NotReadyError, UsageError
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.testbed.cores import CoreMap, make_core_map
from nicbench.testbed.interfaces import namespaces as network
from nicbench.testbed.labs.base import DutPort, FrameLab, Testbed, TesterPort, machine_words
from nicbench.tuning import bpf
from nicbench.tuning.changes import Changes
from nicbench.tuning.preparation import keep_awake, prefer_softirq_work
from nicbench.tuning.xdp import program_in_place

# Names and addresses in a lab of veth pairs. Pure.


NAMESPACE_PREFIX = "nb-"


def namespace_name(run_id: str, role: str) -> str:
    """A short name that is unique to the run, as in ``nb-3fa2c1-tester``."""
    return f"{NAMESPACE_PREFIX}{hashlib.sha256(run_id.encode()).hexdigest()[:6]}-{role}"


def mac(group: int, member: int) -> str:
    """A locally administered MAC address (IEEE 802c, bit 1 of the first byte), the same in every run.

    A group is a side of pairs (0 is the tester), or a port of a server with its clients: these differ in the last byte,
    which a bond's ``layer2`` policy hashes.
    """
    return f"02:6e:62:00:{group:02x}:{member:02x}"


def dut_ipv4(pair: int) -> str:
    """The DUT's address: node 1 of a /24 of 198.18.0.0/16 at the first port of a pair, of 198.19.0.0/16 at the second.

    RFC 2544 C.2.2.1 counts the networks of the pairs from 198.18.1.0 on, nicbench from 198.18.0.0.
    """
    high, low = _network(pair)
    return f"198.{18 + high}.{low}.1/24"


def dut_ipv6(pair: int) -> str:
    """The DUT's IPv6 address in 2001:2::/48 (RFC 5180 section 8), which is halved as the IPv4 range is."""
    high, low = _network(pair)
    return f"2001:2:0:{0x8000 * high + low:x}::1/64"


def _network(pair: int) -> tuple[int, int]:
    if not 0 <= pair < 128:
        raise UsageError(f"there is no veth pair {pair}", place="lab, ports", next_step="use at most 128")
    return pair % 2, pair // 2


_SINK = "sink"
_CABLE = "cable"


class VethOptions(Frozen):
    """``lab: {kind: veth}``.

    ``rps`` steers received packets (RPS) to a CPU other than the tester's, so that the DUT can be overloaded; without
    it the kernel forwards on the tester's CPU and can never lose frames. ``awake`` keeps the DUT's CPU from sleeping.
    The largest MTU is that of a frame in one page, which XDP needs.
    """

    ports: int = Field(default=2, ge=1, le=8)
    """Pairs of ports: as many ports of the tester and of the DUT."""
    queues: int = Field(default=1, ge=1, le=16)
    """Queues of each end."""
    mtu: Annotated[int, Unit.BYTES] = Field(default=1500, ge=68, le=3498)
    """MTU of each end, in bytes."""
    txqueuelen: Annotated[int, Unit.FRAMES, Label("Transmit queue")] = Field(default=1000, ge=0, le=1_000_000)
    """Length of the transmit queue of each end, in frames."""
    rps: bool = True
    """The DUT works on another CPU than the tester, so that it can be overloaded."""
    awake: bool = True
    """The CPU of the DUT does not enter idle states (`pm_qos_resume_latency_us`), where the kernel has any to choose
    from. `false` measures a CPU that sleeps between frames.
    """


class VethLab(FrameLab):
    """The lab; its links are ``t0 <-> d0``, ``t1 <-> d1``, ..., from the tester's namespace to the DUT's."""

    kind = "veth"
    Options = VethOptions
    options: VethOptions

    async def up(self, changes: Changes, local: Host) -> Testbed:
        await _require_root(local)
        cores = await make_core_map(local, dut_apart=self.options.rps)
        tester = NetnsHost(local, namespace_name(changes.run_id, "tester"), "tester")
        dut = NetnsHost(local, namespace_name(changes.run_id, "dut"), "dut")
        for host in (tester, dut):
            await network.make_namespace(changes, host)
        for pair in range(self.options.ports):
            await self._make_pair(changes, tester, dut, pair)
        steering = await self._steer(dut, cores)
        softirq_nice = {} if cores.shared else await prefer_softirq_work(changes, local, cores.dut)
        awake = await keep_awake(changes, local, cores.dut) if self.options.awake else ()
        for host in (tester, dut):
            await network.wait_for_links(host)
            await network.require_no_way_out(host)
        return Testbed(
            tester=tester,
            dut=dut,
            tester_ports=tuple(_tester_port(pair) for pair in range(self.options.ports)),
            dut_ports=tuple(_dut_port(pair) for pair in range(self.options.ports)),
            cores=cores,
            link_bits_per_s=await network.link_bits_per_s(tester, _tester_device(0)),
            link_is_nominal=True,
            statements=(
                f"A lab of veth pairs measures {machine_words(local)}, its CPU and kernel, not a network card.",
            ),
            facts={
                "lab": self.kind,
                **self.options.model_dump(),
                "namespaces": {"tester": tester.namespace, "dut": dut.namespace},
                "links": [f"{_tester_device(pair)} <-> {_dut_device(pair)}" for pair in range(self.options.ports)],
                "receive_packet_steering": steering,
                "softirq_nice": softirq_nice,
                "cpus_kept_awake": list(awake),
                "offloads_off": list(network.OFFLOADS_OFF),
                "tester_gro": "on",
            },
        )

    async def accept_redirected(self, testbed: Testbed) -> Testbed:
        for port in testbed.dut_ports:
            if testbed.dut is not None and port.device is not None:
                await network.receive_redirected(testbed.dut, port.device)
        return replace(testbed, facts={**testbed.facts, "dut_gro": "on"})

    @asynccontextmanager
    async def without_dut(self, testbed: Testbed, changes: Changes) -> AsyncIterator[bool]:
        if testbed.dut is None:
            yield False
            return
        program = await bpf.deploy_program(testbed.dut, _SINK)
        async with AsyncExitStack() as stack:
            for port in testbed.dut_ports:
                if port.device is not None:
                    await stack.enter_async_context(program_in_place(changes, testbed.dut, port.device, program))
            yield True

    @asynccontextmanager
    async def cable(self, testbed: Testbed, changes: Changes) -> AsyncIterator[bool]:
        devices = [port.device for port in testbed.dut_ports if port.device is not None]
        if testbed.dut is None or len(devices) < 2:
            yield False
            return
        devices = devices[:2]  # the tester's own latency is the same between any two of its ports
        program = await bpf.deploy_program(testbed.dut, _CABLE)
        async with AsyncExitStack() as stack:
            for here, there in (devices, reversed(devices)):
                number = await stack.enter_async_context(program_in_place(changes, testbed.dut, here, program))
                peer = await bpf.map_id(testbed.dut, number, "cable_peer")
                index = await network.interface_index(testbed.dut, there)
                await bpf.write_map(testbed.dut, peer, 0, index, value_bytes=4)
            yield True

    async def _make_pair(self, changes: Changes, tester: NetnsHost, dut: NetnsHost, pair: int) -> None:
        ends = (
            network.End(tester, _tester_device(pair), mac(0, pair)),
            network.End(dut, _dut_device(pair), mac(1, pair)),
        )
        options = self.options
        await network.make_pair(ends, queues=options.queues, mtu=options.mtu, txqueuelen=options.txqueuelen)

    async def _steer(self, dut: NetnsHost, cores: CoreMap) -> dict[str, str]:
        if not self.options.rps or cores.shared:
            return {}
        return {
            path: await network.steer(dut, path, cores.dut)
            for pair in range(self.options.ports)
            for path in network.steering_paths(_dut_device(pair), self.options.queues)
        }


async def _require_root(local: Host) -> None:
    if (await local.run(("id", "-u"))).stdout.strip() != "0":
        raise NotReadyError(
            "a lab of veth pairs needs root, because it makes network namespaces",
            place=local.name,
            next_step="run it with sudo, or try `lab: {kind: simulated}`, which needs no root",
        )


def _tester_device(pair: int) -> str:
    return f"t{pair}"


def _dut_device(pair: int) -> str:
    return f"d{pair}"


def _tester_port(pair: int) -> TesterPort:
    device = _tester_device(pair)
    engine = {"name": device, "kind": "af_xdp", "device": device, "queue": 0, "xdp_program": None}
    return TesterPort(name=device, engine=engine, device=device, mac=mac(0, pair))


def _dut_port(pair: int) -> DutPort:
    device = _dut_device(pair)
    return DutPort(name=device, device=device, mac=mac(1, pair), ipv4=dut_ipv4(pair), ipv6=dut_ipv6(pair))
