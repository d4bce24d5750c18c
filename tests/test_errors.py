"""Errors keep their facts: in text, in copies, and across processes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from rankrls import RankRLS
from rankrls._errors import InputError, InputWarning
from rankrls.inspection import posterior
from rankrls.metrics import Measure
from rankrls.preprocessing import TableEncoder
from tests.refusals import Refusal

KINDS = pytest.mark.parametrize("kind", [InputError, InputWarning])


@KINDS
def test_the_place_comes_first(kind):
    assert str(kind("y is missing.")) == "y is missing."
    assert str(kind("y is missing.", file="a.csv")) == "a.csv: y is missing."
    error = kind("the label is missing.", parameter="y", file="a.csv", line=3, row=2, column="grade")
    assert str(error) == "a.csv:3: the label is missing."
    assert (error.message, error.parameter, error.row, error.column) == ("the label is missing.", "y", 2, "grade")


@KINDS
def test_a_copy_has_other_facts(kind):
    error = kind("the label is missing.", parameter="y", file="a.csv", line=3)
    other = error.replace(message=f"ranking 'a': {error.message}", line=4)
    assert str(other) == "a.csv:4: ranking 'a': the label is missing."
    assert (type(other), other.parameter) == (kind, "y")
    assert str(error) == "a.csv:3: the label is missing."


@KINDS
def test_errors_survive_pickling(kind):
    error = kind("y is empty.", parameter="y", file="f", line=2, row=1, column=3)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (kind, str(error), vars(error))


@pytest.mark.parametrize(
    ("call", "parameter", "accepted"),
    [
        (lambda: RankRLS(kernel="gauss").fit(np.eye(3), [0, 1, 2]), "kernel", "a function"),
        (lambda: Measure("ndcg", gain="powers"), "gain", "gains of labels"),
        (lambda: Measure("map", empty="drop"), "empty", "'skip', a number"),
        (lambda: TableEncoder(impute="mode").fit({"age": [1.0, None]}), "impute", "a number"),
        (lambda: posterior(RankRLS(), np.eye(3), [0, 1, 2], alpha="auto"), "alpha", "a number above 0"),
    ],
)
def test_refused_words_are_told_everything_else_that_is_accepted(call, parameter, accepted):
    with Refusal("must be one of", accepted, parameter=parameter):
        call()
