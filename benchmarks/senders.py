"""The two senders that are compared: each sends as fast as its port takes frames, from the same CPU."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from core_watch import WAIT_S, CoreWatch
from machine import preferred
from nicbench.engine.binaries import find_binary
from veth_pair import VethPair, compile_bpf

# A socket's queue stays taken for a moment after its process has ended.
BIND_ATTEMPTS = 10
BIND_PAUSE_S = 0.3
# Frames at a call: as testpmd has them, and as xdp-trafficgen.
BURST, LIVE_BURST = 32, 64
# Another process on the sender's CPU spoils a sample; it says nothing of the sender.
DISTURBED_SHARE = 0.02
ATTEMPTS_AT_QUIET = 3


class Sender(Protocol):
    """Sends while the context is entered, which gives the number of its process."""

    name: ClassVar[str]

    def sending(self, pair: VethPair, frame_bytes: int, seconds: float) -> AbstractContextManager[int]: ...


class RefusedError(Exception):
    """The sender did not start; its message says why."""


class Testpmd:
    """DPDK's own generator: one prepared packet, sent again and again, nothing written into it."""

    name: ClassVar[str] = "dpdk-testpmd txonly"

    def __init__(self, worker_cpu: int, main_cpu: int) -> None:
        self._lcores = f"0@{main_cpu},1@{worker_cpu}"

    @contextmanager
    def sending(self, pair: VethPair, frame_bytes: int, seconds: float) -> Iterator[int]:
        """``seconds`` is not needed: it sends until it is stopped."""
        command = pair.inside(
            *("dpdk-testpmd", "--no-pci", "--no-huge", "--no-telemetry", "-m", "512", "--lcores", self._lcores),
            *(f"--file-prefix=nicbench-bench-{os.getpid()}", f"--vdev=net_af_xdp0,iface={pair.sender_device}"),
            *("--", "--forward-mode=txonly", f"--txpkts={frame_bytes - 4}", "--total-num-mbufs=16384"),
            *("--txd=2048", "--rxd=2048", "--burst=32", "--stats-period", "1"),
        )
        process = subprocess.Popen(
            preferred(*command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
        )  # fmt: skip
        try:
            if not frames_arrive(pair, process):
                process.kill()
                output = process.stdout.read() if process.stdout else ""
                raise RefusedError("\n".join(output.splitlines()[-5:]))
            yield process.pid
        finally:
            process.terminate()
            process.communicate()


class Trafgen:
    """netsniff-ng's generator, on a packet socket's ring and the first CPU: one prepared packet, again and again."""

    name: ClassVar[str] = "trafgen"

    @contextmanager
    def sending(self, pair: VethPair, frame_bytes: int, seconds: float) -> Iterator[int]:
        """``seconds`` is not needed: it sends until it is stopped."""
        mac = ", ".join(f"0x{byte}" for address in (pair.sink_mac, pair.sender_mac) for byte in address.split(":"))
        packet = f"{{ {mac}, 0x88, 0xb5, fill(0x00, {frame_bytes - 4 - 14}) }}"
        with tempfile.NamedTemporaryFile("w", suffix=".cfg") as file:
            file.write(packet)
            file.flush()
            command = pair.inside(
                *("trafgen", "--conf", file.name, "--out", pair.sender_device),
                *("--cpus", "1", "--no-sock-mem", "--qdisc-path"),
            )
            # It sends from a child, which outlives it unless the whole group is ended.
            process = subprocess.Popen(
                preferred(*command), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                text=True, start_new_session=True,
            )  # fmt: skip
            try:
                if not frames_arrive(pair, process):
                    raise RefusedError("no frame of trafgen arrives; is it installed (package netsniff-ng)?")
                yield process.pid
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


class Nicbench:
    """Our generator by its protocol: every packet carries its flow, sequence, time and check."""

    name: ClassVar[str] = "nicbench-packets"

    def __init__(self, worker_cpu: int, driver: str = "af_xdp") -> None:
        self._worker_cpu = worker_cpu
        self._driver = driver
        self._burst = LIVE_BURST if driver == "xdp" else BURST
        self._binary = str(find_binary("nicbench-packets"))

    @contextmanager
    def sending(self, pair: VethPair, frame_bytes: int, seconds: float) -> Iterator[int]:
        """Sends for ``seconds``, which must cover the time of measuring."""
        process = subprocess.Popen(
            pair.inside(self._binary),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1,
        )  # fmt: skip
        try:
            request(process, "hello", protocol="1.0")
            request(
                process, "configure", run_key="0123456789abcdef", clock="tsc", worker_cpu=self._worker_cpu,
                watch_cpus=[], huge_pages=False, memory_mib=512, eal=[], ports=[self._port(pair)],
            )  # fmt: skip
            streams = [self._stream(pair, frame_bytes)]
            request(process, "start", trial=1, duration_s=seconds, burst=self._burst, streams=streams)
            if not frames_arrive(pair, process):
                raise RefusedError("it says that it sends, but no frame arrives")
            yield process.pid
        finally:
            # A killed one leaves AF_XDP's program on the interface, where the next sender cannot attach its own.
            process.terminate()
            process.communicate()

    def _port(self, pair: VethPair) -> dict[str, Any]:
        own = {"queue": 0, "xdp_program": None} if self._driver == "af_xdp" else {}
        # The kernel's own send buffer, as testpmd has it.
        return {
            "name": "bench0", "kind": self._driver, "device": pair.sender_device, **own,
            "transmit_descriptors": 2048, "receive_descriptors": 2048, "lossless": False, "send_buffer_bytes": None,
        }  # fmt: skip

    def _stream(self, pair: VethPair, frame_bytes: int) -> dict[str, Any]:
        return {
            "name": "0->sink", "transmit_port": 0, "receive_port": 0, "frame_bytes": frame_bytes,
            "rate_frames_per_s": 0, "flows": 256, "source_mac": pair.sender_mac, "destination_mac": pair.sink_mac,
            "ip": 4, "source_address": "198.18.0.2", "destination_address": "198.19.0.2", "source_address_count": 1,
            "destination_address_count": 1, "source_port": 1024, "destination_port": 2000, "source_port_count": 256,
            "destination_port_count": 1, "hop_limit": 64,
        }  # fmt: skip


class XdpTrafficgen:
    """xdp-tools' generator by XDP live frames: one prepared packet of 64 bytes without FCS, on the first CPU."""

    name: ClassVar[str] = "xdp-trafficgen"

    @contextmanager
    def sending(self, pair: VethPair, frame_bytes: int, seconds: float) -> Iterator[int]:
        """``seconds`` is not needed: it sends until it is stopped."""
        macs = ("--dst-mac", pair.sink_mac, "--src-mac", pair.sender_mac)
        command = pair.inside(self.name, "udp", "--threads", "1", *macs, pair.sender_device)
        process = subprocess.Popen(
            preferred(*command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, start_new_session=True,
        )  # fmt: skip
        try:
            if not frames_arrive(pair, process):
                process.kill()
                output = process.stdout.read() if process.stdout else ""
                raise RefusedError("\n".join(output.splitlines()[-3:]) or "no frame arrives")
            yield process.pid
        finally:
            process.kill()
            process.communicate()


def works(sender: Sender, pair: VethPair) -> bool:
    """Whether a peer sends here; a line says why not."""
    try:
        with sender.sending(pair, 64, 0.1):
            return True
    except RefusedError as error:
        print(f"left out: the rows beside {sender.name}, which does not send here ({error})", flush=True)
        return False


class LiveFrames:
    """A plain loop of our own over XDP live frames: ``bare`` writes nothing into a frame, ``same_bytes`` all of it."""

    name: ClassVar[str] = "live frames (our own loop)"

    def __init__(self, worker_cpu: int, program: str) -> None:
        self._worker_cpu = worker_cpu
        self._program = program

    @contextmanager
    def sending(self, pair: VethPair, frame_bytes: int, seconds: float) -> Iterator[int]:
        """Sends for a little more than ``seconds``."""
        if frame_bytes != 64:
            raise RefusedError("the plain loop makes frames of 64 bytes")
        here = Path(__file__).parent
        with tempfile.TemporaryDirectory() as folder:
            program, command = f"{folder}/live_frames.o", f"{folder}/live_frames"
            compile_bpf(here / "live_frames.bpf.c", Path(program))
            subprocess.run(["gcc", "-O2", str(here / "live_frames.c"), "-o", command, "-lbpf"], check=True)
            place = (pair.sender_device, str(self._worker_cpu), str(LIVE_BURST))
            arguments = [program, self._program, *place, f"{seconds:.1f}"]
            process = subprocess.Popen(
                preferred(*pair.inside(command, *arguments)), stderr=subprocess.PIPE, text=True, start_new_session=True
            )
            try:
                if not frames_arrive(pair, process):
                    raise RefusedError("no frame arrives")
                yield process.pid
            finally:
                process.kill()
                process.communicate()


def request(process: subprocess.Popen[str], command: str, **fields: Any) -> dict[str, Any]:
    """One request and its reply; events between them are passed over."""
    if process.stdin is None or process.stdout is None:
        raise RefusedError("the engine has no pipes")
    process.stdin.write(json.dumps({"id": 1, "command": command, **fields}) + "\n")
    for line in process.stdout:
        message: dict[str, Any] = json.loads(line)
        if message.get("id") == 1:
            if not message["ok"]:
                raise RefusedError(message["error"]["message"])
            return message
    errors = process.stderr.read() if process.stderr else ""
    raise RefusedError(f"the engine ended during {command}: {errors.strip()}")


def frames_arrive(pair: VethPair, process: subprocess.Popen[str], within_s: float = 10.0) -> bool:
    """Waits until the sink's counter runs; false where the sender ends first or nothing comes."""
    before, end = pair.frames_received(), time.monotonic() + within_s
    while time.monotonic() < end and process.poll() is None:
        if pair.frames_received() > before + 1000:
            return True
        time.sleep(0.02)
    return False


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement of a sender. ``waited_share``: of the time, its busiest thread was ready and had no CPU."""

    frames_per_s: float
    waited_share: float


def measure(
    sender: Sender, pair: VethPair, frame_bytes: int, seconds: float, settle_s: float, watch: CoreWatch
) -> Sample:
    """The sender's rate at the sink; repeated where somebody else had its CPU, whatever the rate was."""
    samples: list[Sample] = []
    while len(samples) < ATTEMPTS_AT_QUIET and (not samples or samples[-1].waited_share > DISTURBED_SHARE):
        samples.append(measure_once(sender, pair, frame_bytes, seconds, settle_s, watch))
    return min(samples, key=lambda sample: sample.waited_share)


def measure_once(
    sender: Sender, pair: VethPair, frame_bytes: int, seconds: float, settle_s: float, watch: CoreWatch
) -> Sample:
    """One sample of ``seconds``, after ``settle_s`` of sending; tried again where a queue is still taken."""
    for attempt in range(1, BIND_ATTEMPTS + 1):
        try:
            with sender.sending(pair, frame_bytes, seconds + settle_s + WAIT_S + 1.0) as process:
                time.sleep(settle_s)
                with watch.sample():
                    frames, waited_s, start = pair.frames_received(), cpu_wait_s(process), time.monotonic()
                    time.sleep(seconds)
                    elapsed_s = time.monotonic() - start
                    return Sample(
                        frames_per_s=(pair.frames_received() - frames) / elapsed_s,
                        waited_share=(cpu_wait_s(process) - waited_s) / elapsed_s,
                    )
        except RefusedError as error:
            if attempt == BIND_ATTEMPTS:
                raise RuntimeError(f"{sender.name} does not send: {error}") from error
            time.sleep(BIND_PAUSE_S)
    raise AssertionError("the last attempt returns or raises")


def cpu_wait_s(process: int) -> float:
    """How long the process's busiest thread has been ready to run without a CPU (second field of schedstat)."""
    threads = (path.read_text().split() for path in Path(f"/proc/{process}/task").glob("*/schedstat"))
    _ran_ns, waited_ns = max((int(fields[0]), int(fields[1])) for fields in threads)
    return waited_ns / 1e9
