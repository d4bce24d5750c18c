"""Examination by position against simulated clicks whose examination is known."""

import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse
from sklearn import clone, config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankrls import AutoRankRLS, CGRankRLS, InputError, InputWarning, RankRLS, RankRLSCV, SparseRankRLS, SparseRankRLSCV
from rankrls.clicks import Propensities, corrected_clicks, estimate_propensities
from tests.refusals import Refusal, told

LENGTH = 10


def clicked(seed=0, queries=400, sessions=10, policy=0.5, power=1.0, features=5, misled=False):
    """Clicks of a position-based model on results that an older ranking has put in order."""
    rng = np.random.default_rng(seed)
    m = queries * LENGTH
    X, qid = rng.normal(size=(m, features)), np.repeat(np.arange(queries), LENGTH)
    score = old = X @ rng.normal(size=features) / np.sqrt(features)
    if misled:
        old = rng.normal(size=m)
        X = np.column_stack([X, old])
    order = np.lexsort((-(policy * old + (1 - policy) * rng.normal(size=m)), qid))
    position = np.empty(m, dtype=int)
    position[order] = np.tile(np.arange(1, LENGTH + 1), queries)
    relevance = 1 / (1 + np.exp(1 - 2 * score))
    theta = 1.0 / np.arange(1, LENGTH + 1) ** power
    clicks = rng.binomial(sessions, theta[position - 1] * relevance)
    return X, clicks, position, qid, np.full(m, sessions), theta, relevance


@pytest.mark.parametrize("power", [0.5, 1.0, 1.5])
def test_examination_is_recovered_within_its_error(power):
    X, clicks, position, qid, shown, theta, _ = clicked(power=power)
    found = estimate_propensities(X, clicks, position, qid=qid, impressions=shown)
    assert found.examination[0] == 1.0
    assert found.standard_error[0] == 0.0
    z = (found.examination - theta)[1:] / found.standard_error[1:]
    assert np.sqrt((z**2).mean()) < 2.5
    assert np.abs(found.examination - theta).max() < 0.1
    assert found.impressions.tolist() == [4000.0] * LENGTH


def test_standard_errors_are_the_spread_over_new_data():
    many = [
        estimate_propensities(
            *clicked(seed, queries=150)[:3], qid=clicked(seed, queries=150)[3], impressions=np.full(1500, 10)
        )
        for seed in range(12)
    ]
    spread = np.std([one.examination for one in many], axis=0, ddof=1)[1:]
    told = np.mean([one.standard_error for one in many], axis=0)[1:]
    assert 0.6 < np.mean(told / spread) < 1.7


def test_standard_errors_are_the_spread_over_queries_drawn_with_replacement():
    X, clicks, position, qid, shown, *_ = clicked(queries=200)
    found = estimate_propensities(X, clicks, position, qid=qid, impressions=shown)
    rng = np.random.default_rng(1)
    samples = []
    for _ in range(40):
        rows = (LENGTH * rng.integers(200, size=200)[:, None] + np.arange(LENGTH)).ravel()
        sample = estimate_propensities(X[rows], clicks[rows], position[rows], qid=qid, impressions=shown[rows])
        samples.append(sample.examination)
    assert 0.88 < np.mean(found.standard_error[1:] / np.std(samples, axis=0, ddof=1)[1:]) < 1.14


def test_a_ranking_of_corrected_clicks_is_that_of_relevance_where_clicks_mislead():
    """The old ranking goes by a feature without any relevance, and clicks make it look relevant."""
    X, clicks, position, qid, shown, _, relevance = clicked(policy=0.7, power=1.5, features=3, misled=True)
    labels, weights, _ = corrected_clicks(X, clicks, position, qid=qid, impressions=shown)
    corrected = RankRLS().fit(X, labels, qid=qid, sample_weight=weights).coef_
    plain, true = RankRLS().fit(X, clicks, qid=qid).coef_, RankRLS().fit(X, relevance, qid=qid).coef_
    cosine = lambda w: w @ true / np.linalg.norm(w) / np.linalg.norm(true)
    assert cosine(corrected) > 0.97
    assert cosine(plain) < 0.8


