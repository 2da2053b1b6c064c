"""The default tester (`packets`): our engine ``nicbench-packets``, which stamps, checks and times every frame."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, model_validator

from nicbench.core.base import Frozen
from nicbench.core.described import Unit
from nicbench.core.errors import BenchFileError
from nicbench.core.quantity import Bytes, Seconds
from nicbench.core.traffic import Ability, KernelDriver, Name
from nicbench.engine.binaries import find_binary
from nicbench.engine.reading import RAW
from nicbench.testbed.labs.base import Testbed, TesterPort
from nicbench.testbed.testers._engine_pair import PairTester
from nicbench.testbed.testers._packet_engine import PacketsOptions, PacketsTester, Recording
from nicbench.testbed.testers.base import Setting, TesterKind

ALWAYS: Final = "net_af_xdp"
"""The driver for kernel interfaces where programs in the kernel cannot make the frames."""

# The protocol's kinds of ports with these drivers; a lab makes its ports for AF_XDP.
_OTHER_KINDS = {"xdp": "xdp", "net_af_packet": "af_packet", "net_pcap": "pcap"}

# Options of one engine that two do not share.
_NOT_WITH_A_PEER = ("workers", "worker_cpu", "capture", "per_flow")

# What programs in the kernel do not do.
_NOT_BY_XDP = {
    Ability.CARRIED_MIX: "the kernel checks the inner checksums of frames of one size",
    Ability.COPIES: "the kernel knows one port for each flow",
    Ability.FILE: "the kernel checks received frames of headers and a pattern",
    Ability.TRAFFIC_CLASSES: "the kernel counts frames, not what is written in their headers",
}


class Capture(Frozen):
    """Received frames of each trial as pcapng: the first ``frames``, or ``around_loss`` before and after each loss."""

    frames: int | None = Field(default=None, ge=1, le=65_536)
    """The first frames of a trial. Give this or `around_loss`."""
    around_loss: int | None = Field(default=None, ge=1, le=4_096)
    """The number of frames before and after each loss."""

    @model_validator(mode="after")
    def _check_exactly_one(self) -> Capture:
        if (self.frames is None) == (self.around_loss is None):
            raise ValueError("give either `frames` (the first of each trial) or `around_loss` (before and after each)")
        return self


class Worker(Frozen):
    """A core of the tester: the ports, by name, at which it sends and receives."""

    cpu: int = Field(ge=0)
    """Its CPU."""
    transmit: tuple[Name, ...] = ()
    """Ports at which it sends."""
    receive: tuple[Name, ...] = ()
    """Ports at which it receives."""

    @model_validator(mode="after")
    def _check_ports(self) -> Self:
        if not self.transmit and not self.receive:
            raise ValueError("a worker that neither transmits nor receives has nothing to do: name its ports")
        return self


class PeerClock(Frozen):
    """An error that the clock of the second machine is given."""

    ahead: Seconds = Field(default=0.0, le=10.0)
    """By how much it is ahead of the machine's own when the run begins."""
    drift_ppm: float = Field(default=0.0, ge=-1000.0, le=1000.0)
    """By how many millionths it gains on the machine's own."""


