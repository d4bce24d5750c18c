"""Hold-out that needs derivations of its own.

================  ===================================================================================
``pair_holdout``  held-out scores of pairs of items in one global ranking
``transductive``  held-out scores where the unlabelled items take part in training
================  ===================================================================================
"""