def test_examination_of_one_changes_nothing():
    X, clicks, position, *_ = clicked(sessions=1)
    labels, weights, found = corrected_clicks(
        X, clicks, position, propensities=dict.fromkeys(range(1, LENGTH + 1), 1.0)
    )
    np.testing.assert_array_equal(labels, clicks)
    np.testing.assert_array_equal(weights, 1.0)
    assert not found.standard_error.any()


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_the_order_of_rows_and_the_number_of_the_first_position_do_not_matter(seed):
    X, clicks, position, qid, shown, *_ = clicked(queries=40)
    order = np.random.default_rng(seed).permutation(len(X))
    one = estimate_propensities(X, clicks, position, qid=qid, impressions=shown)
    other = estimate_propensities(X[order], clicks[order], position[order] - 1, qid=qid[order], impressions=shown)
    assert other.positions.tolist() == (one.positions - 1).tolist()
    np.testing.assert_allclose(other.examination, one.examination, atol=1e-4)


def alternating(X, rates, n, codes, rounds):
    """Ridge regression on features and squares, and a division for each position, in turns."""
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    Z = np.column_stack([np.ones(len(X)), Z, Z**2 - (Z**2).mean(axis=0)])
    penalized = np.diag(np.r_[0.0, np.ones(Z.shape[1] - 1)])
    theta = np.ones(codes.max() + 1)
    for _ in range(rounds):
        w = n * theta[codes] ** 2
        system = (Z.T * w) @ Z + Z.shape[1] * (w @ w) / w.sum() * penalized
        g = np.maximum(Z @ np.linalg.solve(system, Z.T @ (n * theta[codes] * rates)), 0.01)
        theta = np.array([(n * rates * g)[codes == k].sum() / (n * g**2)[codes == k].sum() for k in range(len(theta))])
        theta = np.maximum(theta / theta[0], 0.01)
    return theta


def test_the_estimate_is_where_alternating_least_squares_ends():
    X, clicks, position, qid, shown, *_ = clicked(queries=60)
    n = np.where(position % 2 == 0, shown, 3 * shown)
    rates = clicks / n
    top = position == 1
    expected = alternating(X, rates / np.average(rates[top], weights=n[top]), n, position - 1, 100)
    found = estimate_propensities(X, clicks, position, qid=qid, impressions=n)
    np.testing.assert_allclose(found.examination, expected, rtol=1e-9)


def test_labels_and_weights_undo_examination():
    X, clicks, position, qid, shown, theta, _ = clicked(queries=20)
    known = dict(enumerate(theta.tolist(), 1))
    labels, weights, _ = corrected_clicks(X, clicks, position, qid=qid, impressions=shown, propensities=known)
    np.testing.assert_allclose(labels, clicks / shown / theta[position - 1])
    np.testing.assert_allclose(weights, shown * theta[position - 1])


def test_gaps_and_late_positions():
    X, clicks, position, qid, shown, *_ = clicked()
    late = np.where(np.arange(len(X)) < 3, 90 + np.arange(len(X)), 3 * position)
    found = estimate_propensities(X, clicks, late, qid=qid, impressions=shown)
    assert found.positions.tolist() == [*range(3, 31, 3), 90, 91, 92]
    assert len(set(found.examination[-4:].tolist())) == 1


