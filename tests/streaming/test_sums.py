"""The tree of sums, the engines, and sums without rounding."""

from __future__ import annotations

from concurrent.futures import Executor, Future, ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankrls import RankRLSCV
from rankrls._comparisons import Setting
from rankrls.equations.normal_equations import NormalEquations
from rankrls.metrics._averages import mean_and_error
from rankrls.problems.primal import EquationsProblem
from rankrls.streaming import EquationsJob, TreeSum, merged, run, run_leaf
from rankrls.streaming.exact_sums import JudgedSums, exact_sums
from tests.streaming.arrays import ArrayDataset, example


class Bracketed:
    """Writes down what is merged with what."""

    def leaf(self, part):
        return str(part)

    def merge(self, a, b):
        return f"({a} {b})"


class Numbers:
    def __init__(self, count):
        self.parts, self.n_rows = tuple(range(count)), count

    def read(self, address):
        return address


def test_the_tree_is_that_of_the_number_of_parts():
    shapes = {1: "0", 2: "(0 1)", 3: "((0 1) 2)", 5: "(((0 1) (2 3)) 4)", 6: "(((0 1) (2 3)) (4 5))"}
    for count, shape in shapes.items():
        assert run(Bracketed(), Numbers(count)) == shape
        assert merged(Bracketed(), map(str, range(count))) == shape


@given(st.integers(1, 40), st.randoms(use_true_random=False))
def test_the_order_of_the_answers_changes_nothing(count, rng):
    tree = TreeSum(Bracketed(), count)
    order = list(range(count))
    rng.shuffle(order)
    for number in order:
        tree.add(number, str(number))
    assert tree.total() == merged(Bracketed(), map(str, range(count)))


def test_answers_that_wait_are_few():
    tree, most = TreeSum(Bracketed(), 1000), 0
    for number in range(1000):
        tree.add(number, "x")
        most = max(most, len(tree.waiting))
    assert most <= 10


class Lazy(Executor):
    """Runs each task when it is asked for its result, the last one first; counts those that wait."""

    def __init__(self):
        self.waiting, self.most = [], 0

    def submit(self, function, /, *args):
        future = Future()
        self.waiting.append((future, function, args))
        self.most = max(self.most, len(self.waiting))
        if len(self.waiting) == 4:
            for later, work, given_ in reversed(self.waiting):
                later.set_result(work(*given_))
            self.waiting = []
        return future


def test_no_more_parts_are_handed_out_than_asked_for():
    engine = Lazy()
    assert run(Bracketed(), Numbers(32), executor=engine, workers=2) == run(Bracketed(), Numbers(32))
    assert engine.most == 4


class Fails(Bracketed):
    def leaf(self, part):
        if part == 3:
            raise ValueError("part three")
        return str(part)


def test_an_error_of_a_leaf_is_that_of_the_run():
    with pytest.raises(ValueError, match="part three"):
        run(Fails(), Numbers(9))


def bits(model):
    return [model.coef_.tobytes(), model.cv_results_["mean_score"].tobytes(), model.alpha_, model.best_score_error_]


@pytest.fixture(scope="module")
def streamed():
    X, y, qid, w = example(1, queries=60, rows=(2, 30), n=12, weights=True)
    data = ArrayDataset(X.astype(np.float32), y, qid, w, cuts=tuple(range(50, len(y), 90)))
    return data, bits(RankRLSCV(scoring="ndcg@5").fit_dataset(data))


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_change_no_bit(streamed, threads, monkeypatch):
    data, expected = streamed
    monkeypatch.setenv("RANKRLS_NUM_THREADS", str(threads))
    assert bits(RankRLSCV(scoring="ndcg@5").fit_dataset(data)) == expected
    with ThreadPoolExecutor(threads) as pool:
        assert bits(RankRLSCV(scoring="ndcg@5").fit_dataset(data, executor=pool)) == expected


FLOATS = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e100, max_value=1e100)


