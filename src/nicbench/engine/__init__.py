"""The engine's side of the controller: its processes, its protocol, and the tester built on them."""
