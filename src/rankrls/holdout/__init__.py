"""Hold-out that needs derivations of its own.

===================  ===================================================================================
``pair_holdout``     held-out scores of pairs of items in one global ranking
``preferred_pairs``  held-out scores of pairs of items between which preferences are known
``smoothers``        what it asks of a problem, for each form of one
``transductive``     held-out scores where the unlabelled items take part in training
===================  ===================================================================================
"""
