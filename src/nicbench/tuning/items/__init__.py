"""What can be tuned: items by theme, found by their ``kind``. ``base.py`` says how to add one."""
