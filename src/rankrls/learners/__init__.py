"""Learners other than RankRLS, one module each: arrays in, arrays out.

================  =========================================================================
``pursuit``       matching pursuit in the inner product of a graph, in one view or several
``greedy``        features selected one by one by the exact held-out error
``transductive``  labels of hidden queries
``consensus``     co-regularized RankRLS: views that agree with one function
``conditional``   the same items ranked for each query
``rankboost``     threshold stumps, boosted on pairs
``ranksvm``       the squared hinge of ordered pairs
``trees``         boosted trees, grown by LightGBM and scored without it
``paths``         dictionaries of columns, and paths of solutions
================  =========================================================================

A class whose name ends in ``Problem`` is solved by a search: a path of solutions for the values of one parameter.
"""
