"""Loops that several floors share, and the threads that run them."""
