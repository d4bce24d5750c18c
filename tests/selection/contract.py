"""What every problem has to do: one suite that a new problem inherits. It brings a candidate and a dense oracle.

The oracle sees nothing of the library: it is given features, the explicit Laplacian L of the comparisons, the vector b
with which the loss is ``f'Lf - 2 b'f`` up to a constant, and the listed pairs; and it returns scores of other items.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rankrls._comparisons import LabelledItems, PreferredItems, Setting
from rankrls._queries import query_layout
from rankrls.graph import PairGraph
from rankrls.problems.problem import JointProblem
from rankrls.selection.plans import held_out_scores, refitted_scores
from tests.oracles import explicit_laplacian

LEVELS = {
    "plain": {},
    "ties excluded": {"ties": "exclude"},
    "pairs count the same": {"balance": "pairs"},
    "queries count the same": {"balance": "queries"},
    "mixed with regression": {"regression_weight": 0.4},
}


@dataclass(frozen=True)
class Case:
    """Comparisons, and the same in the oracle's terms."""

    comparisons: object
    setting: Setting
    X: np.ndarray
    L: np.ndarray
    b: np.ndarray  # (items, targets)
    blocks: list


def labels(name="plain", *, targets=1, weighted=False, seed=0, form=np.asarray):
    """Seven queries of graded items, one of them a single item, one all tied; rows of the queries are mixed up."""
    rng = np.random.default_rng(seed)
    qid = rng.permutation(np.repeat(np.arange(7), [1, 3, 4, 5, 6, 4, 5]))
    m = len(qid)
    X = rng.normal(size=(m, 4))
    Y = rng.integers(0, 3, (m, targets)).astype(float)
    Y[qid == 1] = 1.0
    w = rng.uniform(0.3, 2.0, m) if weighted else None
    setting = Setting(**{**{"ties": "include", "balance": "examples", "regression_weight": 0.0}, **LEVELS[name]})
    beta = setting.regression_weight
    L = [explicit_laplacian(y, qid, w, ties=setting.ties, balance=setting.balance, beta=beta) for y in Y.T]
    b = np.column_stack([one @ y for one, y in zip(L, Y.T, strict=True)])
    layout = query_layout(qid, m)
    data = LabelledItems(form(X), None, True, targets == 1, Y, layout, w)
    return Case(data, setting, X, np.stack(L), b, [np.flatnonzero(qid == q) for q in range(7)])


def preferences(*, seed=0, form=np.asarray):
    """More preferences than items, of several strengths and weights, some of them said twice."""
    rng = np.random.default_rng(seed)
    m, p = 12, 40
    X = rng.normal(size=(m, 4))
    i = rng.integers(0, m, p)
    j = (i + rng.integers(1, m, p)) % m
    s, c = rng.choice([0.0, 1.0, 2.0], p), rng.uniform(0.2, 2.0, p)
    D = np.zeros((p, m))
    D[np.arange(p), i] += 1.0
    D[np.arange(p), j] -= 1.0
    graph = PairGraph(i, j, m, s, c)
    data = PreferredItems(form(X), None, False, True, graph)
    blocks = [np.arange(k, p, 5) for k in range(5)]
    return Case(data, Setting(), X, (D.T @ (c[:, None] * D))[None], (D.T @ (c * s))[:, None], blocks)


CASES = {
    **{name: lambda name=name: labels(name) for name in LEVELS},
    "weighted": lambda: labels("ties excluded", weighted=True),
    "preferences": preferences,
}


