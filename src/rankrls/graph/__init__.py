"""Preference graphs as operators: ``L`` and ``F`` with ``F'F = L``, neither of them ever formed.

====================  ==================================================================================
:class:`Graph`        what solvers ask of a graph; derived from ``L`` and ``F`` where a graph has no better way
:class:`ScoredGraph`  items with labels inside queries: nested means (label class inside query)
:class:`PairGraph`    plain preferences "i above j", each with a strength and a weight
:class:`OrderedPairs` items with labels inside queries, for losses that ask which of two is above
====================  ==================================================================================

A graph makes of features what a solver needs: ``graph.factor_rows(X)`` are the rows of ``F X``, block by block, and
``graph.laplacian_product(X)`` is ``X'LX``, known by its products.
"""

from rankrls._public import publish
from rankrls.graph._base import Graph, GraphOperator
from rankrls.graph.ordered import OrderedPairs
from rankrls.graph.pairs import PairGraph
from rankrls.graph.scored import ScoredGraph

__all__ = ["Graph", "GraphOperator", "OrderedPairs", "PairGraph", "ScoredGraph"]

publish(__name__, globals())