class EngineOptions(Frozen):
    """How the engine sends and receives. With None nicbench chooses, and the plan says what it chose."""

    driver: KernelDriver | None = None
    """For kernel interfaces. `xdp`: programs in the kernel make and check the frames. `net_af_xdp`: AF_XDP.
    `net_af_packet`: where BPF is not allowed. `net_pcap`: for the kernel's time stamps (slow, one worker). Without it
    the run chooses `xdp` where that can do everything, else `net_af_xdp`, or `net_af_packet` for frames and MTUs of
    own ports that fit no page.
    """
    worker_cpu: int | None = Field(default=None, ge=0)
    """The CPU of the loop that sends and receives; without it nicbench chooses one."""
    workers: tuple[Worker, ...] = ()
    """Several loops, each on a CPU and with queues of its own: `[{cpu: 2, transmit: [t0, t1]}, {cpu: 3, receive: [t0,
    t1]}]`. Every port needs one that sends and one that receives. Flows and schedule are divided among those that send
    at a port. Without it there is one.
    """
    huge_pages: bool = False
    """Memory in huge pages. A run allocates those it lacks and gives them back."""
    memory: Bytes = Field(default=512 * 2**20, ge=64 * 2**20)
    """Memory for DPDK."""
    transmit_descriptors: int = Field(default=2048, ge=64, le=32_768)
    """Length of the transmit ring."""
    receive_descriptors: int = Field(default=8192, ge=64, le=32_768)
    """Length of the receive ring."""
    send_buffer: Bytes = Field(default=64 * 2**20, ge=2**16)
    """Send buffer of an AF_XDP socket."""
    burst: Annotated[int, Unit.FRAMES] = Field(default=32, ge=1, le=64)
    """The largest burst, in frames. AF_XDP in copy mode takes 32 per call before Linux 6.17."""
    catch_up: Seconds = Field(default=0.001, le=1.0)
    """After a pause at most this much traffic is made good; the rest counts as unsent."""
    latency_from: Literal["software", "scheduled"] = "software"
    """`software`: from the time at which the burst was sent. `scheduled`: from the time at which the frame was due."""
    timestamps: Literal["tsc", "card", "kernel"] = "tsc"
    """What stamps received frames: `tsc` (software), `card` or `kernel`."""
    peer: Name | None = None
    """The host, of `hosts`, of the tester's second machine: frames that the one sends the other receives."""
    peer_clock: PeerClock | None = None
    """An error for the clock of `peer`, to see whether it is found again. Leave it out to measure."""
    capture: Capture | None = None
    """Received frames of each measuring trial as pcapng in the run folder's `raw/`, at most 64 MiB a trial."""
    reordering_n: int = Field(default=3, ge=3, le=64)
    """n-reordering (RFC 4737 section 5.3) is counted for each n up to this; above 3 the report lists it."""
    per_flow: Literal["counts", "histograms"] | None = None
    """A line for each flow of each measuring trial, in `raw/`. Histograms take up to 112 KiB of memory for each flow;
    more than 1 GiB is refused.
    """

    @model_validator(mode="after")
    def _check_cpus(self) -> Self:
        cpus = [worker.cpu for worker in self.workers]
        if cpus and self.worker_cpu is not None:
            raise ValueError(
                "`worker_cpu` is the CPU of a single worker that does everything: remove it, or remove `workers`"
            )
        if len(set(cpus)) < len(cpus):
            raise ValueError("each worker polls on a CPU of its own: write a different `cpu` for each")
        return self

    @model_validator(mode="after")
    def _check_peer(self) -> Self:
        if self.peer is None:
            if self.peer_clock is not None:
                raise ValueError("`peer_clock` is of the machine that `peer` names: add `peer`, or remove it")
            return self
        for name in _NOT_WITH_A_PEER:
            if getattr(self, name):
                raise ValueError(f"with `peer` the tester has one worker on each machine: remove `{name}`")
        if self.timestamps != "tsc":
            raise ValueError("with `peer` frames are stamped by `tsc`: remove `timestamps`")
        if self.driver in ("xdp", "net_pcap"):
            raise ValueError("with `peer` the driver is `net_af_xdp` or `net_af_packet`, or a card's: change `driver`")
        return self

    @model_validator(mode="after")
    def _check_receivers(self) -> Self:
        for name in {name for worker in self.workers for name in worker.receive} if self.driver == "xdp" else ():
            receiving = [worker for worker in self.workers if name in worker.receive]
            if len(receiving) > 1 and not all(worker.transmit for worker in receiving):
                raise ValueError(
                    f"with `driver: xdp` a worker that sends nothing must be the only one that receives at port {name}"
                    ": let one worker receive there, or let each of them send too"
                )
        return self


