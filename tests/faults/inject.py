"""The faults themselves: each is done for real, by what somebody else could do on the machine, to one place of a run.

A function takes the scene of the case. What it leaves broken it also tells how to mend (``scene.mending``), so that a
run may be resumed behind it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial, reduce
from pathlib import Path

from nicbench.core.errors import BusyError
from nicbench.engine.binaries import find_program
from nicbench.tuning.lock import HostLock

from .places import Inject, Scene, command, inside, ip, processes


def delete_port(role: str) -> Inject:
    """A card is pulled out, or its driver unbound: the interface is no more, and with a veth its peer."""

    def inject(scene: Scene) -> None:
        port = scene.draw.choice((scene.first_port, scene.last_port))(role)
        ip("-n", scene.namespace(role), "link", "delete", port)

    return inject


def take_down(role: str) -> Inject:
    """The port stays down."""

    def inject(scene: Scene) -> None:
        namespace, port = scene.namespace(role), scene.draw.choice((scene.first_port, scene.last_port))(role)
        ip("-n", namespace, "link", "set", port, "down")
        scene.mending.append(lambda: ip("-n", namespace, "link", "set", port, "up", check=False))

    return inject


def flap(role: str) -> Inject:
    """The port goes down and comes up again after a part of a second."""

    def inject(scene: Scene) -> None:
        namespace, port = scene.namespace(role), scene.draw.choice((scene.first_port, scene.last_port))(role)
        ip("-n", namespace, "link", "set", port, "down")
        scene.wait_s(0.02, 0.15)
        ip("-n", namespace, "link", "set", port, "up")

    return inject


def pull_cable(near: str, far: str) -> Inject:
    """Both ends lose the link, and get it back only when it is mended."""

    def inject(scene: Scene) -> None:
        for role, port in ((near, scene.last_port(near)), (far, scene.last_port(far))):
            namespace = scene.namespace(role)
            ip("-n", namespace, "link", "set", port, "down")
            scene.mending.append(partial(ip, "-n", namespace, "link", "set", port, "up", check=False))

    return inject


def swallow(role: str) -> Inject:
    """The link stays up, and nothing that comes in by the port arrives: a fibre broken one way, a switch that drops."""

    def inject(scene: Scene) -> None:
        hook = f"type filter hook ingress device {scene.first_port(role)} priority -500; policy drop;"
        _load(scene, scene.namespace(role), "netdev", hook)

    return inject


def _load(scene: Scene, namespace: str, family: str, hook: str) -> None:
    """Loads a table of rules, and takes it away when it is mended."""
    inside(namespace, "nft", "-f", "-", given=f"table {family} strange {{ chain drops {{ {hook} }}; }}")

    def mend() -> None:
        with suppress(RuntimeError):
            inside(namespace, "nft", "delete", "table", family, "strange")

    scene.mending.append(mend)


def take_program_off(scene: Scene) -> None:
    """Somebody else's tool takes the XDP program off the port at which frames come back."""
    namespace, port = scene.namespace("tester"), scene.last_port("tester")
    for mode in ("xdpdrv", "xdpgeneric"):
        ip("-n", namespace, "link", "set", "dev", port, mode, "off", check=False)


def forget(what: str) -> Inject:
    """The DUT forgets the address, neighbour or route of a port; ``routes`` also that to its own network."""

    def inject(scene: Scene) -> None:
        more = {"neighbour": ("nud", "permanent"), "route": ("proto", "boot")}.get(what, ())
        what_of = what.removesuffix("s")
        ip("-n", scene.namespace("dut"), what_of, "flush", "dev", scene.last_port("dut"), *more)

    return inject


def stop_forwarding(scene: Scene) -> None:
    """Somebody switches forwarding off in the DUT."""
    scene.inside("dut", "sysctl", "-q", "-w", "net.ipv4.ip_forward=0")


