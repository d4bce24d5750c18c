"""Fuzzing: hostile and random input to the library, whose results are compared with slow code of its own."""
