"""The controller's side of the engine: its binaries, its protocol, and its replies as models."""