class Packets(TesterKind):
    """One engine process on the ports of a lab or of a bench file."""

    kind = "packets"
    Options = EngineOptions
    options: EngineOptions

    def __init__(self, options: Frozen) -> None:
        super().__init__(options)
        self.driver = self.options.driver or ALWAYS
        self.peer = self.options.peer
        self.leaves_driver = self.options.driver is None and self.peer is None
        if self.driver == "xdp":
            self.cannot = _NOT_BY_XDP
        self.timestamps = self.options.timestamps
        # Programs in the kernel take none.
        self.huge_pages_bytes = self.options.memory if self.options.huge_pages and self.driver != "xdp" else 0

    def statements(self) -> tuple[str, ...]:
        if self.peer is None:
            return ()
        said = (
            f"The tester is on two machines, tester and {self.peer}: a one-way latency between them is no more certain "
            "than the comparison of their clocks."
        )
        error = self.options.peer_clock
        if error is None:
            return (said,)
        wrong = f"{error.ahead * 1e3:g} ms and {error.drift_ppm:g} ppm"
        return (said, f"The clock of {self.peer} was given an error of {wrong}, to see whether it is found again.")

    def make(self, setting: Setting) -> PacketsTester:
        testbed, own = setting.testbed, self.options
        worker = own.worker_cpu if own.worker_cpu is not None else testbed.cores.worker
        neighbours = setting.neighbours
        options = PacketsOptions(
            run_key=run_key(setting.run_id, setting.seed),
            ports=tuple(
                self._port(setting, port, neighbours[index] if index < len(neighbours) else ())
                for index, port in enumerate(testbed.tester_ports)
            ),
            worker_cpu=None if testbed.simulated or own.workers else worker,
            workers=self._workers(setting),
            watch_cpus=setting.dut_cpus,
            virtual_clock=testbed.simulated and not setting.generates,
            huge_pages=own.huge_pages,
            memory_mib=max(1, own.memory // 2**20),
            burst=own.burst,
            catch_up_s=own.catch_up,
            latency_from=own.latency_from,
            reordering_n=own.reordering_n,
            timestamps=own.timestamps,
            traffic=setting.traffic,
            eal=testbed.eal,
            recording=self._recording(setting),
            generates=setting.generates,
            fault=setting.fault,
        )
        binary = str(find_binary("nicbench-packets", setting.engine_folder))
        if testbed.peer is None:
            return PacketsTester(testbed.tester, binary, options)
        if setting.generates:
            raise BenchFileError(
                "flows that begin and end on their own are sent by one machine",
                place=f"{setting.place}, tester",
                next_step="remove `peer` under `tester`",
            )
        far_ports = frozenset(number for number, port in enumerate(testbed.tester_ports) if port.on_peer)
        hosts = (testbed.tester, testbed.peer)
        return PairTester(hosts, binary, options, far_ports, self._far_configure(testbed))

    def _far_configure(self, testbed: Testbed) -> dict[str, Any]:
        """The fields of ``configure`` in which the second engine differs from the first."""
        error = self.options.peer_clock
        told = error and {"offset_ns": round(error.ahead * 1e9), "ppm": error.drift_ppm}
        return {"worker_cpu": testbed.peer_cpu, "watch_cpus": [], **({"clock_error": told} if told else {})}

    def _workers(self, setting: Setting) -> tuple[dict[str, Any], ...]:
        """The workers as in the protocol, with numbers of ports in place of names."""
        numbers = {port.name: number for number, port in enumerate(setting.testbed.tester_ports)}
        for worker in self.options.workers:
            for name in (*worker.transmit, *worker.receive):
                if name not in numbers:
                    raise BenchFileError(
                        f"tester.workers: the tester has no port {name}",
                        place=setting.place,
                        next_step=f"its ports are {', '.join(numbers)}",
                    )
        return tuple(
            {
                "cpu": worker.cpu,
                "transmit": [numbers[name] for name in worker.transmit],
                "receive": [numbers[name] for name in worker.receive],
            }
            for worker in self.options.workers
        )

    def receivers_at(self, port: str) -> int:
        return max(1, sum(port in worker.receive for worker in self.options.workers))

    def _recording(self, setting: Setting) -> Recording | None:
        capture, per_flow = self.options.capture, self.options.per_flow
        if setting.run_folder is None or (capture is None and per_flow is None):
            return None
        return Recording(
            folder=setting.run_folder / RAW,
            capture=capture.model_dump(exclude_none=True) if capture else None,
            per_flow=per_flow,
        )

    def _queues(self, setting: Setting, port: TesterPort) -> dict[str, int]:
        """The queues of each worker at a port of several; BenchFileError where workers cannot share them evenly."""
        each = {}
        senders = max(1, sum(port.name in worker.transmit for worker in self.options.workers))
        for way, workers in (("transmit", senders), ("receive", self.receivers_at(port.name))):
            queues = int(port.engine.get(f"{way}_queues", workers))
            if queues % workers:
                raise BenchFileError(
                    f"tester.workers: {workers} workers {way} at port {port.name}, where the DUT has {queues} queues",
                    place=setting.place,
                    next_step=f"let as many workers {way} there as divide {queues}, or give the DUT other `queues`",
                )
            if f"{way}_queues" in port.engine:
                each[f"{way}_queues"] = queues // workers
        return each

    def _port(self, setting: Setting, port: TesterPort, addresses: tuple[dict[str, Any], ...]) -> dict[str, Any]:
        """The port's object in the protocol with these options; a lab's kernel interface gets the chosen driver."""
        own = self.options
        common = {
            "name": port.name,
            "transmit_descriptors": own.transmit_descriptors,
            "receive_descriptors": own.receive_descriptors,
            "lossless": False,
            "send_buffer_bytes": own.send_buffer,
        }
        engine = {**port.engine, **self._queues(setting, port)}
        if setting.in_a_lab and engine["kind"] == "af_xdp" and self.driver in _OTHER_KINDS:
            engine = {"kind": _OTHER_KINDS[self.driver], "device": engine["device"]}
        return {**common, **engine, **({"addresses": list(addresses)} if addresses else {})}


def run_key(run_id: str, seed: int) -> int:
    """The 64-bit key of signatures: by it frames of other runs are foreign, and those before a resumption are not."""
    return int.from_bytes(hashlib.sha256(f"{run_id}/{seed}".encode()).digest()[:8], "big")
