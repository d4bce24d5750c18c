"""CSV and LETOR text read a part at a time, against the readers that hold everything in memory."""

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import issparse
from tests.refusals import Refusal

from rankrls.io import load_letor, load_table, open_dataset, save_letor, save_table
from rankrls.io.datasets import letor as letor_files
from rankrls.io.datasets import opening
from rankrls.io.datasets.index import cut
from rankrls.io.tables import delimited


def gathered(data):
    """All rows of a data set, as one part after the other gives them."""
    parts = [data.read(address, names=True) for address in data.parts]
    assert [part.first_row for part in parts] == np.cumsum([0, *(len(part.y) for part in parts)])[:-1].tolist()
    dense = lambda X: X.toarray() if issparse(X) else X
    names = {}
    for part in parts:
        names |= dict(zip(dict.fromkeys(part.query.tolist()), part.query_names, strict=True))
    query = np.concatenate([part.query for part in parts])
    return {
        "X": np.concatenate([dense(part.X) for part in parts]),
        "y": np.concatenate([part.y for part in parts]),
        "query": query,
        "qid": [names[q] for q in query.tolist()],
        "ids": [part.ids for part in parts],
        "sizes": [len(part.y) for part in parts],
    }


def check(data, tables, limit):
    """Against tables in memory, one for each file."""
    found = gathered(data)
    X = [table.X.toarray() if issparse(table.X) else table.X for table in tables]
    assert np.array_equal(found["X"], np.concatenate(X))
    assert np.array_equal(found["y"], np.concatenate([table.y for table in tables]), equal_nan=True)
    qid = [str(q) for table in tables for q in table.qid.tolist()]
    assert found["qid"] == qid
    first = {name: k for k, name in enumerate(dict.fromkeys(qid))}
    assert found["query"].tolist() == [first[name] for name in qid]
    assert max(found["sizes"]) <= limit
    return found


QIDS = st.sampled_from(["7", "8", "x", "query 9", 'a"b', "ä", "1,5"])
CELLS = st.floats(-1e6, 1e6).map(lambda v: round(v, 3))


@st.composite
def csv_text(draw):
    """Text of CSV with queries whose rows lie together, blank lines, quotes and either kind of line ends."""
    end = draw(st.sampled_from(["\n", "\r\n"]))
    lines = []
    for qid in draw(st.lists(QIDS, min_size=1, max_size=4, unique=True)):
        for _ in range(draw(st.integers(1, 5))):
            quoted = '"' + qid.replace('"', '""') + '"'
            note = draw(st.sampled_from(["plain", '"two\nlines"', '""']))
            lines.append(f"{draw(CELLS)!r},{quoted},{draw(st.integers(0, 2))},{note},{draw(CELLS)!r}")
            lines += [""] * draw(st.integers(0, 1))
    mark = draw(st.sampled_from(["", "\ufeff"]))
    return mark + end.join(["a,qid,label,note,b", *lines]) + draw(st.sampled_from(["", end]))


