"""What nicbench makes so that a port can be used: a namespace, a move, an address; each with its undo."""
