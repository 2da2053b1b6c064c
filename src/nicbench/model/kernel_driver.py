"""How DPDK opens a kernel interface."""

from typing import Literal

KernelDriver = Literal["net_af_xdp", "net_af_packet", "net_pcap"]
