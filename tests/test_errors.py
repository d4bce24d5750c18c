"""Errors keep their facts: in text, in copies, and across processes."""

from __future__ import annotations

import pickle

import pytest

from rankrls._errors import InputError, InputWarning

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
