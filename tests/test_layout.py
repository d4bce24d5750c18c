"""``tests/`` mirrors ``src/``: the tests of a module are found under its name, or under what it holds."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "rankrls"
PACKAGES = ("numerics", "selection", "models", "metrics", "io", "export", "preprocessing")
UNDER_WHAT_IT_HOLDS = {
    # parts of one computation, tested as a whole against refits
    "numerics/eigen": "numerics/test_holdout",
    "numerics/smoother": "numerics/test_holdout",
    "numerics/units": "numerics/test_holdout",
    "numerics/runs": "numerics/test_graph",
    "numerics/scorer": "numerics/test_basis",
    # what one estimator needs of the search
    "selection/basis": "models/test_sparse_rankrls",
    "selection/krylov": "models/test_cg_rankrls",
    "models/spec": "models/test_parameters",
    "models/co_regularized": "models/test_co_rankrls",
    # what all estimators share
    "models/ranker": "models/test_integration",
    "models/greedy_rankrls": "learners/test_greedy",
    # formulas, under what they measure
    "metrics/_loops": "metrics/test_pairs",
    "metrics/_table": "metrics/test_positions",
    "metrics/_scorer": "models/test_routing",
    # steps of reading, under the formats that are read
    "io/_text": "io/test_letor",
    "io/rows": "io/test_tables",
    "io/columns": "io/test_tables",
    "io/formats": "io/test_tables",
    "io/reading": "io/test_tables",
    "io/files": "io/test_atomic",
    # formats of engines, each by the same oracles
    "export/_model": "export/test_engines",
    "export/onnx_graph": "export/test_engines",
}
"""The tests of modules that have none of their own name."""
MODULES = sorted(
    f"{package}/{path.stem}"
    for package in PACKAGES
    for path in (SOURCE / package).glob("*.py")
    if path.stem != "__init__"
)


def own_tests(module: str) -> str:
    package, name = module.split("/")
    return f"{package}/test_{name.lstrip('_')}"


@pytest.mark.parametrize("module", MODULES)
def test_a_module_has_tests_where_they_are_looked_for(module):
    named = UNDER_WHAT_IT_HOLDS.get(module, own_tests(module))
    assert (TESTS / f"{named}.py").exists()


def test_exceptions_are_needed():
    assert {*UNDER_WHAT_IT_HOLDS} <= {*MODULES}
    assert [module for module in UNDER_WHAT_IT_HOLDS if (TESTS / f"{own_tests(module)}.py").exists()] == []
