"""The numerical core: functions of arrays that know no estimator.

===================  ===================================================================================================
``graph``            labelled items and preferences as operators ``L`` and ``F``, ``F'F = L``, on whole queries
``runs``             sums, means and deviations over runs of rows
``chunks``           chunks of whole queries, an ordered map over threads, sums from left to right
``eigen``            eigenvectors, and solutions for one alpha
``smoother``         one decomposition for every alpha: primal, dual, preferences; ``basis``: over some items
``holdout``          scores of held-out queries for every alpha; ``units`` and ``batches``: their small systems
``ties``             equal scores for those that differ by rounding only
``pairs``            leave-pair-out for labels; ``preferred_pairs``: for preferences; ``concordance``: intervals
``nonnegative``      weights with given signs
``posterior``        uncertainty of score differences
``scorer``           scoring functions
``products``         products with ``X'LX``; ``krylov``: conjugate gradients for every alpha
===================  ===================================================================================================
"""