@pytest.mark.parametrize("decade", range(9))
def test_eight_decades_of_click_rates_are_one(decade):
    X, clicks, position, qid, shown, theta, _ = clicked(queries=150, sessions=100)
    expected = estimate_propensities(X, clicks, position, qid=qid, impressions=shown)
    assert np.abs(expected.examination - theta).max() < 0.1
    found = estimate_propensities(X, clicks, position, qid=qid, impressions=shown * 10.0**decade)
    np.testing.assert_allclose(found.examination, expected.examination, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(found.standard_error, expected.standard_error, rtol=0.0, atol=1e-9)


def test_no_clicks_at_the_first_position():
    X, clicks, position, qid, shown, *_ = clicked(queries=100)
    for some in (np.zeros(len(X)), np.where(position == 1, 0, clicks)):
        with Refusal("no click", parameter="clicks"):
            estimate_propensities(X, some, position, qid=qid, impressions=shown)
    one = np.where((position == 1) & (qid > 0), 0, clicks)  # samples without its query say nothing
    found = estimate_propensities(X, one, position, qid=qid, impressions=shown)
    assert np.isfinite(found.standard_error).all()


def test_one_query_has_no_interval():
    X, clicks, position, _, shown, *_ = clicked(queries=100)
    found = estimate_propensities(X, clicks, position, qid=np.zeros(len(X)), impressions=shown)
    assert np.isfinite(found.examination).all()
    assert found.standard_error[0] == 0.0
    assert np.isnan(found.standard_error[1:]).all()
    assert str(found).count("unknown") == LENGTH - 1


@pytest.mark.parametrize("by_query", [True, False])
def test_standard_errors_do_not_depend_on_the_order_of_rows(by_query):
    X, clicks, position, qid, shown, *_ = clicked(queries=100)
    order = np.random.default_rng(0).permutation(len(X))
    one, other = (
        estimate_propensities(
            X[rows], clicks[rows], position[rows], qid=qid[rows] if by_query else None, impressions=shown[rows]
        )
        for rows in (slice(None), order)
    )
    np.testing.assert_allclose(one.standard_error, other.standard_error, rtol=0.0, atol=1e-9)


def test_a_bootstrap_of_a_part_of_the_queries_has_the_same_errors(monkeypatch):
    X, clicks, position, qid, shown, *_ = clicked(queries=200)
    whole = estimate_propensities(X, clicks, position, qid=qid, impressions=shown).standard_error
    monkeypatch.setattr("rankrls.clicks._BOOTSTRAP_ROWS", len(X) // 4)
    part = estimate_propensities(X, clicks, position, qid=qid, impressions=shown).standard_error
    assert 0.7 < part[1:].mean() / whole[1:].mean() < 1.4


def test_that_rows_count_as_shown_is_said():
    X, clicks, position, qid, shown, *_ = clicked(queries=100, sessions=1)
    assert "every row counts as shown once" in str(estimate_propensities(X, clicks, position, qid=qid))
    known = estimate_propensities(X, clicks, position, qid=qid, impressions=shown)
    assert "every row" not in str(known)


def test_a_position_that_was_never_shown_shares_the_value_before_it():
    X, clicks, position, qid, shown, *_ = clicked()
    never = position == 4
    n = np.where(never, 0, shown)
    found = estimate_propensities(X, np.where(never, 0, clicks), position, qid=qid, impressions=n)
    kept = estimate_propensities(X[~never], clicks[~never], position[~never], qid=qid[~never], impressions=n[~never])
    np.testing.assert_allclose(np.delete(found.examination, 3), kept.examination, atol=0.02)
    assert found.examination[3] == found.examination[2]


def test_rows_that_were_never_shown_have_no_weight():
    X, clicks, position, qid, shown, *_ = clicked()
    never = np.arange(len(X)) % 7 == 0
    labels, weights, found = corrected_clicks(
        X, np.where(never, 0, clicks), position, qid=qid, impressions=np.where(never, 0, shown)
    )
    assert (weights[never] == 0.0).all()
    assert (labels[never] == 0.0).all()
    kept = estimate_propensities(
        X[~never], clicks[~never], position[~never], qid=qid[~never], impressions=shown[~never]
    )
    np.testing.assert_allclose(found.examination, kept.examination, atol=0.02)


def test_sparse_features_and_many_of_them():
    from scipy import sparse

    X, clicks, position, qid, shown, theta, _ = clicked()
    one = estimate_propensities(X, clicks, position, qid=qid, impressions=shown)
    other = estimate_propensities(sparse.csr_array(X), clicks, position, qid=qid, impressions=shown)
    np.testing.assert_allclose(one.examination, other.examination, atol=1e-9)
    # 300 columns of the same five directions, which random directions keep; without features the error is .086
    wide = X @ np.random.default_rng(1).normal(size=(X.shape[1], 300))
    many = estimate_propensities(sparse.csr_array(wide), clicks, position, qid=qid, impressions=shown)
    np.testing.assert_allclose(many.examination, one.examination, atol=0.02)
    constant = estimate_propensities(np.zeros((len(X), 1)), clicks, position, qid=qid, impressions=shown)
    assert np.abs(many.examination - theta).max() < 0.5 * np.abs(constant.examination - theta).max()


def test_a_million_sparse_features_take_little_memory():
    X, clicks, position, qid, shown, *_ = clicked(queries=100)
    wide = sparse.csr_array((X.ravel(), 199_999 * np.arange(X.size) % 1_000_000, 5 * np.arange(len(X) + 1)))
    wide.resize(len(X), 1_000_000)
    tracemalloc.start()
    estimate_propensities(wide, clicks, position, qid=qid, impressions=shown)
    assert tracemalloc.get_traced_memory()[1] < 60_000_000
    tracemalloc.stop()


def test_positions_that_the_features_determine_are_warned_of():
    X, clicks, position, qid, shown, *_ = clicked(policy=1.0, features=1)
    with pytest.warns(InputWarning) as caught:
        estimate_propensities(X, clicks, position, qid=qid, impressions=shown)
    assert caught[0].message.parameter == "position"


@pytest.mark.parametrize(
    ("change", "parameter", "row"),
    [
        (lambda c, p, n: (c, np.where(np.arange(len(p)) == 7, np.nan, p), n), "position", 7),
        (lambda c, p, n: (c, np.where(np.arange(len(p)) == 5, 1.5, p), n), "position", 5),
        (lambda c, p, n: (c, np.where(np.arange(len(p)) == 6, 1e30, p), n), "position", 6),
        (lambda c, p, n: (c, p[1:], n), "position", None),
        (lambda c, p, n: (np.where(np.arange(len(c)) == 4, -1, c), p, n), "clicks", 4),
        (lambda c, p, n: (np.where(np.arange(len(c)) == 3, 11, c), p, n), "clicks", 3),
        (lambda c, p, n: (c, p, n[1:]), "impressions", None),
        (lambda c, p, n: (c, np.where(np.arange(len(p)) == 0, 0, p), n), "position", None),
    ],
)
def test_refusals(change, parameter, row):
    X, clicks, position, qid, shown, *_ = clicked(queries=20)
    c, p, n = change(clicks, position, shown)
    with pytest.raises(InputError) as raised:
        estimate_propensities(X, c, p, qid=qid, impressions=n)
    assert (raised.value.parameter, raised.value.row) == (parameter, row)


def test_numbers_of_clicks_without_impressions_are_refused_with_the_remedy():
    X, _, position, qid, *_ = clicked(queries=20)
    with Refusal(
        "Row 3 has 7 clicks; they must be between 0 and its impressions, 1.", "Pass how often each row was shown"
    ):
        estimate_propensities(X, np.where(np.arange(len(X)) == 3, 7, 0), position, qid=qid)


def test_rates_with_impressions_are_refused_and_rates_without_are_numbers_of_one_impression():
    X, clicks, position, qid, shown, *_ = clicked()
    rates = clicks / shown
    row = int(np.flatnonzero(rates % 1.0)[0])
    with Refusal("not rates", "Multiply the rates", parameter="clicks", row=row):
        corrected_clicks(X, rates, position, qid=qid, impressions=shown)
    alone = estimate_propensities(X, rates, position, qid=qid)
    counted = estimate_propensities(X, clicks, position, qid=qid, impressions=shown)
    np.testing.assert_allclose(alone.examination, counted.examination, atol=1e-9)
    partly = estimate_propensities(X, clicks + 0.5 * (clicks < shown), position, qid=qid, impressions=shown)
    assert np.isfinite(partly.examination).all()


def test_known_propensities():
    known = Propensities.known({0: 1.0, 4: 0.25})
    assert known.of([4, 0]).tolist() == [0.25, 1.0]
    exact = {"examination": 0.25, "low": 0.25, "high": 0.25, "impressions": 0.0}
    assert known.as_dict() == {"0": {name: 4 * value for name, value in exact.items()}, "4": exact}
    assert "0.250" in str(known)
    with pytest.raises(InputError) as raised:
        known.of([0, 3])
    assert raised.value.row == 1
    with pytest.raises(InputError):
        Propensities.known({}).of([1])
    with pytest.raises(InputError) as raised:
        Propensities.known({1: 0.0})
    assert raised.value.parameter == "propensities"
    from_json = Propensities.known(json.loads(json.dumps({1: 1.0, 2: 0.6, 10: 0.1})))
    assert from_json.of([10, 2, 1]).tolist() == [0.1, 0.6, 1.0]
    assert Propensities.known({1.0: 1.0, np.float32(2.0): 0.5}).positions.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({1.0: 1.0, 1.5: 0.5}, "1.5"),
        ({"top": 1.0}, "'top'"),
        ({None: 1.0}, "nan"),
        ({float("inf"): 1.0}, "inf"),
        (np.array([1.0, 0.5]), "must map positions to numbers, as in {1: 1.0, 2: 0.6}; got ndarray"),
        ([0.5], "got list"),
    ],
)
def test_positions_of_known_propensities_that_are_refused(given, word):
    with Refusal(word, parameter="propensities"):
        Propensities.known(given)


