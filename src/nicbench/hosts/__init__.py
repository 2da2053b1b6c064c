"""Where commands run and files are read and written: this machine, namespaces and containers of it."""

from nicbench.hosts._specs import from_spec

__all__ = ["from_spec"]
