"""Items with different labels in one query, against a dictionary of the rows of each."""

import io
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, strategies as st
from tests.refusals import Refusal

from rankrls import InputWarning
from rankrls.cli import main
from rankrls.io import load_letor, load_table, resolve_conflicts

ROWS = st.lists(st.tuples(st.integers(0, 2), st.sampled_from("abc"), st.integers(0, 2)), min_size=1, max_size=12)
CONFLICT = [(7, "a", 2), (7, "b", 0), (7, "a", 1), (8, "a", 0), (7, "c", 1), (7, "c", 1), (7, "a", 2), (8, "b", 1)]


def letor(rows, comment="docid = {}"):
    lines = (f"{y} qid:{qid} 1:{k}.5 # {comment.format(item)}\n" for k, (qid, item, y) in enumerate(rows))
    return load_letor(io.BytesIO("".join(lines).encode()))


def conflicts(rows):
    """The numbers of the rows of each item with different labels."""
    held = defaultdict(list)
    for k, (qid, item, _) in enumerate(rows):
        held[qid, item].append(k)
    return [numbers for numbers in held.values() if len({rows[k][2] for k in numbers}) > 1]


@given(ROWS)
def test_one_row_of_each_is_kept(rows):
    table, found = letor(rows), conflicts(rows)
    dropped = {k for numbers in found for k in numbers[:-1]}
    kept = [k for k in range(len(rows)) if k not in dropped]
    means = {numbers[-1]: np.mean([rows[k][2] for k in numbers]) for numbers in found}
    for how, labels in (("last", {}), ("mean", means)):
        out = resolve_conflicts(table, how)
        np.testing.assert_array_equal(out.X[:, 0], [k + 0.5 for k in kept])
        np.testing.assert_allclose(out.y, [labels.get(k, rows[k][2]) for k in kept], rtol=1e-15)
        assert out.qid.tolist() == [rows[k][0] for k in kept]
        assert out.docids.tolist() == [rows[k][1] for k in kept]
    if found:
        with Refusal(f"{len(found)} item", repr(rows[found[0][0]][1]), row=found[0][0], column="label"):
            resolve_conflicts(table, "refuse")
    else:
        assert resolve_conflicts(table, "refuse") is table


def csv(rows):
    return "qid,docid,label,x\n" + "".join(f"{qid},{item},{y},{k}\n" for k, (qid, item, y) in enumerate(rows))


def test_rows_without_a_label_are_neither_judgements_nor_dropped():
    text = b"qid,docid,label,a\n7,x,2,0\n7,x,,1\n7,x,1,2\n7,y,,3\n"
    with pytest.warns(InputWarning, match="1 item"):
        table = load_table(io.BytesIO(text), labels="optional")
    kept = resolve_conflicts(table)
    np.testing.assert_array_equal(kept.y, [np.nan, 1.5, np.nan])
    np.testing.assert_array_equal(kept.X, [[1.0], [2.0], [3.0]])


def test_reading_a_table_warns_once_with_the_count(tmp_path):
    rows = [*CONFLICT, (8, "a", 2)]
    with pytest.warns(InputWarning, match="2 items have different labels in one query") as caught:
        table = load_table(io.BytesIO(csv(rows).encode()))
    assert len(caught) == 1
    assert resolve_conflicts(table).y.tolist() == [0, 1, 1, 5 / 3, 1, 1]
    assert load_table(io.BytesIO(csv(rows).encode()), labels="ignored").n_rows == 9
    with Refusal(parameter="how"):
        resolve_conflicts(table, "first")


def test_commands_note_the_count_and_convert_resolves(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text(csv(CONFLICT))
    assert main(["fit", "a.csv", "-m", "m.rankrls"]) == 0
    assert capsys.readouterr().err.count("a.csv: 1 item has different labels") == 1
    assert main(["evaluate", "m.rankrls", "a.csv"]) == 0
    assert "1 item has different labels" in capsys.readouterr().err
    assert main(["predict", "m.rankrls", "a.csv"]) == 0
    assert capsys.readouterr().err == ""
    for how, labels in (("mean", [0, 0, 1, 1, 5 / 3, 1]), ("last", [0, 0, 1, 1, 2, 1])):
        assert main(["convert", "a.csv", f"{how}.csv", "--conflicts", how]) == 0
        assert load_table(f"{how}.csv").y.tolist() == labels
    assert main(["convert", "a.csv", "no.csv", "--conflicts", "refuse"]) == 2
    assert not (tmp_path / "no.csv").exists()
    capsys.readouterr()
    header, *rows = csv(CONFLICT).splitlines()
    clicks = [f"{header},place", *(f"{row},{k % 3 + 1}" for k, row in enumerate(rows))]
    (tmp_path / "clicks.csv").write_text("\n".join(clicks))
    main(["fit", "clicks.csv", "-m", "m.rankrls", "--position", "place"])
    assert "different labels" not in capsys.readouterr().err


def test_files_beside_the_rows_are_taken_into_account(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = [f"{y} qid:{qid} 1:{k} # docid = {item}\n" for k, (qid, item, y) in enumerate(CONFLICT)]
    (tmp_path / "clicks.txt").write_text("".join(lines))
    main(["fit", "clicks.txt", "-m", "m.rankrls"])
    assert "different labels" in capsys.readouterr().err
    (tmp_path / "clicks.txt.position").write_text("".join(f"{k % 3 + 1}\n" for k in range(len(lines))))
    main(["fit", "clicks.txt", "-m", "m.rankrls"])
    assert "different labels" not in capsys.readouterr().err
    text = [line.replace(f" qid:{qid}", "") for line, (qid, _, _) in zip(lines, CONFLICT, strict=True)]
    (tmp_path / "sizes.txt").write_text("".join(text))
    (tmp_path / "sizes.txt.query").write_text("3\n5\n")  # the other rows of "a" are in the second query
    main(["fit", "sizes.txt", "-m", "m.rankrls"])
    assert "2 items have different labels" in capsys.readouterr().err
