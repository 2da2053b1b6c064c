"""How each kind of change is undone: undos by theme, found by the registry. undo.json names it by ``kind``."""
