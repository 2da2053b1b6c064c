"""Fuzzers of what nicbench reads from others.

``make fuzz MINUTES=10`` runs each for ten minutes: ``engine/fuzz`` by cargo-fuzz (``cargo install --locked
cargo-fuzz``), ``targets.py`` by Atheris, which is installed into ``build/``; ``scripts/fuzz TARGET`` runs one. Corpora
and finds lie in ``~/.cache/nicbench/fuzz``. Each run adds a line to ``record.tsv``, which is committed.

``scripts/fuzz --try FILE TARGET`` tries a find again. Once it is mended it becomes a test with a name, and is kept by
``scripts/fuzz --keep --try FILE TARGET``; ``scripts/fuzz --keep`` adds inputs that reach something new. What is kept is
tried in every ``make test``. A new parser of what others write gets a target, or a line in ``PARSERS`` of
``test_hostile_text.py``.
"""
