"""Bad input ends with status 2 and one line about the right parameter, file, row and column."""

import pytest
from tests.refusals import Refusal, told

FIT = "fit train.txt -m m.rankrls"


@pytest.mark.parametrize(
    ("command", "refusal"),
    [
        (f"{FIT} --kernel gaussian", Refusal("'rbf'", parameter="kernel")),
        (f"{FIT} --alphas -1", Refusal("at least 0; got -1.0", "(--alphas)", parameter="alpha")),
        (
            f"{FIT} --set foo=1",
            Refusal("RankRLSCV has no parameter 'foo'. Its parameters are alphas,", parameter="foo"),
        ),
        (f"{FIT} --set alfas=1", Refusal("Did you mean 'alphas'?", parameter="alfas")),
        (f"{FIT} --metric map --cv leave_pair_out", Refusal("(--metric)", parameter="scoring")),
        (f"{FIT} --set scoring=map", Refusal("--metric", parameter="scoring")),
        (f"{FIT} --group short.txt", Refusal("--group", file="train.txt", parameter="group")),
        (f"{FIT} --set ties=maybe", Refusal("'maybe'", parameter="ties")),
        (f"{FIT} --method ranksvm --alphas 1", Refusal("RankSVMCV has no", "Cs,", "(--alphas)", parameter="alphas")),
        (f"{FIT} --metric ndgc@10", Refusal("Did you mean 'ndcg'?")),
        (f"{FIT} --convention treck", Refusal("trec", parameter="convention")),
        (f"{FIT} --cv 99", Refusal("99", parameter="cv")),
        (f"{FIT} --cv leave_one_out", Refusal("leave_one_out", "(--cv)", parameter="cv")),
        (f"{FIT} --vali vali.txt --cv 3", Refusal("cannot be used together", parameter="vali")),
        (f"{FIT} --unlabelled vali.txt", Refusal("transductive", parameter="unlabelled")),
        (
            f"{FIT} --method transductive --vali vali.txt",
            Refusal("TransductiveRankRLSCV cannot use this (--vali)", parameter="X_val"),
        ),
        (f"{FIT} --features 2", Refusal("train.txt:1", parameter="n_features")),
        (f"{FIT} --label grade", Refusal("LETOR text", parameter="label")),
        (f"{FIT} --columns auto", Refusal("LETOR text", parameter=None)),
        ("fit none.txt -m m.rankrls", Refusal("No such file", kind=OSError)),
        ("fit none.cvs --label grade -m m.rankrls", Refusal("No such file", kind=OSError)),
        ("fit train.txt -m nowhere/m.rankrls", Refusal("There is no folder", kind=OSError)),
        ("fit train.txt -m train.txt", Refusal("would be overwritten", file="train.txt")),
        ("cv train.txt --method rankboost", Refusal("validation data (--vali)", parameter="cv")),
        ("cv train.txt --cv leave_pair_out --method ranksvm", Refusal(parameter="cv")),
        ("predict train.txt train.txt", Refusal("train.txt")),
        ("info .", Refusal("Is a directory", kind=OSError)),
        ("evaluate --scores short.txt test.txt", Refusal("1 scores", "96 rows")),
        ("evaluate test.txt", Refusal("MODEL and DATA", parameter="scores")),
        ("compare test.txt short.txt", Refusal("two or more", parameter="models")),
        ("split train.txt parts --parts 1,1e9", Refusal("12 queries")),
        ("split train.txt parts --parts 1", Refusal("60,20,20", parameter="parts")),
        ("convert train.txt out.txt --names names.txt", Refusal("has no feature names", parameter="names")),
    ],
    ids=told,
)
def test_bad_input(files, refused, command, refusal):
    (files / "short.txt").write_text("1\n")
    (files / "names.txt").write_text("a\nb\nc\nd\ne\n")
    refused(*command.split(), refusal)
    assert not (files / "m.rankrls").exists()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (f"{FIT} --scale robust", ["--scale", "standard-all"]),
        (f"{FIT} --method rankboosted", ["--method", "rankboost"]),
        (f"{FIT} --alphas 1:0:3", ["--alphas", "lo:hi:n"]),
        (f"{FIT} --set positive", ["--set", "'positive' is not name=value"]),
        (f"{FIT} --features a,,b", ["--features", "no name between two commas"]),
        (f"{FIT} --threads 0", ["--threads"]),
        (f"{FIT} --verbos", ["No such option"]),
        ("fits train.txt", ["No such command"]),
    ],
)
def test_wrong_options_name_the_option_and_the_help(files, rankrls, command, words):
    result = rankrls(*command.split())
    assert (result.status, result.out) == (2, "")
    assert all(word in result.err for word in [*words, "--help)"]), result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("", Refusal(file="bad.txt")),
        ("1 qid:1 1:0.5\nx qid:1 1:1\n", Refusal("label", file="bad.txt", line=2)),
        ("1 1:0.5\n0 1:1\n", Refusal("(--global)", parameter="qid")),
        ("1 qid:1 1:nan\n0 qid:1 1:1\n", Refusal(file="bad.txt", line=1)),
        ("1 qid:1 1:1\n1 qid:1 1:2\n", Refusal("different labels", parameter="y", file="bad.txt")),
    ],
    ids=told,
)
def test_bad_files(files, refused, text, refusal):
    (files / "bad.txt").write_text(text)
    refused("fit", "bad.txt", "-m", "m.rankrls", refusal)


