"""What a machine is: parsers of what tools say of it, its inventory, and its management controller."""
