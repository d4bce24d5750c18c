"""Selection of models: candidates, hold-out plans, rules, and the search that uses them."""