def test_a_value_that_is_too_large_is_found_in_its_file(files, rows, letor, refused):
    X, y, qid = rows(1)
    X[3, 2] = 1e300
    letor(files / "huge.txt", X, y, qid)
    refused("fit", "huge.txt", "-m", "m.rankrls", Refusal("huge.txt", parameter="X", row=3, column="3"))


@pytest.mark.parametrize("more", [(), ("--columns", "auto")], ids=["numbers", "encoded"])
@pytest.mark.parametrize("cell", ["x7", "1e300"])
def test_a_cell_of_a_table_is_found_by_its_line(files, refused, more, cell):
    lines = [f"{q},{a},{a % 2}" for q in "uvw" for a in range(40)]
    (files / "bad.csv").write_text("\n".join(["q,a,y", *lines[:4], f"u,{cell},1", *lines[5:]]) + "\n")
    wrong = Refusal(cell if cell == "x7" else "overflow", file="bad.csv", line=6)
    refused("fit", "bad.csv", "-m", "m.rankrls", "--label", "y", "--qid", "q", *more, wrong)


def test_labels_that_are_words_are_refused_with_the_coding(files, refused):
    (files / "bad.csv").write_text(
        "q,a,bought\n" + "".join(f"{k // 4},{k},{'yes' if k % 2 else 'no'}\n" for k in range(8))
    )
    given = ("fit", "bad.csv", "-m", "m.rankrls", "--label", "bought", "--qid", "q")
    refused(*given, Refusal("'no'", "1 for yes and 0 for no", "Higher labels", file="bad.csv", line=2, column="bought"))


def test_models_that_do_not_fit_the_data(files, rows, letor, works, refused):
    X, y, qid = rows(1)
    letor(files / "wide.txt", X.repeat(2, axis=1), y, qid)
    letor(files / "flat.txt", X, y)
    works("fit", "train.txt", "-m", "m.rankrls")
    refused("predict", "m.rankrls", "wide.txt", Refusal("from 1 to 5", parameter="n_features"))
    refused("rank", "m.rankrls", "flat.txt", Refusal("every line needs a qid"))
    refused("rank", "m.rankrls", "test.txt", "--global", Refusal("different queries"))
    letor(files / "rows.txt", X, y, qid)
    refused("explain", "m.rankrls", "test.txt", "d900", Refusal("0 rows have 'd900' as id", "'d0'"))
    refused("explain", "m.rankrls", "rows.txt", "96", Refusal("as number", "(--id)"))
    twice = (files / "test.txt").read_text().replace("d9\n", "d0\n")
    (files / "twice.txt").write_text(twice)
    refused("explain", "m.rankrls", "twice.txt", "d0", Refusal("2 rows have 'd0' as id", "(--query)"))
    refused("export", "m.rankrls", "m.json", "--format", "solr", Refusal("without names"))
    refused("export", "m.rankrls", "m.json", "--format", "opensearch", "--store", "x", Refusal(parameter="store"))
    refused(
        "export", "m.rankrls", "m.json", "--format", "solr", "--offset", "x", Refusal("x: No such file", kind=OSError)
    )
    (files / "odd.csv").write_text("qid,f1,f2\n1,0.5,1\n")
    works("convert", "train.txt", "train.csv")
    works("fit", "train.csv", "-m", "t.rankrls")
    wrong = Refusal("no columns 'f3'", "The model needs", file="odd.csv", parameter=None)
    refused("predict", "t.rankrls", "odd.csv", wrong)
    (files / "m.rankrls").write_bytes(b"PK damaged")
    refused("predict", "m.rankrls", "test.txt", Refusal("m.rankrls"))


def test_an_internal_error_says_how_to_report_it(files, rankrls, monkeypatch):
    from rankrls.cli.commands import fit

    monkeypatch.setattr(fit, "fit", lambda *_: 1 / 0)
    result = rankrls("fit", "train.txt", "-m", "m.rankrls")
    assert result.status == 1
    assert result.err.startswith("rankrls: error: internal error: ZeroDivisionError")
    monkeypatch.setenv("RANKRLS_DEBUG", "1")
    assert "Traceback" in rankrls("fit", "train.txt", "-m", "m.rankrls").err


def test_scores_in_another_order_are_refused_with_the_first_row(files, refused):
    items = [f"d{k}" for k in range(96)]
    items[4:6] = items[5:3:-1]
    (files / "turned.csv").write_text("docid,score\n" + "".join(f"{item},1\n" for item in items))
    wrong = Refusal("'d5'", "'d4'", "order", file="turned.csv", row=4)
    refused("evaluate", "--scores", "turned.csv", "test.txt", wrong)


def test_events_that_are_words_are_refused_with_the_coding(files, refused):
    (files / "bad.csv").write_text(
        "a,days,died\n" + "".join(f"{k},{k + 1},{'yes' if k % 2 else 'no'}\n" for k in range(8))
    )
    given = ("fit", "bad.csv", "-m", "m.rankrls", "--label", "days", "--event", "died")
    refused(*given, Refusal("'no'", "0 if it was censored", file="bad.csv", line=2))