class TestCsv:
    @given(csv_text(), st.integers(1, 12), st.sampled_from([64, 100, 1 << 20]))
    @settings(max_examples=60, deadline=None)
    def test_against_load_table(self, tmp_path_factory, text, limit, block):
        path = tmp_path_factory.mktemp("csv") / "a.csv"
        path.write_bytes(text.encode())
        table = load_table(path, ignore="note")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(delimited, "_BLOCK", block)
            patch.setattr(delimited, "_BYTES_PER_COLUMN", 1)
            data = open_dataset(path, ignore="note", rows_per_part=limit)
            check(data, [table], limit)
        check(data, [table], limit)  # blocks of other sizes

    def test_a_query_over_the_end_of_a_file_and_ids(self, tmp_path):
        (tmp_path / "1.csv").write_text("qid,label,docid,a\n1,2,x,1\n2,0,y,2\n")
        (tmp_path / "2.csv").write_text("a;docid;label;qid\n3;z;1;2\n4;w;1;3\n")
        data = open_dataset(tmp_path, rows_per_part=3)
        found = gathered(data)
        assert (data.n_queries, found["sizes"], data.feature_names) == (3, [3, 1], ("a",))
        assert [ids.tolist() for ids in found["ids"]] == [["x", "y", "z"], ["w"]]
        assert found["X"].tolist() == [[1], [2], [3], [4]]

    def test_weights_and_missing_labels(self, tmp_path):
        path = tmp_path / "a.csv"
        path.write_text("qid,label,w,a\n1,2,0.5,1\n1,,1.5,2\n")
        (part,) = open_dataset(path, weight="w", labels="optional")
        assert part.weight.tolist() == [0.5, 1.5]
        assert np.array_equal(part.y, [2, np.nan], equal_nan=True)
        with Refusal("empty", line=3, column="label"):
            open_dataset(path, weight="w")
        for cell, line in (("-1", 3), ("", 3), ("nan", 3)):
            path.write_text(f"qid,label,w,a\n1,2,0.5,1\n1,1,{cell},2\n")
            with Refusal(line=line, column="w", file="a.csv"):
                open_dataset(path, weight="w")

    def test_a_bad_cell_is_told_with_its_line(self, tmp_path):
        path = tmp_path / "a.csv"
        path.write_text("qid,label,a\n" + "".join(f"{k},1,{k}\n" for k in range(50)) + "50,1,oops\n")
        data = open_dataset(path, rows_per_part=10)
        assert data.n_rows == 51
        with Refusal("oops", line=52, column="a", file="a.csv"):
            data.read(data.parts[-1])

    def test_a_query_that_comes_back(self, tmp_path):
        path = tmp_path / "a.csv"
        path.write_text("qid,label,a\n1,1,1\n\n2,1,1\n1,1,1\n")
        with Refusal("'1'", "line 2", "line 5", line=5, column="qid", remedy="--sort"):
            open_dataset(path)

    def test_other_columns(self, tmp_path):
        (tmp_path / "1.csv").write_text("qid,label,a,b\n1,2,1,1\n")
        (tmp_path / "2.csv").write_text("qid,label,a,c\n2,2,1,1\n")
        with Refusal("1.csv", file="2.csv", column="b", remedy="schema"):
            open_dataset(tmp_path)
        assert open_dataset(tmp_path, features="a").n_rows == 2

    def test_packed_text(self, tmp_path):
        for name, text in (("a.csv.gz", b"qid,label,a\n1,1,1\n"), ("a.txt.gz", b"1 qid:1 1:2\n")):
            (tmp_path / name).write_bytes(gzip.compress(text))
            with Refusal("packed", file=name, remedy="convert"):
                open_dataset(tmp_path / name)


@st.composite
def letor_text(draw):
    """LETOR text with comments, blanks, sparse lines, and ids that are numbers or texts."""
    lines = []
    qids = st.sampled_from(["1", "2", "-3", "07", "x", "y.z", "12345678901234567890"])
    for qid in draw(st.lists(qids, min_size=1, max_size=4, unique=True)):
        for _ in range(draw(st.integers(1, 4))):
            cells = [f"{k}:{draw(CELLS)!r}" for k in sorted(draw(st.sets(st.integers(1, 6), min_size=1)))]
            place = draw(st.integers(0, len(cells)))
            label = draw(
                st.sampled_from(["0", "2", "1.5", "0.1000000000000000055511151231257827021181583404541015625"])
            )
            line = " ".join([label, *cells[:place], f"qid:{qid}", *cells[place:]])
            lines.append(line + draw(st.sampled_from(["", " # docid = d7 x", " ", "\t#", "\r"])))
            lines += draw(st.sampled_from([[], [""], ["# only a comment"]]))
    return draw(st.sampled_from(["", "\ufeff"])) + "\n".join(lines) + draw(st.sampled_from(["", "\n"]))


