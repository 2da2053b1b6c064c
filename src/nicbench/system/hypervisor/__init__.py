"""Reads what a hypervisor is set to from files that its administrator saved; pure parsers, no hypervisor is asked."""
