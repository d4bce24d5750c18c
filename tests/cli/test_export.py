"""``rankrls export`` from fit to file."""

import json

import numpy as np
import onnxruntime
import pytest
from tests.export import engines
from tests.refusals import Refusal

from rankrls import RankRLS, load, save
from rankrls.export import ENGINES

NAMES = ["title", "body", "age", "clicks", "price"]


@pytest.fixture
def model(files, rankrls):
    (files / "names.txt").write_text("\n".join(NAMES) + "\n")
    result = rankrls("fit", files / "train.txt", "--scale", "standard-all", "--model", files / "m.rankrls", "--quiet")
    assert result.status == 0, result.err
    return files / "m.rankrls"


@pytest.mark.parametrize("engine", ENGINES)
def test_every_format(engine, model, files, rankrls, rows):
    out = files / "out"
    names = [] if engine == "onnx" else ["--names", files / "names.txt"]
    result = rankrls("export", model, out, "--format", engine, "--name", "m", "--offset", files / "train.txt", *names)
    assert result.status == 0, result.err
    assert result.out == ""
    X, _, _ = rows(1)
    predicted = load(model).predict(X)
    values = lambda name: np.ones(len(X)) if name == "rankrls_offset" else X[:, NAMES.index(name)]
    if engine == "onnx":
        (scores,) = onnxruntime.InferenceSession(out.read_bytes()).run(None, {"X": X.astype(np.float32)})
    else:
        scores = engines.SCORERS[engine](out.read_text(), values, [*NAMES, "rankrls_offset"])
    assert ("Define rankrls_offset" in result.err) == (b"rankrls_offset" in out.read_bytes())
    np.testing.assert_allclose(scores - scores.min(), predicted - predicted.min(), atol=1e-5)
    assert scores.min() == pytest.approx(max(1.0, predicted.min()), abs=1e-5)


def test_the_offsets_file_is_read_as_the_training_data_were(files, rankrls, rows, letor):
    """Both files count features from 0, but only the training data name feature 0."""
    X, y, qid = rows(1)
    text = letor(files / "one.txt", X, y, qid).read_text()
    for number in range(1, X.shape[1] + 1):
        text = text.replace(f" {number}:", f" {number - 1}:")
    (files / "zero.txt").write_text(text)
    (files / "items.txt").write_text("0 qid:1 1:9 4:-9\n0 qid:1 1:8 2:3\n")
    (files / "names.txt").write_text("\n".join(NAMES) + "\n")
    rankrls("fit", files / "zero.txt", "-m", files / "z.rankrls", "--quiet")
    options = ("--format", "json", "--names", files / "names.txt", "--offset", files / "items.txt")
    found = json.loads(rankrls("export", files / "z.rankrls", "-", *options).out)
    predicted = load(files / "z.rankrls").predict([[0.0, 9.0, 0.0, 0.0, -9.0], [0.0, 8.0, 3.0, 0.0, 0.0]])
    assert found["constant"] == pytest.approx(1.0 - predicted.min())
    assert found["constant"] > 2.0


def test_to_standard_output_and_folded(model, files, rankrls):
    common = ("--format", "solr", "--names", files / "names.txt")
    result = rankrls("export", model, "-", *common, "--fold", "--store", "s", "--quiet")
    found = json.loads(result.out)
    assert found["store"] == "s"
    assert all("norm" not in feature for feature in found["features"])
    assert result.err == ""
    assert all("norm" in feature for feature in json.loads(rankrls("export", model, "-", *common).out)["features"])


def test_scaling_of_all_rows_reaches_the_measures(model, files, rankrls):
    """evaluate scales the test file as fit scaled the training file."""
    result = rankrls("evaluate", model, files / "test.txt", "--metrics", "map", "--json")
    assert result.status == 0, result.err
    scaler = load(model).steps[0][1]
    assert type(scaler).__name__ == "StandardScaler"


