"""Choosing among models: candidates, ways to hold out, judges, rules, and the one search that brings them together."""
