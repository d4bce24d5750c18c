"""Learners beside RankRLS, one module each: arrays in, arrays out.

================  =========================================================================
``pursuit``       matching pursuit in the inner product of a graph, of one view or several
``copursuit``     the choice in several views at once that agree on unlabelled items
``greedy``        features taken one by one by the exact held-out error
``transductive``  labels of hidden queries
``consensus``     co-regularized RankRLS: views that agree with one function
``conditional``   the same items ranked for each query
``rankboost``     threshold stumps, boosted on pairs
``ranksvm``       the squared hinge of ordered pairs
================  =========================================================================

Classes that end in ``Problem`` are what a search solves: a path of solutions for the values of one parameter.
"""
