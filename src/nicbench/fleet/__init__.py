"""Many runs on the machines of a rack: one file lists them, Slurm gives each run its machines and starts it.

Nothing here decides who runs when, and no state is kept but a manifest, the runs, and what Slurm knows.
"""

from nicbench.fleet.folder import FleetFolder
from nicbench.fleet.model import FleetFile, read_fleet

__all__ = ["FleetFile", "FleetFolder", "read_fleet"]
