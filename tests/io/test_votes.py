"""Votes as people keep them: both sides in a row, and which was preferred."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from rankrls import InputError
from rankrls.io import load_votes

NAMES = ["owl", "crow", "a jay", "ünit"]
VOTES = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES), st.sampled_from(["left", "right", "tie"])), min_size=1
)


def read(text, **given):
    return load_votes(io.BytesIO(text.encode()), **given)


SIDES = {"left": "a", "right": "b", "preferred": "choice"}


@given(VOTES, st.booleans())
def test_votes_are_those_of_the_rows(votes, as_frame):
    frame = pd.DataFrame(votes, columns=["a", "b", "choice"])
    frame["prompt"] = [f"p{k % 3}" for k in range(len(votes))]
    expected = [
        (right, left, 1.0, f"p{k % 3}") if choice == "right" else (left, right, float(choice == "left"), f"p{k % 3}")
        for k, (left, right, choice) in enumerate(votes)
        if left != right
    ]
    source = frame if as_frame else io.BytesIO(frame.to_csv(index=False).encode())
    options = {**SIDES, "group": "prompt"}
    if not any(strength for *_, strength, _ in expected):
        with pytest.raises(InputError):
            load_votes(source, **options)
        return
    found = load_votes(source, **options)
    strength = np.ones(found.n_pairs) if found.strength is None else found.strength
    assert [
        *zip(found.items[found.winners], found.items[found.losers], strength, found.groups, strict=True)
    ] == expected
    assert sorted(found.items) == sorted({item for row in expected for item in row[:2]})
    assert found.summary()["ties"] == sum(strength == 0.0 for *_, strength, _ in expected)
    assert found.n_left_out == len(votes) - len(expected)


@pytest.mark.parametrize(
    ("choice", "winner"),
    [("left", 0), ("LEFT", 0), ("a", 0), ("l", 0), ("model_x", 0), ("owl", 0)]
    + [("right", 1), ("B", 1), ("second", 1), ("model_y", 1), ("crow", 1)],
)
def test_words_for_a_side(choice, winner):
    votes = read(f"model_x,model_y,c\nowl,crow,{choice}\n", left="model_x", right="model_y", preferred="c")
    assert votes.winners.tolist() == [winner]
    assert votes.strength is None


@pytest.mark.parametrize(
    "choice", ["tie", "Tie (bothbad)", "both_bad", "draw", "both good", "neither", "equal", "none"]
)
def test_words_for_a_tie(choice):
    votes = read(f"a,b,choice\nowl,crow,{choice}\nowl,crow,left\n", **SIDES)
    assert votes.strength.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    "choice", ["nonexistent-model", "tier1", "drawing", "equalizer", "both of them", "OWL", "Crow"]
)
def test_a_choice_that_is_neither_side_is_no_tie(choice):
    with pytest.raises(InputError) as error:
        read(f"a,b,choice\nowl,crow,owl\nowl,crow,{choice}\n", **SIDES)
    assert (error.value.row, error.value.column) == (1, "choice")
    with pytest.raises(InputError):  # an item, and a word in other letters
        read("a,b,choice\nTie,crow,tie\n", **SIDES)


def test_an_item_called_like_a_word_is_meant_itself():
    votes = read("a,b,choice\nright,left,left\n", **SIDES)
    assert votes.items[votes.winners].tolist() == ["left"]


def test_a_column_called_like_a_word_is_meant_itself():
    votes = read("b,a,pick\nowl,crow,a\n", left="b", right="a", preferred="pick")
    assert votes.items[votes.winners].tolist() == ["crow"]


def test_winners_and_losers_with_strength_and_weight():
    text = "good;bad;by;counts;who\nowl;crow;2;1;ann\njay;owl;0;0.5;bob\n"
    votes = read(text, winner="good", loser="bad", strength="by", weight="counts", group="who")
    assert votes.items.tolist() == ["owl", "crow", "jay"]
    assert (votes.strength.tolist(), votes.weight.tolist(), votes.groups.tolist()) == ([2, 0], [1, 0.5], ["ann", "bob"])


@pytest.mark.parametrize("empty", ["", None])
def test_an_empty_answer_is_an_item(empty):
    votes = load_votes(pd.DataFrame({"a": [empty], "b": ["crow"], "choice": ["right"]}), **SIDES)
    assert (votes.items[votes.winners].tolist(), votes.items[votes.losers].tolist()) == (["crow"], [""])


def test_groups_are_integers_in_some_batches_and_missing_in_others(monkeypatch):
    monkeypatch.setattr("rankrls.io.tables._BATCH_CELLS", 8)
    frame = pd.DataFrame({"a": list("xyxy"), "b": list("zzzz"), "choice": ["left"] * 4})
    votes = load_votes(frame.assign(voter=pd.array([7, 8, None, 7], "Int64")), **SIDES, group="voter")
    assert votes.groups.tolist() == ["7", "8", "", "7"]


def test_equal_items_are_left_out():
    votes = read("a,b,choice\nowl,owl,left\nowl,crow,left\n", **SIDES)
    assert (votes.n_pairs, votes.n_left_out) == (1, 1)


@pytest.mark.parametrize(
    ("text", "given", "facts"),
    [
        ("a,b,choice\nx,y,left\n\nx,y,what\n", SIDES, {"row": 1, "column": "choice"}),
        ("a,b,choice\nx,y,\nx,y,left\n", SIDES, {"row": 0}),
        ("a,b,choice\nx,y,tie\n", SIDES, {"file": "<stream>"}),
        ("a,b,choice\nx,y,left\n", {**SIDES, "left": "q"}, {"column": "q", "parameter": "left"}),
        ("a,b,choice\nx,y,left\n", {**SIDES, "group": "q"}, {"column": "q", "parameter": "group"}),
        ("a,b,choice,w\nx,y,left,-1\n", {**SIDES, "weight": "w"}, {"row": 0, "column": "w"}),
        ("a,b\nx,y\n", {"left": "a", "right": "b"}, {"parameter": "preferred"}),
        ("a,b\nx,y\n", {"winner": "a"}, {"parameter": "preferred"}),
        ("a,b\nx,y\n", {"winner": "a", "loser": "b", "left": "a"}, {"parameter": "preferred"}),
        ("a,b\nx,y\n", {}, {"parameter": "preferred"}),
    ],
)
def test_what_is_no_vote(text, given, facts):
    with pytest.raises(InputError) as error:
        read(text, **given)
    for name, value in facts.items():
        if name != "file":
            assert getattr(error.value, name) == value, error.value
