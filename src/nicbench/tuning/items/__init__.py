"""What can be tuned: one item a file, found by its ``kind``. CONTRIBUTING.md says how to add one."""
