"""The experiments of the papers, and some of our own: ``python -m experiments.replicate`` runs them."""
