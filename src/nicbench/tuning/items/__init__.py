"""What can be tuned: one item a file, found by its ``kind``. ``base.py`` says how to add one."""
