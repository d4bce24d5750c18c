"""Errors keep their facts: in text, through renaming, and across processes."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankrls._errors import InputError, InputWarning, Parameter

KINDS = pytest.mark.parametrize("kind", [InputError, InputWarning])


@KINDS
def test_the_text_is_the_template_with_values_and_names(kind):
    error = kind(
        "{tol} must be below {0:g}; got {1!r}.", 1.0, "a", remedy="Lower {tol}, or take {cv=5}.", parameter="tol"
    )
    assert str(error) == "tol must be below 1; got 'a'. Lower tol, or take cv=5."
    assert error.args == (str(error),)
    spelled = error.render(lambda p: f"--{p.name}" + ("" if p.value is None else f" {p.value}"))
    assert spelled == "--tol must be below 1; got 'a'. Lower --tol, or take --cv 5."
    assert (error.problem, error.remedy) == ("tol must be below 1; got 'a'.", "Lower tol, or take cv=5.")


@KINDS
def test_the_place_comes_first(kind):
    error = kind("the label is missing.", file="a.csv", line=3, column="grade")
    assert str(error) == "a.csv:3: the label is missing."
    assert error.located(file="b.csv", line=None).place == "b.csv"
    assert str(error.located(line=4)) == "a.csv:4: the label is missing."
    assert str(error) == "a.csv:3: the label is missing."


@KINDS
def test_one_message_behind_another(kind):
    error = kind("{y} is missing.", remedy="Give {y}.", file="a.csv", parameter="y")
    both = error.then(kind("there is no {qid}.", remedy="Give it.")).then(kind("{cv=5} is wrong."))
    assert both.render(lambda p: f"--{p}") == (
        "a.csv: --y is missing. Give --y. There is no --qid. Give it. --cv=5 is wrong."
    )
    assert (both.parameter, both.problem, str(both)) == ("y", error.problem, both.args[0])


@given(st.text(), st.text(alphabet=st.characters(exclude_characters="{}")))
def test_values_are_never_read_as_templates(value, text):
    assert str(InputError(text + "{0}", value, remedy="")) == text + value


def test_parameters_can_be_renamed_for_a_function_that_hands_its_own_on():
    error = InputError("{qid} must be one-dimensional; got {0}.", (2, 2), parameter="qid", row=4)
    renamed = error.renamed({"qid": "groups"})
    assert (str(renamed), renamed.parameter, renamed.row) == (
        "groups must be one-dimensional; got (2, 2).",
        "groups",
        4,
    )
    assert str(InputError("take {cv=5}").renamed({"cv": "folds"})) == "take folds=5"


@KINDS
def test_words_come_before_the_problem_and_behind_the_place(kind):
    error = kind("{qid} has {0} entries.", 3, remedy="Give {qid}.", parameter="qid", file="f", line=2)
    inside = error.prefixed("ranking {0!r}: ", "{new}")
    assert str(inside) == "f:2: ranking '{new}': qid has 3 entries. Give qid."
    assert inside.render(lambda p: p.upper()) == "f:2: ranking '{new}': QID has 3 entries. Give QID."
    assert (inside.parameter, inside.remedy, inside.args) == ("qid", "Give qid.", (str(inside),))
    behind = error.followed("({0} of {ids=row}.)", "{all}")
    assert str(behind) == "f:2: qid has 3 entries. Give qid. ({all} of ids=row.)"
    assert behind.render(lambda p: p.upper()).endswith("Give QID. ({all} of IDS=ROW.)")
    assert (behind.parameter, behind.row, str(kind("Bad.").followed("Why."))) == ("qid", None, "Bad. Why.")
    assert str(error) == "f:2: qid has 3 entries. Give qid."


@KINDS
def test_facts_survive_pickling(kind):
    error = kind("{y} is {0}.", "empty", remedy="Fill {y}.", parameter="y", row=1, column="b", file="f", line=2)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert vars(copy) == vars(error)
    assert str(copy) == str(error)
    assert copy.render(lambda p: p.upper()) == "f:2: Y is empty. Fill Y."


def test_the_parameter_that_is_wrong_is_the_first_that_the_problem_names():
    assert InputError("{0} needs {cv=5}, not {alpha}.", Parameter("y")).parameter == "y"
    assert InputError("It needs {cv=5}, not {alpha}.").parameter == "cv"
    assert InputError("{a} and {b} differ.", parameter="b").parameter == "b"
    assert InputError("{a} is wrong.", parameter=None).parameter is None
    assert InputError("Wrong.", remedy="Give {a}.").parameter is None


def test_a_parameter_knows_its_value():
    assert (Parameter("cv").name, Parameter("cv").value) == ("cv", None)
    assert (Parameter("cv=5").name, Parameter("cv=5").value) == ("cv", "5")
