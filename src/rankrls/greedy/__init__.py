"""Ranking pursuit: a model of a few items or features, chosen one after another.

================  ===================================================================================
``dictionaries``  the columns to choose from
``walk``          what is taken of one view or several, in coordinates where all fits are projections
``pursuit``       the choice of one column after the other
``copursuit``     the choice in several views at once that agree on unlabelled items
================  ===================================================================================
"""
