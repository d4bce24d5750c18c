"""Rows of the features as the solvers read them: blocks of ``F X``, and products with X.

======================  =============================================================================
``rows``                blocks of ``F X`` of features that are held, dense or sparse
``columns``             the same for features that are evaluated block by block
``feature_rows``        ``X[rows] p`` and ``X[rows]' a``; ``feature_products`` the same for all rows
``laplacian_product``   ``X'L(Xp)`` in one pass over the rows of X
======================  =============================================================================
"""
