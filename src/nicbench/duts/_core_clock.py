"""The clock of the core that a DUT forwards on: cycles of the time-stamp counter are not those of the core.

The engine has the probe (a timed chain of dependent multiplications); a second one is started on that core for a trial
of a millisecond on simulated ports, between the trials of the DUT, which polls in vain meanwhile.
"""

from __future__ import annotations

from nicbench.engine.client import EngineClient
from nicbench.engine.deploy import deployed
from nicbench.errors import NicbenchError
from nicbench.hosts.base import Host

_TRIAL_S = 0.001
_SIMULATED = {"name": "probe", "kind": "simulated", "link_bits_per_s": 1e9, "sends_to": 0, "dut": {}}
_STREAM = {
    "name": "probe",
    "transmit_port": 0,
    "receive_port": 0,
    "frame_bytes": 64,
    "rate_frames_per_s": 1000.0,
    "source_mac": "02:00:00:00:00:01",
    "destination_mac": "02:00:00:00:00:02",
    "ip": 4,
    "source_address": "198.18.0.1",
    "destination_address": "198.19.0.1",
}


async def core_clock_hz(host: Host, cpu: int) -> tuple[float, ...]:
    """Probed now on the host, twice; empty where it cannot be."""
    try:
        binary = await deployed(host, "nicbench-packets")
        client = EngineClient(await host.start((binary,)), "clock probe")
    except NicbenchError:
        return ()
    try:
        await client.greet()
        await client.request(
            "configure", run_key="0" * 16, clock="tsc", worker_cpu=cpu, watch_cpus=[], huge_pages=False,
            memory_mib=64, eal=[], ports=[_SIMULATED],
        )  # fmt: skip
        await client.request("start", trial=1, duration_s=_TRIAL_S, streams=[_STREAM])
        await client.wait_for("transmitted", within_s=5.0, trial=1)
        reading = await client.request("drain", duration_s=0.0)
        return tuple(reading["health"].get("core_clock_hz") or ())
    except (NicbenchError, KeyError):
        return ()
    finally:
        await client.close()
