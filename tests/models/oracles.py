"""Refits and dense solves that the estimators are compared with."""

from __future__ import annotations

from itertools import product

import numpy as np

from tests.oracles import dual_coefficients, explicit_laplacian, gaussian

GRAPHS = [
    {"ties": ties, "balance": balance, "regression_weight": beta}
    for ties, balance, beta in product(("include", "exclude"), ("pairs", "examples", "queries"), (0.0, 0.3, 1.0))
]


def graph_id(graph):
    return f"{graph['ties']}-{graph['balance']}-{graph['regression_weight']}"


def ranking_data(seed=0, *, queries=7, longest=8, n=4, labels=4):
    """Items of queries of different sizes, rows mixed; one query has a single item, one a single label."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, longest + 1, queries)
    sizes[0] = 1
    qid = np.repeat(np.arange(queries) * 10 - 20, sizes)
    y = rng.integers(0, labels, len(qid)).astype(float)
    y[qid == qid[-1]] = 2.0
    X = rng.normal(size=(len(qid), n))
    X[:, 0] += 0.7 * y
    order = rng.permutation(len(qid))
    return X[order], y[order], qid[order]


def kernel_matrix(name, X, Z=None):
    """Kernel by its definition, with gamma 0.2, degree 2, coef0 0.5."""
    Z = X if Z is None else Z
    if name == "linear":
        return X @ Z.T
    if name == "rbf":
        return gaussian(X, Z, 0.2)
    if name == "laplacian":
        return np.exp(-0.2 * np.abs(X[:, None, :] - Z[None, :, :]).sum(axis=2))
    return (0.2 * X @ Z.T + 0.5) ** 2


KERNEL_PARAMETERS = {"gamma": 0.2, "degree": 2, "coef0": 0.5}


def laplacian(y, qid, w, graph):
    return explicit_laplacian(
        y, list(qid), w, ties=graph["ties"], balance=graph["balance"], beta=graph["regression_weight"]
    )


def dense_scores(K_new, K, y, qid, w, graph, alpha):
    """Scores of new items by equation (8) of the 2007 paper."""
    return K_new @ dual_coefficients(K, laplacian(y, qid, w, graph), y, alpha)


def held_out_by_refits(make, X, y, qid, blocks, *, weights=None):
    """Scores of each block of rows by a model that is fitted on the rows of no part of the block."""
    out = np.full(np.shape(y), np.nan)
    for block in blocks:
        train = np.ones(len(X), dtype=bool)
        train[block] = False
        w = None if weights is None else weights[train]
        model = make().fit(X[train], y[train], qid=None if qid is None else qid[train], sample_weight=w)
        out[block] = model.predict(X[block])
    return out


def query_rows(qid):
    return [np.flatnonzero(qid == q) for q in dict.fromkeys(qid.tolist())]


def centred(scores, qid):
    """Scores less the mean of their query: all that a ranking model determines."""
    out = np.array(scores, dtype=float)
    for rows in query_rows(np.asarray(qid)):
        out[rows] -= out[rows].mean(axis=0)
    return out


def kernel_of_sums(first: np.ndarray, second: np.ndarray) -> float:
    """Gaussian kernel of the sums of three features: items with these in another order differ by rounding only."""
    return float(np.exp(-(((first[0] + first[1] + first[2]) - (second[0] + second[1] + second[2])) ** 2)))


def by_view(model, X):
    """Scores of every view of a co-regularized pursuit."""
    return [model.predict(X, view=v) for v in range(model.path_.indices.shape[1])]
