"""A machine with a card that is not there: it answers in the layouts of real tools, keeps what is set, and logs it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from tests.fakes import FakeHost

from nicbench.hosts.base import Completed
from nicbench.system.adapters.ethtool import parse_link_settings

GOLDEN = Path(__file__).parents[2] / "system" / "adapters" / "golden"
DEVICE = "ens3f0np0"
ADDRESS = "0000:af:00.0"


def golden(name: str) -> str:
    return (GOLDEN / name).read_text()


class Card(FakeHost):
    """A ConnectX-5, as its driver and tools of Debian 12 print it. ``texts`` is what each question is answered with."""

    def __init__(self) -> None:
        net = f"/sys/class/net/{DEVICE}"
        super().__init__(
            "dut",
            {
                f"{net}/carrier": "1\n",
                f"{net}/device/sriov_numvfs": "0\n",
                f"{net}/device/sriov_totalvfs": "16\n",
                f"{net}/device/numa_node": "1\n",
                f"{net}/device/local_cpulist": "2-3\n",
                "/sys/devices/system/cpu/online": "0-3\n",
                "/proc/irq/201/smp_affinity_list": "0-3\n",
                "/proc/irq/202/smp_affinity_list": "0-3\n",
                f"{net}/queues/rx-0/rps_cpus": "00000000,00000000\n",
                f"{net}/queues/rx-1/rps_cpus": "00000000,00000000\n",
                f"{net}/queues/rx-0/rps_flow_cnt": "0\n",
                f"{net}/queues/tx-0/xps_cpus": "0000,00000001\n",
                f"{net}/queues/tx-1/xps_cpus": "0000,00000002\n",
                f"{net}/ecn/roce_np/enable/3": "0\n",
                f"{net}/ecn/roce_np/enable/4": "1\n",
                f"{net}/ecn/roce_rp/enable/3": "0\n",
                f"{net}/ecn/roce_rp/enable/4": "1\n",
            },
        )
        self.texts = {
            **{f"ethtool -{letter}": golden(f"mlx5/{letter}.txt") for letter in "iglcx"},
            "ethtool -a": golden("ixgbe/a.txt"),
            "ethtool -k": golden("virtio_net/k.txt"),
            "ethtool -n": golden("i40e/n_udp4.txt"),
            "ethtool --show-fec": golden("mlx5/fec.txt"),
            "ethtool --show-priv-flags": golden("mlx5/priv.txt"),
            "ethtool --show-eee": golden("igb/eee.txt"),
            f"ethtool {DEVICE}": golden("mlx5/settings.txt"),
            "dcb -j pfc": golden("mlx5/dcb_pfc.json"),
            "dcb -j apptrust": golden("mlx5/dcb_apptrust.json"),
            "devlink -j dev param": golden("mlx5/devlink_param.json"),
            "mlxconfig query": golden("mlx5/mlxconfig.txt"),
            "setpci": "2936\n",
        }
        for question in self.texts:
            self.answer(question, self._answering(question))
        self.answer(f"setpci -s {ADDRESS} CAP_EXP+8.w", self._answering("setpci"))
        self.answer(f"mlxconfig -d {ADDRESS} -e query", self._answering("mlxconfig query"))
        self.answer("cat /proc/interrupts", golden("mlx5/interrupts.txt"))
        self.answer("sh -c", self._small_files)
        self._settable()

    def _answering(self, question: str) -> Callable[[tuple[str, ...]], str]:
        return lambda _command: self.texts[question]

    def _small_files(self, command: tuple[str, ...]) -> str:
        """``grep -sH "" PATTERN ..`` over the files that there are; of each line one ``path:value``."""
        if "/msi_irqs/" in command[2]:
            return "".join(f"/sys/class/net/{DEVICE}/device/msi_irqs/{number}:msix\n" for number in (201, 202))
        wanted = [re.compile(re.escape(word).replace(r"\*", "[^/]*")) for word in command[2].split()[3:]]
        found = [path for path in self.files if any(pattern.fullmatch(path) for pattern in wanted)]
        return "".join(f"{path}:{self.files[path].strip()}\n" for path in found)

    def _settable(self) -> None:
        self.answer("ethtool -G", lambda command: self._current("ethtool -g", command[3:]))
        self.answer("ethtool -L", lambda command: self._current("ethtool -l", command[3:]))
        self.answer("ethtool -C", self.coalesce)
        self.answer("ethtool -A", lambda command: self._rows("ethtool -a", command[3:], _PAUSE))
        self.answer("ethtool -K", lambda command: self._rows("ethtool -k", command[3:], _OFFLOADS))
        self.answer("ethtool --set-priv-flags", lambda command: self._rows("ethtool --show-priv-flags", command[3:]))
        self.answer("ethtool --set-eee", self._energy)
        self.answer("ethtool --set-fec", self._fec)
        self.answer("ethtool -s", self._link)
        self.answer("ethtool -X", self._hashing)
        self.answer("ethtool -N", self._fields)
        self.answer("dcb pfc set", self._pfc)
        self.answer("dcb apptrust set", self._trust)
        self.answer("devlink dev param set", self._devlink)
        self.answer(f"mlxconfig -d {ADDRESS} --yes set", self._firmware)
        for field in range(6):
            write = f"CAP_EXP+8.w={field << 12:04x}:7000"
            self.answer(("setpci", "-s", ADDRESS, write), self._setpci)

    def _current(self, question: str, pairs: tuple[str, ...]) -> str:
        most, mark, now = self.texts[question].partition("Current hardware settings:")
        for name, value in zip(pairs[::2], pairs[1::2], strict=True):
            row = {"rx": "RX", "tx": "TX", "combined": "Combined"}[name]
            now = re.sub(rf"(?m)^({row}:\s+)\S+", rf"\g<1>{value}", now)
        self.texts[question] = most + mark + now
        return ""

    def _rows(self, question: str, pairs: tuple[str, ...], names: dict[str, str] | None = None) -> str:
        for name, value in zip(pairs[::2], pairs[1::2], strict=True):
            row = re.escape((names or {}).get(name, name))
            self.texts[question], count = re.subn(
                rf"(?m)^(\s*{row}\s*:\s+)(on|off)", rf"\g<1>{value}", self.texts[question]
            )
            assert count == 1, f"{name} is no row of {question}"
        return ""

    def coalesce(self, command: tuple[str, ...]) -> str:
        """Sets rows of ``ethtool -c``."""
        text = self.texts["ethtool -c"]
        for name, value in zip(command[3::2], command[4::2], strict=True):
            pattern = {
                "adaptive-rx": r"(Adaptive RX: )(on|off)",
                "adaptive-tx": r"(Adaptive RX: \S+  TX: )(on|off)",
            }.get(name, rf"(?m)^({name}: )\S+")
            text = re.sub(pattern, rf"\g<1>{value}", text)
        self.texts["ethtool -c"] = text
        return ""

    def _energy(self, command: tuple[str, ...]) -> str:
        self.texts["ethtool --show-eee"] = golden("igb/eee.txt" if command[-1] == "on" else "igb/eee_off.txt")
        return ""

    def _fec(self, command: tuple[str, ...]) -> str:
        words = {"auto": "Auto", "off": "Off", "rs": "RS", "baser": "BaseR"}
        configured = " ".join(words[word] for word in command[4:])
        active = "RS" if configured == "Auto" else configured
        self.texts["ethtool --show-fec"] = (
            f"FEC parameters for {DEVICE}:\nConfigured FEC encodings: {configured}\nActive FEC encoding: {active}\n"
        )
        return ""

    def _link(self, command: tuple[str, ...]) -> str:
        """As ethtool and the kernel: what is named beside negotiation decides which modes are advertised."""
        text = self.texts[f"ethtool {DEVICE}"]
        settings = parse_link_settings(text)
        end = command.index("advertise") if "advertise" in command else len(command)
        words = dict(zip(command[3:end:2], command[4:end:2], strict=True))
        states = dict(zip(command[end + 1 :: 2], command[end + 2 :: 2], strict=True))
        advertised = settings["advertised_modes"]
        if words.get("autoneg", "on" if settings["autonegotiation"] else "off") == "on":
            begins = f"{words['speed']}base" if "speed" in words else ""
            kept = [mode for mode in settings["supported_modes"] if mode.startswith(begins)]
            advertised = [mode for mode in kept if not states or states[mode] == "on"]
            words |= {"speed": str(max(int(mode.partition("base")[0]) for mode in advertised)), "duplex": "Full"}
        rows = {"speed": r"(Speed: )\d+", "duplex": r"(Duplex: )\w+", "autoneg": r"(Auto-negotiation: )\w+"}
        for name, value in words.items():
            text = re.sub(rows[name], rf"\g<1>{value}", text, count=1)
        modes = ("\n\t" + " " * 24).join(advertised)
        text = re.sub(r"(?s)(Advertised link modes:  ).*?(?=\n\tAdvertised pause)", rf"\g<1>{modes}", text)
        self.texts[f"ethtool {DEVICE}"] = text
        return ""

    def _hashing(self, command: tuple[str, ...]) -> str:
        words, text = list(command[3:]), self.texts["ethtool -x"]
        if "equal" in words or "default" in words:
            queues = int(words[words.index("equal") + 1]) if "equal" in words else 8
            table = [entry % queues for entry in range(128)]
            rows = [f"{at:5}:  " + "".join(f"{queue:6}" for queue in table[at : at + 8]) for at in range(0, 128, 8)]
            text = re.sub(r"(?ms)^    0:.*?(?=^RSS hash key)", "\n".join(rows) + "\n", text)
        if "hkey" in words:
            text = re.sub(r"(?m)(?<=^RSS hash key:\n).*$", words[words.index("hkey") + 1], text)
        self.texts["ethtool -x"] = text
        return ""

    def _fields(self, command: tuple[str, ...]) -> str:
        head = golden("i40e/n_udp4.txt").splitlines()[0]
        rows = golden("mlx5/n_udp4.txt").splitlines()[1:5]
        kept = [row for row, letter in zip(rows, "sdfn", strict=True) if letter in command[-1]]
        self.texts["ethtool -n"] = "\n".join([head, *kept, ""])
        return ""

    def _pfc(self, command: tuple[str, ...]) -> str:
        state = json.loads(self.texts["dcb -j pfc"])
        for mapping in command[6:]:
            priority, on = mapping.split(":")
            for one in range(8) if priority == "all" else (int(priority),):
                state["prio_pfc"][one] = on == "on"
        self.texts["dcb -j pfc"] = json.dumps(state)
        return ""

    def _trust(self, command: tuple[str, ...]) -> str:
        self.texts["dcb -j apptrust"] = json.dumps({"order": list(command[6:])})
        return ""

    def _devlink(self, command: tuple[str, ...]) -> str:
        assert command[-2:] == ("cmode", "runtime")
        state = json.loads(self.texts["devlink -j dev param"])
        for parameter in state["param"][f"pci/{ADDRESS}"]:
            if parameter["name"] == command[6]:
                parameter["values"][0]["value"] = command[8]
        self.texts["devlink -j dev param"] = json.dumps(state)
        return ""

    def _firmware(self, command: tuple[str, ...]) -> str:
        for pair in command[5:]:
            name, value = pair.split("=")
            self.texts["mlxconfig query"] = re.sub(
                rf"(?m)^(.?\s*{name}\s+\S+\s+\S+\s+)\S+", rf"\g<1>{value}", self.texts["mlxconfig query"]
            )
        return ""

    def _setpci(self, command: tuple[str, ...]) -> str:
        value, mask = (int(word, 16) for word in command[-1].partition("=")[2].split(":"))
        self.texts["setpci"] = f"{int(self.texts['setpci'], 16) & ~mask | value & mask:04x}\n"
        return ""


_PAUSE = {"autoneg": "Autonegotiate", "rx": "RX", "tx": "TX"}
_OFFLOADS = {"gro": "generic-receive-offload", "gso": "generic-segmentation-offload", "rx": "rx-checksumming"}


def refusing(card: Card, command: str, words: str) -> None:
    """Has a command fail from now on."""
    card.answer(command, lambda words_of: Completed(words_of, 1, "", words))
