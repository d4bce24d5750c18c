"""How a command begins: fewer imports, and loops that are compiled meanwhile."""