@pytest.mark.parametrize(
    "model",
    [RankRLS(), RankRLSCV(), SparseRankRLS(n_basis=20), SparseRankRLSCV(n_basis=20), CGRankRLS(), AutoRankRLS()],
    ids=lambda model: type(model).__name__,
)
def test_estimators_are_fitted_on_corrected_clicks(model):
    X, clicks, position, qid, shown, *_ = clicked(queries=60, features=3)
    own = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    labels, weights, found = corrected_clicks(X, clicks, position, qid=qid, impressions=shown)
    fitted = clone(model).fit(X, clicks, qid=qid, position=position, impressions=shown, sample_weight=own)
    np.testing.assert_allclose(fitted.propensities_.examination, found.examination, rtol=1e-12)
    other = clone(model).fit(X, labels, qid=qid, sample_weight=weights * own)
    np.testing.assert_allclose(fitted.predict(X), other.predict(X), rtol=1e-7, atol=1e-9)
    if hasattr(fitted, "selection_"):
        assert fitted.selection_ == f"{other.selection_}, clicks weighted by inverse propensities"
    assert not hasattr(other, "propensities_")


def test_positions_are_routed():
    X, clicks, position, qid, *_ = clicked(sessions=1, queries=100)
    with config_context(enable_metadata_routing=True):
        model = RankRLS().set_fit_request(qid=True, position=True)
        pipeline = make_pipeline(StandardScaler(), model).fit(X, clicks, qid=qid, position=position)
    assert pipeline[-1].propensities_.positions.tolist() == [*range(1, LENGTH + 1)]


