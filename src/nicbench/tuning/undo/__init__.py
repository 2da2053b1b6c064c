"""How each kind of change is undone: one file a kind, found by the registry. undo.json names it by ``kind``."""
