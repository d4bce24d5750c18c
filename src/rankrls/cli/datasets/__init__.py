"""Commands on data that are read a part at a time."""