@settings(max_examples=60)
@given(st.lists(st.tuples(FLOATS, FLOATS), min_size=1, max_size=30))
def test_sums_have_no_rounding(rows):
    values = np.array(rows)
    for column, total in enumerate(exact_sums(values)):
        assert Fraction(total, 2**1200) == sum((Fraction(row[column]) for row in rows), Fraction(0))


@settings(max_examples=60)
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=40), st.integers(0, 40), st.data())
def test_judged_sums_do_not_depend_on_how_queries_are_divided(values, cut, data):
    column = np.array(values)[:, None]
    column[data.draw(st.integers(0, len(values) - 1)) % 7 :: 7] = np.nan
    whole = JudgedSums.of(column)
    assert JudgedSums.of(column[cut:]) + JudgedSums.of(column[:cut]) == whole
    curve = whole.curve()
    mean, error = mean_and_error(column)
    np.testing.assert_allclose(curve.mean, mean, rtol=1e-14, atol=1e-16)
    np.testing.assert_allclose(curve.error, error, rtol=1e-7, atol=1e-15)


def test_the_mean_is_rounded_once():
    values = np.array([0.1] * 10 + [1e16, 1.0, -1e16])[:, None]
    exact = sum(map(Fraction, values[:, 0].tolist()), Fraction(0)) / 13
    assert JudgedSums.of(values).curve().mean[0] == float(exact)


def test_the_spectrum_of_a_billion_rows_keeps_its_small_directions():
    """The cutoff of a factor of 10^9 rows would take this direction for rounding; that of a leaf does not."""
    V = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0]
    values = np.array([3e-9, 1e-3, 0.1, 0.5, 1.0])
    equations = NormalEquations((V * values) @ V.T, V[:, :1].copy(), np.ones(1))
    rows = 10**9
    assert EquationsProblem(equations, rows * 50).spectrum.rank == 4
    leaves = rows // 65536
    problem = EquationsProblem(equations, 65536 + leaves.bit_length())
    assert problem.spectrum.rank == 5
    np.testing.assert_allclose(problem.solve(0.0)[:, 0], V[:, 0] / 3e-9, rtol=1e-5)


def test_a_fit_counts_the_rows_of_a_leaf(monkeypatch):
    seen = []
    original = EquationsProblem.__init__

    def told(self, equations, size, **given_):
        seen.append(size)
        original(self, equations, size, **given_)

    monkeypatch.setattr(EquationsProblem, "__init__", told)
    X, y, qid, _ = example(1, queries=60, rows=(2, 3))
    data = ArrayDataset(X, y, qid, cuts=tuple(range(30, len(y), 10)))
    RankRLSCV().fit_dataset(data)
    depth = (len(data.parts) - 1).bit_length()
    assert seen == [max(address.rows for address in data.parts) + depth]


def test_leaves_add_up_to_the_laplacian():
    from tests.oracles import explicit_laplacian

    X, y, qid, w = example(3, weights=True)
    job = EquationsJob((Setting("exclude", "queries", 0.2), Setting("include", "examples", 0.0)))
    data = ArrayDataset(X, y, qid, w, cuts=(3, 9, 11, 20, 40))
    sums = merged(job, [run_leaf(job, data, address) for address in data.parts])
    kept = w > 0
    for k, (ties, balance, beta) in enumerate([("exclude", "queries", 0.2), ("include", "examples", 0.0)]):
        L = explicit_laplacian(y[kept], qid[kept], w[kept], ties=ties, balance=balance, beta=beta)
        equations = sums.total(k)
        np.testing.assert_allclose(equations.gram, X[kept].T @ L @ X[kept], atol=1e-10)
        np.testing.assert_allclose(equations.rhs[:, 0], X[kept].T @ L @ y[kept], atol=1e-10)
        np.testing.assert_allclose(equations.energy[0], y[kept] @ L @ y[kept], rtol=1e-10)
