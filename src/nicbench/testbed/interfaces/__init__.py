"""What nicbench makes so that a port can be used: namespaces, moves, addresses, bonds and more, each with its undo.

To add one:

1. Write ``src/nicbench/testbed/interfaces/NAME.py`` with one ``async`` function of a ``Making``: it goes through
   ``making.ports``, makes what a port asks for by ``making.changes``, and puts the port with its new ``device`` back.
   Where none of the undos in ``tuning/undo`` fits, add a kind (below).
2. Put it into the steps of ``stages/hosts.py``, where what it needs is there and what needs it is not.
   ``Port.is_made`` says that a bench file has something made, ``Port.devices`` which interfaces are moved for it.
   What must not be is refused before the first change: what leads out, or serves somebody
   (``testbed/interfaces/host_interfaces.py``).
3. ``making.tell(fact, name, value)`` is a line in the report. What follows from the bench file alone is checked
   in ``bench_file/port_checks.py``.
4. Write ``tests/testbed/interfaces/test_NAME.py`` with ``FakeHost``, and a test marked ``lab`` that finds the machine
   unchanged, also after an error.
"""
