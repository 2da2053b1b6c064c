"""What nicbench makes so that a port can be used: namespaces, moves, addresses, bonds and more, each with its undo."""
