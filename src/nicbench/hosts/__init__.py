"""Where commands run and files are read and written: this machine, others, namespaces and containers of them."""

from nicbench.hosts._clocks import compare_clocks
from nicbench.hosts._specs import from_spec
from nicbench.hosts._ssh_pool import close_connections

__all__ = ["close_connections", "compare_clocks", "from_spec"]
