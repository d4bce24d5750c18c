"""What the command line does depends on the types and fields of errors, never on their words."""

import pytest
from tests.refusals import Refusal

from rankrls._errors import InputError, Stated

WORDS = "blah"


@pytest.fixture
def nonsense(monkeypatch):
    """Every message of the library says nothing."""
    monkeypatch.setattr(Stated, "render", lambda self, spell: WORDS)
    assert str(InputError("{alpha} is wrong")) == WORDS


def test_bad_input_is_status_2_and_one_line(nonsense, files, refused, monkeypatch):
    monkeypatch.chdir(files)
    for command in (
        "fit train.txt -m m.rankrls --kernel gaussian",
        "fit train.txt -m m.rankrls --alphas -1",
        "fit train.txt -m m.rankrls --cv 99",
        "fit train.txt -m m.rankrls --metric foo",
        "fit train.txt -m m.rankrls --method cg --kernel rbf",
        "fit train.txt -m m.rankrls --verbose --quiet",
        "fit train.txt -m m.rankrls --features 2",
        "cv train.txt --leave-pair-out --method cg",
        "split train.txt parts --parts 1",
    ):
        assert refused(*command.split(), Refusal(WORDS)) == f"rankrls: error: {WORDS}"
    assert not (files / "m.rankrls").exists()


def test_a_feature_beyond_those_of_training(nonsense, files, rows, letor, refused, monkeypatch):
    """The hint is added by the field ``parameter``."""
    monkeypatch.chdir(files)
    X, y, qid = rows(1)
    letor(files / "wide.txt", X.repeat(2, axis=1), y, qid)
    made = []
    monkeypatch.setattr(Stated, "followed", recording(Stated.followed, made))
    refused("fit", "train.txt", "--test", "wide.txt", "-m", "m.rankrls", Refusal(WORDS))
    assert any("sets another number" in template for template in made)


def test_values_that_overflow_are_found_in_the_file(nonsense, files, rows, letor, refused, monkeypatch):
    X, y, qid = rows(1)
    letor(files / "huge.txt", X * 1e200, y, qid)
    made = []
    monkeypatch.setattr(Stated, "__init__", recording(Stated.__init__, made))
    refused("fit", files / "huge.txt", "-m", files / "m.rankrls", Refusal(WORDS))
    assert any("products overflow" in template and "of feature" in template for template in made)


def test_a_table_that_is_read_as_letor_text(nonsense, files, refused, monkeypatch):
    made = []
    monkeypatch.setattr(Stated, "followed", recording(Stated.followed, made))
    (files / "table.dat").write_text("label,qid,a\n1,1,2\n")
    refused("fit", files / "table.dat", "-m", files / "m.rankrls", Refusal(WORDS))
    assert any("It is read as LETOR text" in template for template in made)


def test_what_is_right_is_as_it_was(nonsense, files, rankrls):
    assert rankrls("fit", files / "train.txt", "-m", files / "m.rankrls", "--alphas", "1", "-q").status == 0
    assert rankrls("explain", files / "m.rankrls", files / "test.txt", "0", "1").status == 0
    assert rankrls("explain", files / "m.rankrls", files / "test.txt", "0", "0").status == 2


def recording(original, made):
    def method(self, template, *values, **facts):
        made.append(template)
        return original(self, template, *values, **facts)

    return method
