"""The monitor: one ``nicbench-monitor`` on each machine of a run, and what it tells."""
