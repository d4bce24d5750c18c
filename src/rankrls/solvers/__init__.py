"""Least squares in the graph's norm: arrays in, arrays out.

=====================  ==========================================================================================
``rows``               blocks of ``F X``, the rows that every other solver works on
``normal_equations``   ``X'LX`` and ``X'Ly``, addable and subtractable
``spectrum``           one eigendecomposition, every regularization value after it a diagonal scaling
``primal``, ``dual``   the two forms of the problem
``holdout``            held-out scores of whole blocks without refitting
``pair_holdout``       held-out scores of pairs of items in one global ranking
``stumps``             features as bins; threshold stumps and their sums
``boosting``           RankBoost: pair weights that factorise, and the rounds
``laplacian_product``  ``X'L(Xp)`` in one pass over the rows of X, dense or CSR
``krylov``             conjugate gradients for every regularization value at once; ``krylov_problem``: for one
``ordered_loss``       sums over ordered pairs with slack, counted; ``edge_loss`` the same over listed preferences
``hinge``, ``newton``  hinge losses made of these sums, and their minimisation; ``ranksvm`` the whole problem
=====================  ==========================================================================================
"""