class ProblemContract:
    """Inherit it, and say what the candidate and its oracle are."""

    values = np.array([1e8, 1e3, 1.0, 1e-3, 1e-8])
    """Of the problem's parameter, the most regularized first."""
    resolved = 1e-4
    """Relative error that the smallest regularization may leave of scores, where rounding is divided by it."""
    exact = 1e-7
    """Relative error elsewhere."""
    holds_out = True
    forms = (np.asarray,)

    def candidate(self, case):
        """The candidate on a case."""
        raise NotImplementedError

    def oracle(self, case, k, value, Z):
        """Scores of the items Z by target number k's model of one value, up to what no pair compares."""
        raise NotImplementedError

    @classmethod
    def applies(cls, name):
        """Whether the problem is one of this graph."""
        return True

    def test_path_equals_a_dense_solve_on_new_rows(self, case):
        Z = np.random.default_rng(9).normal(size=(6, case.X.shape[1]))
        for form in self.forms:
            given = replace(case, comparisons=replace(case.comparisons, X=form(case.X)))
            scores = self.candidate(given).problem(given.comparisons).path(self.values).scores(form(Z))
            assert scores.shape == (6, len(self.values), 1)
            for v, value in enumerate(self.values):
                self.assert_same(scores[:, v, 0], self.oracle(case, 0, value, Z), v, case)

    def test_one_value_is_that_of_the_path(self, case):
        problem = self.candidate(case).problem(case.comparisons)
        path = problem.path(self.values)
        whole = path.scores(case.comparisons.X)
        for v, value in enumerate(self.values):
            alone = self.candidate(case).problem(case.comparisons).path(np.array([value]))
            self.assert_same(alone.scores(case.comparisons.X)[:, 0, 0], whole[:, v, 0], v, case)
            self.assert_same(path[v](case.comparisons.X)[:, 0], whole[:, v, 0], v, case)
            self.assert_same(alone[0](case.comparisons.X)[:, 0], whole[:, v, 0], v, case)

    def test_held_out_blocks_equal_refits(self, case):
        candidate = self.candidate(case)
        values = self.values[:-1]
        everything = np.arange(case.comparisons.n_units)
        problem = candidate.problem(case.comparisons)
        assert (problem.holdout(case.blocks, values) is not None) == self.holds_out
        found = held_out_scores(case.comparisons, candidate, problem, case.blocks, values)
        for block in case.blocks:
            refitted = refitted_scores(case.comparisons, candidate, np.delete(everything, block), block, values)
            for v in range(len(values)):
                self.assert_same(found[block, v, 0], refitted[:, v, 0], v, case)

    def assert_same(self, found, expected, v, case):
        """Scores agree, up to a constant if no pair sees one, and to what the value resolves."""
        if (
            case.setting.regression_weight == 0.0
            and len(found) > 1
            and not isinstance(case.comparisons, PreferredItems)
        ):
            found, expected = found - found.mean(), expected - expected.mean()
        limit = self.resolved if v == len(self.values) - 1 else self.exact
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=limit * max(1e-3, np.abs(expected).max()))


class ManyTargets(ProblemContract):
    """For problems of several targets."""

    def test_several_targets_are_solved_as_alone(self):
        for name in ("plain", "ties excluded"):
            if not self.applies(name):
                continue
            case = labels(name, targets=3)
            problem = self.candidate(case).problem(case.comparisons)
            assert isinstance(problem, JointProblem) == (name == "ties excluded")
            scores = problem.path(self.values).scores(case.X)
            held = held_out_scores(case.comparisons, self.candidate(case), problem, case.blocks, self.values[:-1])
            for k in range(3):
                one = replace(case.comparisons, Y=case.comparisons.Y[:, k : k + 1])
                alone = replace(case, comparisons=one, L=case.L[k : k + 1], b=case.b[:, k : k + 1])
                single = self.candidate(alone).problem(one)
                expected = single.path(self.values).scores(case.X)
                left = held_out_scores(one, self.candidate(alone), single, case.blocks, self.values[:-1])
                for v in range(len(self.values) - 1):
                    self.assert_same(scores[:, v, k], expected[:, v, 0], v, case)
                    self.assert_same(held[:, v, k], left[:, v, 0], v, case)


class SearchedProblem(ProblemContract):
    """For problems that choose their own grid of values."""

    def test_an_automatic_grid_begins_with_the_simplest_model(self, case):
        problem = self.candidate(case).problem(case.comparisons)
        grid = problem.axis()
        sizes = [np.ptp(problem.path(grid[[k]]).scores(case.comparisons.X)) for k in (0, len(grid) - 1)]
        assert len(grid) > 2
        assert sizes[0] <= sizes[1] + 1e-9
