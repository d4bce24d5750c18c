"""The results that were kept of earlier versions are those of this one: see ``tests/golden/results.py``."""

import json

import numpy as np
import pytest
from tests.golden.results import FILE, cases, result

KNOWN = json.loads(FILE.read_text())
CASES = dict(cases())


def test_every_case_was_kept():
    assert CASES.keys() == KNOWN.keys()


@pytest.mark.parametrize("name", CASES)
def test_a_result_is_what_it_was(name):
    found, kept = result(CASES[name]), KNOWN[name]
    near = 1e-4 if name.startswith("~") else 1e-8  # iterative solvers stop at a tolerance
    assert found.keys() == kept.keys()
    if "best_score_" in kept:
        assert found["best_score_"] == pytest.approx(kept["best_score_"], rel=near)
    chosen = [(found[key], kept[key]) for key in ("alpha_", "C_") if key in kept]
    if all(ours == pytest.approx(theirs, rel=1e-6) for ours, theirs in chosen):
        scores = np.array(kept["scores"])
        np.testing.assert_allclose(found["scores"], scores, rtol=0, atol=near * np.abs(scores).max())
    else:  # another choice is as good only if its held-out value is
        assert found["best_score_"] == pytest.approx(kept["best_score_"], rel=1e-8)