def drop_all_forwarded(scene: Scene) -> None:
    """A firewall is loaded on the DUT."""
    _load(scene, scene.namespace("dut"), "ip", "type filter hook forward priority 0; policy drop;")


MEDDLING = {
    "a firewall's rule": (
        """nft 'table ip strange {
        chain drops { type filter hook forward priority 0; numgen random mod 100 < 15 drop; }; }'""",
        "nft delete table ip strange",
    ),
    "a rule of iptables": ("iptables-legacy -I FORWARD -j DROP", "iptables-legacy -D FORWARD -j DROP"),
    "an offload": ("ethtool -K FIRST tx off", "ethtool -K FIRST tx on"),
    "forwarding": ("sysctl -qw net.ipv4.ip_forward=0", "sysctl -qw net.ipv4.ip_forward=1"),
    "an XDP program": ("ip link set FIRST xdpgeneric obj PROGRAM sec xdp", "ip link set FIRST xdpgeneric off"),
    "a queueing discipline": ("tc qdisc add dev LAST root pfifo limit 1", "tc qdisc del dev LAST root"),
    "a hook of traffic control": ("tc qdisc add dev FIRST clsact", "tc qdisc del dev FIRST clsact"),
    "a neighbour's address": (
        "ip neighbour replace NEIGHBOUR dev LAST lladdr 02:00:00:00:00:99 nud permanent",
        "ip neighbour replace NEIGHBOUR dev LAST lladdr LLADDR nud permanent",
    ),
    "a route": ("ip route add blackhole 198.18.0.0/15 metric 1", "ip route del blackhole 198.18.0.0/15 metric 1"),
    "a rule of routing": ("ip rule add pref 1 blackhole", "ip rule del pref 1 blackhole"),
    "the MTU": ("ip link set FIRST mtu 1300", "ip link set FIRST mtu 1500"),
    "a setting that is told by nobody": (
        "sysctl -qw net.ipv4.conf.all.arp_ignore=8",
        "sleep 1.5; sysctl -qw net.ipv4.conf.all.arp_ignore=0",
    ),
}
"""What somebody changes on the DUT for a moment, and how it is undone. Capitals stand for what is found there."""


def meddle(what: str) -> Inject:
    """Somebody changes something on the DUT, and changes it back after a part of a second."""

    def inject(scene: Scene) -> None:
        namespace, port = scene.namespace("dut"), scene.last_port("dut")
        neighbours = json.loads(ip("-n", namespace, "-j", "neighbour", "show", "dev", port, "nud", "permanent"))
        found = {
            "FIRST": scene.first_port("dut"),
            "LAST": port,
            "PROGRAM": str(find_program("pass")),
            "NEIGHBOUR": neighbours[0]["dst"],
            "LLADDR": neighbours[0]["lladdr"],
        }
        change, undo = (
            reduce(lambda text, word: text.replace(word, found[word]), found, text) for text in MEDDLING[what]
        )
        inside(namespace, "sh", "-ec", change)
        scene.wait_s(0.1, 0.2)
        inside(namespace, "sh", "-ec", undo)

    return inject


def send_signal(number: int, name: str, contains: str | None = None) -> Inject:
    """To the processes of the run with this name."""
    return lambda scene: scene.signal(number, name, contains)


def halt(name: str, contains: str | None = None) -> Inject:
    """Stops the processes, and lets them go on after a part of a second."""

    def inject(scene: Scene) -> None:
        scene.signal(signal.SIGSTOP, name, contains)
        scene.wait_s(0.1, 0.4)
        with suppress(AssertionError):
            scene.signal(signal.SIGCONT, name, contains)

    return inject


def keep_killing(name: str, contains: str | None = None) -> Inject:
    """Whatever of this name the run starts from now on is killed."""

    def inject(scene: Scene) -> None:
        over = threading.Event()

        def kill() -> None:
            while not over.wait(0.05):
                for pid in processes(scene.mark, name, contains):
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)

        thread = threading.Thread(target=kill, daemon=True)
        thread.start()
        scene.mending.append(lambda: (over.set(), thread.join()))

    return inject


