"""Benchmarks: one job a file, each against numpy, scipy or another tool in the same run. ``python -m benchmarks``."""
