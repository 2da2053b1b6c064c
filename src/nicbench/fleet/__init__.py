"""Many runs on the machines of a rack: one file lists them, Slurm gives each run its machines and starts it.

Nothing here decides who runs when, and no state is kept but a manifest, the runs, and what Slurm knows.

``fleet`` decides nothing and keeps nothing but files. ``model.py`` reads a fleet file, ``benches.py`` makes a bench
file of a combination and of its machines, ``machines.py`` says what Slurm is asked for and who is who among what it
gave (both pure), ``slurm.py`` calls its commands and parses what they print. ``submit.py`` writes the manifest before
it asks Slurm, ``execute.py`` is what a job does, ``status.py`` believes a run folder before it believes Slurm.
``scripts/slurm-lab`` is a cluster of namespaces.
"""

from nicbench.fleet.folder import FleetFolder
from nicbench.fleet.model import FleetFile, read_fleet

__all__ = ["FleetFile", "FleetFolder", "read_fleet"]
