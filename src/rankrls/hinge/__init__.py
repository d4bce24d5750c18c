"""Hinge losses of ordered pairs, and their minimisation.

================  ===================================================================================
``ordered_loss``  sums over ordered pairs with slack, counted; ``edge_loss``: over listed preferences
``hinge``         hinge losses made of these sums
``newton``        their minimisation
``ranksvm``       the whole problem
================  ===================================================================================
"""
