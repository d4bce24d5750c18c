"""The equations of least squares in the graph's norm, and the ways to solve them.

=====================  ==============================================================================
``normal_equations``   ``X'LX`` and ``X'Ly``, addable and subtractable
``spectrum``           one eigendecomposition, every regularization value after it a diagonal scaling
``graded``             the same where features differ in scale by many orders of magnitude
``holdout``            held-out scores of whole blocks without refitting, in the primal
``dual_holdout``       the same in the dual
``krylov``             conjugate gradients for every regularization value at once
=====================  ==============================================================================
"""
