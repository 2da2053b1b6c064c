"""The report: one self-contained page about one run, made from its folder alone. It never touches a host."""

from nicbench.report.html import build

__all__ = ["build"]
