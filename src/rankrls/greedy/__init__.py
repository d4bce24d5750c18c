"""Ranking pursuit: a model of a few items or features, chosen one after another.

================  ===================================================================================
``dictionaries``  the columns to choose from
``pursuit``       the choice, and its path
``copursuit``     the same in several views that agree on unlabelled items
================  ===================================================================================
"""
