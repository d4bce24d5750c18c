"""Comparisons with other tools, and studies of the library's own estimates: one program a file."""
