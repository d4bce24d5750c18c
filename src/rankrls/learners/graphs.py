"""Graphs of checked items, as learners take them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._comparisons import Comparisons, LabelledItems, Setting
from rankrls.numerics.graph import LabelledGraph, PreferenceGraph
from rankrls.numerics.runs import group_sums


def graph_of(data: Comparisons, setting: Setting) -> LabelledGraph | PreferenceGraph:
    """The graph of the first target of labelled items, or of preferences."""
    return data.numeric_graphs(setting)[0]


def pair_factors(
    data: LabelledItems, graph: LabelledGraph
) -> tuple[NDArray[np.float64], Any, NDArray[np.float64], NDArray[np.float64]]:
    """Labels, numbers of queries and weights of the items, and the factor of each query's pairs in its graph."""
    queries = np.unique(data.layout.codes, return_inverse=True)[1]
    weights = np.ones(data.n_rows) if data.weights is None else data.weights
    return data.Y[:, 0], queries, weights, graph.e2 / group_sums(graph.weights, graph.starts)
