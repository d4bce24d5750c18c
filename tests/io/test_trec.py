"""TREC's text files, against a parser in one line and against runs that the library writes."""

import io

import pytest
from tests.refusals import Refusal

from rankrls.io import load_qrels, load_run


def test_columns_stand_between_any_blanks():
    qrels = "q1\t0\td1\t2\n\nq1 0  d2 -1\r\nq0 Q0 d1 0.5\n"
    assert load_qrels(io.BytesIO(qrels.encode())) == {"q1": {"d1": 2.0, "d2": -1.0}, "q0": {"d1": 0.5}}
    run = "q1 Q0 d1 9 1e-3 x\nq1 Q0 d2 1 7 x"
    assert load_run(io.BytesIO(run.encode())) == {"q1": {"d1": 1e-3, "d2": 7.0}}


@pytest.mark.parametrize(
    ("load", "text", "words", "facts"),
    [
        (load_run, "q Q0 d 1 2 x\nq Q0 e 1 2\n", "document rank score", {"line": 2}),
        (load_run, "q Q0 d 1 nan x\n", "'nan'", {"line": 1, "column": "score"}),
        (load_run, "q Q0 d 1 2 x\n\nq Q0 d 2 1 x\n", "second time", {"line": 3, "column": "document"}),
        (load_qrels, "q 0 d good\n", "'good'", {"line": 1, "column": "label"}),
        (load_qrels, "q Q0 d 1 2 x\n", "iteration", {"line": 1}),
        (load_qrels, "\n", "no line", {}),
    ],
)
def test_a_bad_line_is_refused_with_its_place(load, text, words, facts):
    with Refusal(words, file="<stream>", **facts):
        load(io.BytesIO(text.encode()))
