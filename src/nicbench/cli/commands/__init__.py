"""The commands, one file each, whose ``register(app)`` adds it to the command line."""
