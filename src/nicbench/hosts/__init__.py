"""Where commands run and files are read and written: this machine, others, namespaces and containers of them."""

from nicbench.hosts.agent import close_ports
from nicbench.hosts.asking import compare_clocks
from nicbench.hosts.kinds.container import close_containers
from nicbench.hosts.kinds.ssh import close_connections
from nicbench.hosts.options import build_hosts, host_from_spec

__all__ = ["build_hosts", "close_connections", "close_containers", "close_ports", "compare_clocks", "host_from_spec"]
