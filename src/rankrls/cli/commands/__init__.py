"""The commands, in modules of related ones; each is a function of its options and a report."""
