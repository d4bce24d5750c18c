"""leave_preference_out against refits."""

from __future__ import annotations

import numpy as np
import pytest

from rankrls import RankRLS, RankRLSCV
from rankrls.model_selection import leave_preference_out
from tests.refusals import Refusal

RNG = np.random.default_rng(50)
P = 40


def preferences(m):
    i = RNG.integers(0, m, P)
    return i, (i + RNG.integers(1, m, P)) % m, RNG.normal(size=P), RNG.random(P) + 0.2


@pytest.mark.parametrize("options", [{}, {"solver": "dual"}, {"kernel": "rbf"}], ids=str)
@pytest.mark.parametrize("m", [12, 60])
@pytest.mark.parametrize("grouped", [False, True])
def test_equals_refits(options, m, grouped):
    X = RNG.normal(size=(m, 5))
    i, j, s, c = preferences(m)
    c[3] = 0.0
    groups = RNG.choice(["x", "y", "z"], P) if grouped else np.arange(P)
    lead = leave_preference_out(
        RankRLS(**options), X, i, j, strength=s, weight=c, groups=groups if grouped else None, alphas=[0.1, 5.0]
    )
    assert np.isnan(lead[3]).all()
    for group in np.unique(groups):
        rest = groups != group
        for k, alpha in enumerate([0.1, 5.0]):
            model = RankRLS(alpha, **options).fit_pairs(X, i[rest], j[rest], strength=s[rest], weight=c[rest])
            f = model.predict(X)
            held = ~rest & (c > 0)
            np.testing.assert_allclose(lead[held, k], f[i[held]] - f[j[held]], rtol=1e-6, atol=1e-8)
    assert leave_preference_out(RankRLS(**options), X, i, j).shape == (P,)


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ({"groups": np.zeros(P)}, Refusal("Only one group", parameter="strength")),
        ({"groups": np.zeros(3)}, Refusal("3 entries", parameter="groups")),
        ({"strength": np.eye(P)[0]}, Refusal("Only one group", parameter="strength")),
        ({"alphas": [0.0]}, Refusal("alphas > 0", parameter="alphas")),
        ({"estimator": RankRLSCV()}, Refusal("got RankRLSCV", parameter="estimator")),
    ],
)
def test_refusals(arguments, refusal):
    i, j, _, _ = preferences(10)
    given = {"estimator": RankRLS(), **arguments}
    with refusal:
        leave_preference_out(given.pop("estimator"), RNG.normal(size=(10, 2)), i, j, **given)