def test_what_clicks_need():
    X, clicks, position, qid, *_ = clicked(sessions=1, queries=30)
    for extra, parameter in [
        ({"impressions": np.ones(len(X))}, "position"),
        ({"position": position[1:]}, "position"),
        ({"position": position[1:], "propensities": dict.fromkeys(range(1, LENGTH + 1), 1.0)}, "position"),
    ]:
        with pytest.raises(InputError) as raised:
            RankRLS().fit(X, clicks, qid=qid, **extra)
        assert raised.value.parameter == parameter
    with pytest.raises(InputError) as raised:
        RankRLS(kernel=lambda a, b: float(a["x"] == b["x"])).fit(
            [{"x": 1}] * len(X), clicks, qid=qid, position=position
        )
    assert raised.value.parameter == "X"


def test_rows_of_a_kernel_matrix_are_features():
    X, clicks, position, qid, shown, theta, _ = clicked(queries=100)
    model = RankRLS(kernel="precomputed").fit(X @ X.T, clicks, qid=qid, position=position, impressions=shown)
    assert np.abs(model.propensities_.examination - theta).max() < 0.1


@pytest.mark.parametrize(
    ("X", "refusal"),
    [
        (lambda X: X[:, 0], Refusal("shape (m, n)", parameter="X")),
        (lambda X: X[:, :, None], Refusal("shape (m, n)", parameter="X")),
        (lambda X: with_entry(X, np.nan), Refusal("NaN", parameter="X", row=5, column=1)),
        (lambda X: with_entry(X, np.inf), Refusal("infinity", parameter="X", row=5, column=1)),
        (lambda X: with_entry(X, 1e200), Refusal("overflow", parameter="X", row=5, column=1)),
        (lambda X: sparse.csc_matrix(with_entry(X, np.nan)), Refusal("NaN", parameter="X", row=5, column=1)),
    ],
    ids=told,
)
def test_features_that_are_refused(X, refusal):
    features, clicks, position, *_ = clicked(queries=20)
    with refusal:
        estimate_propensities(X(features), clicks, position, impressions=np.full(len(clicks), 10))


def with_entry(X, value):
    out = X.copy()
    out[5, 1] = value
    return out
