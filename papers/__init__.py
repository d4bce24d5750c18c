"""The experiments of the five papers: ``python -m papers.replicate`` runs them."""
