"""The parse ranking experiment against dense solutions, on made-up sentences."""

import numpy as np
import pytest

from papers import parse_ranking


def sentences(seed, n_sentences=13, longest=9):
    """Parses whose goodness has a level of its own in each sentence; one sentence is all tied."""
    rng = np.random.default_rng(seed)
    sentence = np.repeat(np.arange(n_sentences) + 100 * seed, rng.integers(3, longest, n_sentences))
    sentence = rng.permutation(sentence)
    X = rng.normal(size=(len(sentence), 5)).round(3)
    level = rng.normal(size=1000 * (seed + 1))
    y = np.round(np.tanh(X[:, 0] + X[:, 1] ** 2 + 0.2 * rng.normal(size=len(X))) + level[sentence], 2)
    y[sentence == sentence[0]] = 0.5
    return X, y, sentence


@pytest.fixture
def parts():
    return [parse_ranking.Sentences(*sentences(seed)) for seed in (0, 1)]


def laplacian(sentence, beta):
    W = (sentence[:, None] == sentence).astype(float)
    return beta * np.eye(len(W)) + (1 - beta) * (np.diag(W.sum(axis=1)) - W)


def by_sentence(test, scores, table):
    """One value a sentence, in the order of their first rows."""
    out = []
    for name in dict.fromkeys(test.sentence):
        y, f = test.y[test.sentence == name], scores[test.sentence == name]
        below = y[:, None] < y
        if table == "2008":  # equation (1) of 2008, without the diagonal in N
            apart = np.sign(y[:, None] - y) - np.sign(f[:, None] - f)
            out.append(0.5 * np.abs(apart).sum() / (len(y) * (len(y) - 1)))
        elif not below.any():
            out.append(np.nan)
        else:
            wrong = ((f[:, None] > f) + 0.5 * (f[:, None] == f))[below].sum()
            tied = np.triu(y[:, None] == y, 1).sum()
            out.append((below.sum() - 2 * wrong) / np.sqrt(below.sum() * (below.sum() + tied)))
    return np.array(out)


@pytest.mark.parametrize("number", range(7))
def test_figures_are_those_of_a_dense_solution(parts, monkeypatch, number):
    monkeypatch.setattr(parse_ranking, "ALPHAS", (0.1, 3.0))
    monkeypatch.setattr(parse_ranking, "GAMMAS", (0.2,))
    learner = parse_ranking.LEARNERS[number]
    train, test = parts
    first, second = parse_ranking.drawn(train, 3, 2, np.random.default_rng(5))
    used = train.take(np.concatenate((first, second)))
    outcome = parse_ranking.judge(learner, used, test, len(first) if learner.sparse else None)
    X, Z = used.X, used.X[: len(first)] if learner.sparse else used.X
    if outcome.kernel["kernel"] == "linear":
        kernel = lambda A, B: A @ B.T
    else:
        assert outcome.kernel["gamma"] == 0.2
        kernel = lambda A, B: np.exp(-0.2 * ((A[:, None] - B[None]) ** 2).sum(axis=2))
    L, K = laplacian(used.sentence, learner.regression_weight), kernel(X, Z)
    a = np.linalg.lstsq(K.T @ L @ K + outcome.alpha * kernel(Z, Z), K.T @ L @ used.y, rcond=1e-12)[0]
    expected = by_sentence(test, kernel(test.X, Z) @ a, learner.table)
    np.testing.assert_allclose(outcome.values, expected, rtol=1e-9)
    assert np.isnan(expected).sum() == (learner.table == "2007")


@pytest.mark.shared_data
def test_reads_the_sample(data_dir):
    for part, count in zip(parse_ranking.load(parse_ranking.sample(data_dir)), (22, 20), strict=True):
        assert part.X.shape == (100, 195097)
        assert len(set(part.sentence)) == count
