"""Choosing among models: candidates, plans that hold out, rules, and the one search that uses them."""
