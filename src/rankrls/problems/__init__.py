"""Least-squares problems: arrays in, solutions of every regularization value and held-out scores out.

=====================  ==============================================================================
``primal``, ``dual``   the two forms of the problem
``reduced``            the dual of a kernel of low rank, and ``subset``: over a basis of items
``signed``             weights with given signs
``krylov_problem``     by conjugate gradients; ``subset_cg``: over a basis
``posterior``          what the problem says about the uncertainty of scores, and ``questions`` to ask
=====================  ==============================================================================
"""
