"""The numerical core: arrays in, arrays out; no estimator is known here.

===================  ===================================================================================================
``graph``            labelled items and preferences as operators ``L`` and ``F``, ``F'F = L``, on whole queries
``chunks``           chunks of whole queries, an ordered map over threads, sums from left to right
``eigen``            eigenvectors, and solutions of one alpha
``smoother``         one decomposition for every alpha: primal, dual, preferences
``holdout``          scores of held-out queries for every alpha
``pairs``            leave-pair-out of labels; ``preferred_pairs`` of preferences; ``concordance``: intervals
``nonnegative``      weights with given signs
``posterior``        how sure scores are
``products``         products with ``X'LX``; ``krylov``: conjugate gradients for every alpha
===================  ===================================================================================================
"""
