"""Which tool does the work of a test: ``workload: iperf3`` or ``workload: {kind: iperf3, ...}``."""

from __future__ import annotations

from nicbench.model.choice import Choice


class WorkloadChoice(Choice):
    """A tool and options of its own; ``workloads/`` knows what they mean."""
