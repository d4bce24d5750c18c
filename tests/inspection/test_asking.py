"""Which pair is asked, against walking through all pairs; what an answer does, against a refit with it."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import entr, ndtr
from scipy.stats import norm
from tests.models.oracles import ranking_data
from tests.refusals import Refusal

from rankrls import RankRLS, SparseRankRLS
from rankrls.inspection import pair_posterior, pairs_to_ask, posterior
from rankrls.problems.questions import value_of

X, Y, QID = ranking_data(4, queries=7, longest=9, n=4)
NEW, _, NEW_QID = ranking_data(6, queries=5, longest=8, n=4)


Z_VALUES = np.linspace(-9, 9, 20001)
Z_WEIGHTS = norm.pdf(Z_VALUES) * (Z_VALUES[1] - Z_VALUES[0])


def entropy(p):
    return (entr(p) + entr(1 - p)) / np.log(2)


def worth(criterion, mean, std, noise):
    """The definitions; what a yes or no tells by the integral over the scores."""
    if std == 0.0:
        return -np.inf
    if criterion == "variance":
        return 0.5 * np.log2(1 + std**2 / noise)
    if criterion == "even":
        return -abs(mean) / std
    once_known = entropy(ndtr((mean + std * Z_VALUES) / np.sqrt(noise)))
    return float(entropy(ndtr(mean / np.sqrt(std**2 + noise))) - Z_WEIGHTS @ once_known)


def all_pairs(known, Z, qid, criterion):
    i, j = np.triu_indices(len(Z), 1)
    same = np.asarray(qid)[i] == np.asarray(qid)[j]
    i, j = i[same], j[same]
    mean, std = known.difference(Z[i], Z[j])
    return {(a, b): worth(criterion, *d, known.answer_variance) for a, b, *d in zip(i, j, mean, std, strict=True)}


MODELS = {
    "primal": RankRLS(alpha=0.5),
    "dual": RankRLS(alpha=0.5, solver="dual"),
    "rbf": RankRLS(alpha=0.5, kernel="rbf", gamma=0.3),
    "sparse": SparseRankRLS(alpha=0.5, kernel="rbf", gamma=0.3, n_basis=8),
}


@pytest.mark.parametrize("criterion", ["vote", "variance", "even"])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("preferences", [False, True], ids=["labels", "preferences"])
def test_the_best_of_all_pairs(name, criterion, preferences):
    if preferences:
        rng = np.random.default_rng(1)
        i, j = rng.integers(len(X), size=(2, 60))
        i, j = i[i != j], j[i != j]
        known = pair_posterior(MODELS[name], X, i, j, strength=rng.normal(size=len(i)))
    else:
        known = posterior(MODELS[name], X, Y, qid=QID)
    found = pairs_to_ask(known, NEW, qid=NEW_QID, criterion=criterion)
    worths = all_pairs(known, NEW, NEW_QID, criterion)
    best = max(worths, key=worths.get)
    pair = (min(found.a[0], found.b[0]), max(found.a[0], found.b[0]))
    slack = 5e-3 if criterion == "vote" else 1e-9  # the expected entropy is approximated
    assert worths[pair] >= worths[best] - slack
    assert found.value[0] == pytest.approx(worths[pair], abs=slack + 1e-8)
    assert found.probability[0] >= 0.5
    expected = known.probability(NEW[found.a], NEW[found.b])
    np.testing.assert_allclose(found.probability, expected, rtol=1e-7)
    i, j = (np.array(ends) for ends in zip(*worths, strict=True))
    given_pairs = pairs_to_ask(known, NEW, criterion=criterion, pairs=(j, i))
    assert given_pairs.value[0] == pytest.approx(found.value[0], rel=1e-7)
    rest = pairs_to_ask(known, NEW, qid=NEW_QID, criterion=criterion, exclude=(found.b, found.a))
    if criterion != "vote":
        assert rest.value[0] == pytest.approx(sorted(worths.values())[-2], abs=1e-8)
    assert {int(rest.a[0]), int(rest.b[0])} != {int(found.a[0]), int(found.b[0])}


@given(st.floats(-3, 3), st.floats(0.05, 3), st.floats(0.2, 3))
@settings(deadline=None, max_examples=30)
def test_what_an_answer_tells(mean, std, noise):
    """The approximation of the vote's information is within a hundredth of a bit, and never below nothing by more."""
    value = float(value_of("vote", np.array([mean]), np.array([std**2]), noise)[0])
    assert value == pytest.approx(worth("vote", mean, std, noise), abs=0.01)
    swapped = value_of("vote", np.array([-mean]), np.array([std**2]), noise)
    assert value == pytest.approx(float(swapped[0]), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", ["primal", "dual", "rbf"])
def test_later_questions_are_those_after_an_answer(name):
    """Greedy: the second question of two is the first one of a model that has seen an answer to the first."""
    rng = np.random.default_rng(3)
    i, j = rng.integers(len(X), size=(2, 40))
    i, j = i[i != j], j[i != j]
    strength = rng.normal(size=len(i))
    known = pair_posterior(MODELS[name], X, i, j, strength=strength, noise=0.7)
    found = pairs_to_ask(known, X, k=4, criterion="variance")
    for e in range(1, 4):
        i, j = np.append(i, found.a[e - 1]), np.append(j, found.b[e - 1])
        strength = np.append(strength, rng.normal())  # whatever the answer is
        later = pair_posterior(MODELS[name], X, i, j, strength=strength, noise=0.7)
        asked = (found.a[:e], found.b[:e])
        again = pairs_to_ask(later, X, criterion="variance", exclude=asked)
        assert again.value[0] == pytest.approx(found.value[e], rel=1e-6)
        assert {int(again.a[0]), int(again.b[0])} == {int(found.a[e]), int(found.b[e])}
    assert len({frozenset(pair) for pair in zip(found.a.tolist(), found.b.tolist(), strict=True)}) == 4
    assert (np.diff(found.value) <= 1e-9).all()


def test_inputs_and_corners():
    known = posterior(RankRLS(), X, Y, qid=QID)
    expected = pairs_to_ask(known, NEW, qid=NEW_QID, k=3)
    for Z, qid in (
        (sparse.csr_array(NEW), NEW_QID),
        (NEW.tolist(), [f"q{q}" for q in NEW_QID]),
        (NEW + 1e5, NEW_QID),
    ):
        found = pairs_to_ask(known, Z, qid=qid, k=3)
        np.testing.assert_array_equal(found.a, expected.a)
        np.testing.assert_array_equal(found.b, expected.b)
    assert len(pairs_to_ask(known, NEW[:2], qid=["a", "b"])) == 0
    same = NEW[[0, 0, 0]]  # nothing to tell apart
    for criterion in ("vote", "variance", "even"):
        assert len(pairs_to_ask(known, same, qid=[1, 1, 1], criterion=criterion)) == 0
    two = pairs_to_ask(known, NEW[:2], qid=[1, 1], k=5)
    assert len(two) == 1
    votes = pair_posterior(RankRLS(), X, [0, 1], [1, 2])
    assert len(pairs_to_ask(votes, X)) == 1  # no qid: everything can be compared
    exact = pair_posterior(RankRLS(), np.zeros((3, 2)), [0, 1], [1, 2], noise=1.0)
    assert len(pairs_to_ask(exact, np.zeros((3, 2)))) == 0


def test_what_is_refused():
    known = posterior(RankRLS(), X, Y, qid=QID)
    for call, refusal in (
        (lambda: pairs_to_ask(known, X), Refusal("fitted with qid", "pairs_to_ask", parameter="qid")),
        (lambda: pairs_to_ask(known, X, qid=QID, criterion="best"), Refusal("'vote'", parameter="criterion")),
        (lambda: pairs_to_ask(known, X, qid=QID, k=0), Refusal("got 0", parameter="k")),
        (lambda: pairs_to_ask(known, X[:, :2], qid=QID), Refusal("2 features", kind=ValueError)),
    ):
        with refusal:
            call()
    exact = posterior(RankRLS(), X, Y, qid=QID, noise=1e-300)
    object.__setattr__(exact, "noise_variance", 0.0)
    for call, parameter, row, refusal in (
        (lambda: pairs_to_ask(RankRLS(), X, qid=QID), "posterior", None, Refusal("got RankRLS", parameter="posterior")),
        (lambda: pairs_to_ask(exact, X, qid=QID), "noise", None, Refusal("exactly", parameter="noise")),
        (
            lambda: pairs_to_ask(known, X, pairs=([0], [999])),
            "pairs[1]",
            0,
            Refusal("pairs[1][0] is 999", parameter="pairs[1]", row=0),
        ),
        (
            lambda: pairs_to_ask(known, X, pairs=([0], [0])),
            "pairs[1]",
            0,
            Refusal("Pair 0 compares", parameter="pairs[1]", row=0),
        ),
        (
            lambda: pairs_to_ask(known, X, pairs=([0.5], [0])),
            "pairs[0]",
            0,
            Refusal("0.5", "pair", parameter="pairs[0]", row=0),
        ),
        (lambda: pairs_to_ask(known, X, pairs=[0]), "pairs", None, Refusal("two arrays", parameter="pairs")),
        (
            lambda: pairs_to_ask(known, X, qid=QID, exclude=([0], [1, 2])),
            "exclude[1]",
            None,
            Refusal("exclude[0] has 1", "exclude[1] has 2", parameter="exclude[1]"),
        ),
    ):
        with refusal as error:
            call()
        assert (error.value.parameter, error.value.row) == (parameter, row)


@pytest.mark.slow
def test_many_items_in_seconds_and_tiles():
    """5000 items of one query: 12.5 million pairs, and the same answer as from whole matrices of a part."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(5000, 20))
    known = posterior(RankRLS(), Z[:300], Z[:300] @ rng.normal(size=20) + rng.normal(size=300))
    start = time.perf_counter()
    found = pairs_to_ask(known, Z, criterion="variance")
    assert time.perf_counter() - start < 60  # about 2 s on a free machine
    W = np.linalg.cholesky(np.linalg.inv((Z[:300] - Z[:300].mean(0)).T @ (Z[:300] - Z[:300].mean(0)) + np.eye(20)))
    P = Z @ W
    norms = (P**2).sum(axis=1)
    best = max(float((norms[r] + norms - 2 * P[r] @ P.T).max()) for r in range(0, 5000))
    noise = known.answer_variance / known.noise_variance
    assert found.value[0] == pytest.approx(0.5 * np.log2(1 + best / noise), rel=1e-9)