def test_bad_input(model, files, refused, rankrls):
    names = files / "names.txt"
    out = files / "out.json"
    refused("export", model, out, "--format", "lucene", Refusal("--format", "one of", parameter="engine"))
    refused("export", model, out, "--format", "solr", Refusal("without names", parameter="feature_names"))
    refused(
        "export",
        model,
        out,
        "--format",
        "onnx",
        "--names",
        names,
        Refusal("--names", "--format onnx", parameter="names"),
    )
    refused(
        "export",
        model,
        out,
        "--format",
        "vespa",
        "--store",
        "s",
        Refusal("--store", "means nothing", parameter="store"),
    )
    refused(
        "export",
        model,
        out,
        "--format",
        "solr",
        "--phase",
        "first-phase",
        Refusal("--phase", "means nothing", parameter="phase"),
    )
    refused(
        "export", model, out, "--format", "json", "--names", names, "--offset", "lots", Refusal("a number or a file")
    )
    refused(
        "export",
        model,
        out,
        "--format",
        "json",
        "--names",
        names,
        "--offset",
        "nan",
        Refusal("--offset", "finite", parameter="offset"),
    )
    refused("export", model, files / "no" / "out", "--format", "json", "--names", names, Refusal("no", kind=OSError))
    bad = files / "bad.txt"
    bad.write_text("a\n\nc\nd\ne\n")
    refused("export", model, out, "--format", "solr", "--names", bad, Refusal("an empty line", file="bad.txt", line=2))
    bad.write_bytes(b"\xff\xfe\x00")
    refused("export", model, out, "--format", "solr", "--names", bad, Refusal("not a text file"))
    save(RankRLS(kernel="rbf").fit(np.eye(5), np.arange(5)), files / "rbf.rankrls")
    refused("export", files / "rbf.rankrls", out, "--format", "solr", "--names", names, Refusal("not linear"))
    rankrls("fit", files / "train.txt", "--scale", "minmax", "--model", files / "q.rankrls", "--quiet")
    refused(
        "export",
        files / "q.rankrls",
        out,
        "--format",
        "solr",
        "--names",
        names,
        Refusal("cannot know", parameter="model"),
    )
    assert not out.exists()


def test_no_command_writes_over_what_it_reads(model, files, refused, rankrls):
    """A slip of the hand must not cost the data."""
    train, test, names = files / "train.txt", files / "test.txt", files / "names.txt"
    before = {path: path.read_bytes() for path in (train, test, names, model)}
    (files / "link.txt").symlink_to(train)
    refused("fit", train, "--model", train, Refusal("would be overwritten"))
    refused("fit", train, "--model", files / "link.txt", Refusal("would be overwritten"))
    refused("fit", train, "--test", test, "--model", test, Refusal("would be overwritten"))
    refused("predict", model, test, "-o", test, Refusal("would be overwritten"))
    refused("predict", model, test, "-o", model, Refusal("would be overwritten"))
    refused("export", model, model, "--format", "solr", "--names", names, Refusal("would be overwritten"))
    refused("export", model, names, "--format", "solr", "--names", names, Refusal("would be overwritten"))
    rankrls("predict", model, test, "-o", files / "s.txt")
    refused("compare", test, model, files / "s.txt", "--html", test, Refusal("would be overwritten"))
    assert {path: path.read_bytes() for path in before} == before
    assert rankrls("fit", train, "--model", model, "--quiet").status == 0  # an old model may be replaced


def test_what_the_command_line_says_instead(model, files, refused, rankrls):
    out = files / "out.json"
    refused("export", model, out, "--format", "solr", Refusal("Give --names", parameter="feature_names"))
    rankrls("fit", files / "train.txt", "--scale", "minmax", "--model", files / "q.rankrls", "--quiet")
    names = files / "names.txt"
    export = ("export", files / "q.rankrls", out, "--format", "solr", "--names", names)
    refused(*export, Refusal("--scale standard-all", parameter="model"))
    refused(*export, "--offset", files / "test.txt", Refusal("--scale standard-all", parameter="model"))
    shown = rankrls("fit", files / "train.txt", "--scale", "standard-all", "--model", model).out
    assert "standard, by all training rows" in shown
    assert "minmax, inside each query" in rankrls("fit", files / "train.txt", "--scale", "minmax", "--model", model).out
