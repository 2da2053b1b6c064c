"""Many runs on the machines of a rack: one file lists them, Slurm gives each run its machines and starts it.

Nothing here decides who runs when, and no state is kept but a manifest, the runs, and what Slurm knows.

``model.py`` reads a fleet file and makes a bench file of a combination and of its machines; ``slurm.py`` decides which
machines Slurm is asked for, and calls its commands. ``jobs.py`` writes the manifest before it asks Slurm, and is what a
job does. ``folder.py`` believes a run folder before it believes Slurm. ``scripts/slurm-lab`` is a cluster of
namespaces.
"""

from nicbench.fleet.folder import FleetFolder
from nicbench.fleet.model import FleetFile, read_fleet

__all__ = ["FleetFile", "FleetFolder", "read_fleet"]
