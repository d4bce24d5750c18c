"""Feature matrices as the solvers read them, whatever they are stored in.

====================  ===============================================================================
``feature_rows``      rows of a dense or sparse matrix, and products with them
``columns``           features that are evaluated block by block
``feature_products``  products of a whole matrix with vectors
``rows``              what rows of ``F X`` offer to a solver; a graph makes them of features
``blocks``            how blocks of rows are named and cut
====================  ===============================================================================
"""
