"""The commands, one file each: ``register(app)`` adds it to the command line."""