class TestLetor:
    @given(letor_text(), st.integers(1, 12), st.sampled_from([80, 200, 1 << 21]))
    @settings(max_examples=60, deadline=None)
    def test_against_load_letor(self, tmp_path_factory, text, limit, block):
        path = tmp_path_factory.mktemp("letor") / "a.txt"
        path.write_bytes(text.encode())
        table = load_letor(path)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(letor_files, "_BLOCK", block)
            data = open_dataset(path, rows_per_part=limit)
            check(data, [table], limit)
        assert data.n_features == table.n_features
        assert data.source.dense == (not issparse(table.X))
        check(data, [table], limit)  # blocks of other sizes

    @pytest.mark.parametrize("density", [0.03, 0.5])
    def test_several_files_have_one_shape(self, tmp_path, density):
        rng = np.random.default_rng(0)
        tables = []
        for k, columns in enumerate((20, 50, 10)):
            X = rng.random((40, columns)) * (rng.random((40, columns)) < density)
            X[0, -1] = 1.0
            save_letor(tmp_path / f"{k}.txt", X, rng.integers(0, 3, 40), 3 * k + np.arange(40) // 15, drop_zeros=True)
            tables.append(load_letor(tmp_path / f"{k}.txt", n_features=50))
        data = open_dataset(tmp_path, rows_per_part=30)
        assert (data.n_features, data.source.dense) == (50, density == 0.5)
        check(data, tables, 30)
        assert open_dataset(tmp_path, features="60").n_features == 60

    def test_features_from_0_on_are_those_of_all_files(self, tmp_path):
        (tmp_path / "1.txt").write_text("1 qid:1 1:5 2:6\n")
        (tmp_path / "2.txt").write_text("1 qid:2 0:7\n")
        assert gathered(open_dataset(tmp_path))["X"].tolist() == [[0, 5, 6], [7, 0, 0]]

    def test_docids(self, tmp_path):
        path = tmp_path / "a.txt"
        path.write_text("1 qid:1 1:5 # docid = x\n0 qid:1 1:6 # docid = y\n1 qid:2 1:7\n")
        data = open_dataset(path, rows_per_part=2)
        ids = gathered(data)["ids"]
        assert ids[0].tolist() == ["x", "y"]
        assert ids[1] is None

    def test_a_part_reads_its_own_bytes_only(self, tmp_path, monkeypatch):
        monkeypatch.setattr(letor_files, "_BLOCK", 400)
        lines = [f"{k % 3} qid:{k // 3} 1:{k} 2:{k * k}" + "\n# a note" * (k % 5 == 0) for k in range(60)]
        (tmp_path / "a.txt").write_text("# first\n\n" + "\n".join(lines) + "\n")
        data = open_dataset(tmp_path / "a.txt", rows_per_part=10)
        spans = [span for address in data.parts for span in address.spans]
        assert len(spans) == len(data.parts) > 5
        assert all(span.skip == 0 for span in spans)
        assert [span.last for span in spans[:-1]] == [span.first for span in spans[1:]]
        text = (tmp_path / "a.txt").read_bytes()
        assert all(text[: span.first].count(b"\n") == span.line - 1 for span in spans)
        check(data, [load_letor(tmp_path / "a.txt")], 10)

    def test_as_tables_hold_it(self, tmp_path):
        rng = np.random.default_rng(3)
        X, y, qid = rng.standard_normal((60, 4)), rng.integers(0, 3, 60), np.arange(60) // 7
        save_letor(tmp_path / "a.txt", X, y, qid)
        save_table(tmp_path / "a.csv", X, y, qid)
        save_table(tmp_path / "a.parquet", X, y, qid)
        found = [gathered(open_dataset(tmp_path / f"a.{end}", rows_per_part=20)) for end in ("txt", "csv", "parquet")]
        for other in found[1:]:
            assert np.array_equal(other["X"], found[0]["X"])
            assert other["qid"] == found[0]["qid"]
            assert other["sizes"] == found[0]["sizes"]

    @pytest.mark.parametrize(
        ("line", "words", "facts"),
        [
            ("oops qid:3 1:1", "oops", {"column": "label"}),
            ("1 1:1", "qid", {}),
            ("1e999 qid:3 1:1", "1e999", {"column": "label"}),
            ("1 qid: 1:1", "qid", {}),
        ],
    )
    @pytest.mark.parametrize("block", [30, 1 << 21])
    def test_bad_lines_are_told_at_once(self, tmp_path, monkeypatch, line, words, facts, block):
        monkeypatch.setattr(letor_files, "_BLOCK", block)
        path = tmp_path / "a.txt"
        path.write_text("# first\n1 qid:1 1:5\n1 qid:2 1:5\n" + line + "\n")
        with Refusal(words, file="a.txt", line=4, **facts):
            open_dataset(path)

    def test_bad_features_are_told_when_they_are_read(self, tmp_path):
        path = tmp_path / "a.txt"
        path.write_text("".join(f"1 qid:{k} 1:5\n" for k in range(30)) + "1 qid:31 1:x\n")
        data = open_dataset(path, rows_per_part=10)
        with Refusal("x", file="a.txt", line=31, column=1):
            data.read(data.parts[-1])

    def test_a_query_that_comes_back(self, tmp_path):
        path = tmp_path / "a.txt"
        path.write_text("1 qid:1 1:5\n# nothing\n1 qid:x 1:5\n1 qid:1 1:5\n")
        with Refusal("'1'", "line 1", "line 4", line=4):
            open_dataset(path)

    def test_no_query_ids_and_no_rows(self, tmp_path):
        path = tmp_path / "a.txt"
        path.write_text("1 1:5\n")
        with Refusal("qid", line=1):
            open_dataset(path)
        path.write_text("# nothing\n")
        with Refusal("no rows", file="a.txt"):
            open_dataset(path)

    @pytest.mark.parametrize("role", ["label", "qid", "id", "ignore", "weight"])
    def test_columns_are_those_of_tables(self, tmp_path, role):
        (tmp_path / "a.txt").write_text("1 qid:1 1:5\n")
        with Refusal("tables", parameter=role):
            open_dataset(tmp_path / "a.txt", **{role: "x"})

    def test_numbers_of_features(self, tmp_path):
        (tmp_path / "a.txt").write_text("1 qid:1 1:5\n")
        for features in ("x", "0", ["a", "b"]):
            with Refusal(parameter="features"):
                open_dataset(tmp_path / "a.txt", features=features)
        (tmp_path / "a.txt").write_text("1 qid:1 900000000:5\n")
        with Refusal("900000000", parameter="features"):
            open_dataset(tmp_path / "a.txt")


def test_formats_are_not_mixed(tmp_path):
    (tmp_path / "a.txt").write_text("1 qid:1 1:5\n")
    (tmp_path / "b.csv").write_text("qid,label,a\n1,1,1\n")
    with Refusal("csv", "letor", file="b.csv"):
        open_dataset(tmp_path)
    save_table(tmp_path / "c.arrow", np.ones((1, 1)), [1], [1])
    with Refusal("Arrow", file="c.arrow", remedy="convert"):
        open_dataset(tmp_path / "c.arrow")


def test_blocks_of_blank_lines_and_comments(tmp_path, monkeypatch):
    """What a block holds at most is taken from its lines, unless that would be too much."""
    path = tmp_path / "a.txt"
    path.write_text("1 qid:1 1:5 2:6\n" + "\n# qid:7 1:1 2:2 # 3\n" * 40 + "0 qid:a 1:7 2:8\n" + "\n" * 50)
    table = load_letor(path)
    for most in (1 << 25, 20, 0):
        monkeypatch.setattr(letor_files, "_MOST_CELLS", most)
        for block in (100, 1 << 21):
            monkeypatch.setattr(letor_files, "_BLOCK", block)
            check(open_dataset(path, rows_per_part=1), [table], 1)


@pytest.fixture
def passes(monkeypatch):
    """How often all rows were looked at."""
    found = []
    monkeypatch.setattr(opening, "cut", lambda *given: (found.append(1), cut(*given))[1])
    return found


class TestRowsOfAPartByTheNumberOfFeatures:
    def test_one_pass(self, tmp_path, passes):
        text = "".join(f"{k % 3} qid:{k // 4} 1:{k} 2:1 3:2\n" for k in range(100))
        (tmp_path / "a.txt").write_text(text)
        told = []
        data = open_dataset(tmp_path / "a.txt", rows_per_part=lambda n: told.append(n) or 10)
        assert {*told} == {3}
        assert max(address.rows for address in data.parts) == 8
        assert len(passes) == 1

    def test_never_more_than_usual(self, tmp_path, monkeypatch):
        monkeypatch.setattr(opening, "_PART_BYTES", 8 * 20)
        (tmp_path / "a.txt").write_text("".join(f"1 qid:{k} 1:{k} 2:1\n" for k in range(30)))
        data = open_dataset(tmp_path / "a.txt", rows_per_part=lambda n: 10**9)
        assert 5 < max(address.rows for address in data.parts) <= 10

    def test_features_that_only_the_last_lines_name(self, tmp_path, passes, monkeypatch):
        monkeypatch.setattr(letor_files, "_BLOCK", 100)
        lines = [f"1 qid:{k} 1:{k}" for k in range(100)] + ["1 qid:x 1:1 2:1 3:1 4:1"]
        (tmp_path / "a.txt").write_text("\n".join(lines))
        data = open_dataset(tmp_path / "a.txt", rows_per_part=lambda n: 40 // n)
        assert 5 < max(address.rows for address in data.parts) <= 10
        assert sum(address.rows for address in data.parts) == data.n_rows == 101
        assert len(passes) == 2
