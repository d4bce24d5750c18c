"""Every parameter of every estimator refuses what it cannot be, by its own name, before anything is fitted."""

from __future__ import annotations

import pytest
from sklearn.base import clone

from rankrls import ConditionalRankRLS, ConditionalRankRLSCV, InputError, Items, RankSVM, RankSVMCV
from tests.models.oracles import ranking_data
from tests.models.test_routing import RANKERS

X, Y, QID = ranking_data(33, queries=14)
MODELS = {
    **RANKERS,
    "RankSVM": RankSVM(kernel="rbf", n_basis=5),  # a linear one has no basis
    "RankSVMCV": RankSVMCV((0.1, 1.0), kernel="rbf", n_basis=5),
    "ConditionalRankRLS": ConditionalRankRLS(),
    "ConditionalRankRLSCV": ConditionalRankRLSCV(),
}
NEGATIVE = {"coef0", "item_coef0"}  # of which -1 is one


class Odd:
    """Neither a number, a name, a sequence nor a function."""

    def __repr__(self):
        return "odd"


@pytest.mark.parametrize("name", MODELS)
def test_a_value_that_cannot_be_is_refused_by_the_name_of_its_parameter(name):
    model = MODELS[name]
    given = {"items": Items(X[:5])} if name.startswith("Conditional") else {"qid": QID}
    data = (X[:9], X[:9, [0, 1, 2, 3, 0]]) if name.startswith("Conditional") else (X, Y)
    for parameter in set(model.get_params(deep=False)):
        for value in (Odd(), "no such word", float("nan"), -1, ()):
            if (value == -1 and parameter in NEGATIVE) or (value == () and parameter == "positive"):
                continue
            with pytest.raises(InputError) as caught:
                clone(model).set_params(**{parameter: value}).fit(*data, **given)
            assert caught.value.parameter == parameter, caught.value