def signal_controller(number: int) -> Inject:
    return lambda scene: os.kill(scene.controller, number)


def halt_controller(scene: Scene) -> None:
    os.kill(scene.controller, signal.SIGSTOP)
    scene.wait_s(0.2, 0.8)
    os.kill(scene.controller, signal.SIGCONT)


def spin(cpu: int) -> Inject:
    """A busy process of the highest priority on a CPU, until the case is over."""

    def inject(scene: Scene) -> None:
        number = min(cpu, (os.cpu_count() or 1) - 1)
        words = ("nice", "-n", "-20", "taskset", "-c", str(number), sys.executable, "-c", "while True: pass")
        busy = subprocess.Popen(words)
        scene.mending.append(lambda: (busy.kill(), busy.wait()))

    return inject


def listen_on(role: str, port: int = 5201) -> Inject:
    """Another program has the port that a tool is to listen on."""

    def inject(scene: Scene) -> None:
        script = f"import socket, time; s = socket.create_server(('', {port})); print(flush=True); time.sleep(600)"
        words = ("ip", "netns", "exec", scene.namespace(role), sys.executable, "-c", script)
        other = subprocess.Popen(words, stdout=subprocess.PIPE)
        other.stdout.readline()
        scene.mending.append(lambda: (other.kill(), other.wait(), other.stdout.close() if other.stdout else None))

    return inject


def fill_disk(scene: Scene) -> None:
    """Somebody else fills the file system of the run folder."""
    full = scene.runs / "full"
    with suppress(OSError), full.open("wb", buffering=0) as stream:
        for size in (1 << 20, 4096, 1):
            with suppress(OSError):
                while True:
                    stream.write(b"x" * size)
    scene.mending.append(lambda: full.unlink(missing_ok=True))


def make_read_only(scene: Scene) -> None:
    """The file system lets nobody write to it."""
    command("mount", "-o", "remount,ro", str(scene.runs))
    scene.mending.append(lambda: command("mount", "-o", "remount,rw", str(scene.runs)))


def lock_run_folder(scene: Scene) -> None:
    """The run folder takes no new file; those that are open are written to."""
    path = str(scene.run)
    command("chattr", "+i", path)
    scene.mending.append(lambda: command("chattr", "-i", path))


def delete_run_folder(scene: Scene) -> None:
    command("rm", "-rf", str(scene.run))


def hold_machine(scene: Scene) -> None:
    """Another run has this machine."""
    scene.wait = "0s"
    _hold(scene)


def hold_machine_for_a_moment(scene: Scene) -> None:
    """Another run has this machine, and dies."""
    holder = _hold(scene)
    threading.Timer(scene.draw.uniform(1.0, 2.5), os.kill, (holder, signal.SIGKILL)).start()


def ask_for_machine(scene: Scene) -> None:
    """Another run wants this machine meanwhile: it is refused."""
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(HostLock("another").take())
        except BusyError:
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "it got a machine that is in use"


def _hold(scene: Scene) -> int:
    """A process that has the lock of this machine until it is killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            lock = HostLock("2026-01-01T000000Z-another")
            asyncio.run(lock.take())
            os.write(writing, b"x")
            os.close(writing)
            time.sleep(600)
        finally:
            os._exit(1)
    os.close(writing)
    assert os.read(reading, 1), "the lock could not be taken"
    os.close(reading)

    def end() -> None:
        os.kill(child, signal.SIGKILL)  # a zombie where it was killed before
        os.waitpid(child, 0)
        for path in Path("/run/nicbench").glob("host.lock"):
            path.unlink()

    scene.mending.append(end)
    return child


def several(*injects: Inject) -> Inject:
    def inject(scene: Scene) -> None:
        for each in injects:
            each(scene)

    return inject
