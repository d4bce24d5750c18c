"""The numerical core: functions of arrays that know no estimator.

===================  ===================================================================================================
``graph``            labelled items and preferences as operators ``L`` and ``F``, ``F'F = L``, on whole queries
``runs``             sums, means and deviations over runs of rows; chunks of whole queries, mapped over threads
``eigen``            eigenvectors, and solutions for one alpha
``smoother``         one decomposition for every alpha: primal, dual, preferences
``holdout``          scores of held-out queries for every alpha; ``units``: their small systems
``ties``             equal scores for those that differ by rounding only
``pairs``            leave-pair-out for labels and for preferences; ``concordance``: intervals
``nonnegative``      weights with given signs
``posterior``        uncertainty of score differences
``scorer``           scoring functions, and bases of items
``krylov``           products with ``X'LX``, and conjugate gradients for every alpha
===================  ===================================================================================================
"""
