"""Where commands run and files are read and written: this machine, others, namespaces and containers of them."""

from nicbench.hosts._agent_pool import close_ports
from nicbench.hosts._clocks import compare_clocks
from nicbench.hosts._specs import from_spec, hosts_of
from nicbench.hosts._ssh_pool import close_connections
from nicbench.hosts.container import close_containers

__all__ = ["close_connections", "close_containers", "close_ports", "compare_clocks", "from_spec", "hosts_of"]
