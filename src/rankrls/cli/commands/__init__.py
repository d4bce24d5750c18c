"""What each command does with its options: one module for each."""
