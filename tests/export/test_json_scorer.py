"""Models as JSON: the scorers in plain Python and JavaScript score as predict does."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from rankrls import CGRankRLS, CoRankingPursuit, CoRankRLS, RankBoost, RankingPursuit, RankRLS, SparseRankRLS
from rankrls.export import to_json
from rankrls.kernels import FORMULAS
from rankrls.preprocessing import LogScaler, QueryStandardScaler, TableEncoder
from tests.export.shop import fitted, shop, table_of
from tests.refusals import Refusal

NEW = table_of(shop(seed=7, new=True))
PROGRAM = """
import { readFileSync } from "node:fs";
import { score } from "./score.mjs";
const { model, rows } = JSON.parse(readFileSync("given.json", "utf8"));
let answer;
try { answer = { scores: score(model, rows) }; } catch (error) { answer = { error: error.message }; }
console.log(JSON.stringify(answer));
"""


def python(exported, rows, folder):
    """The scorer's file alone in a Python without packages."""
    exported.save(folder / "model.json")
    (folder / "given.json").write_text(json.dumps({"model": exported.json(), "rows": rows}))
    program = "import json, score; given = json.load(open('given.json')); print(json.dumps(score.score(**given)))"
    command = [sys.executable, "-S", "-c", program]
    answer = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise ValueError(answer.stderr)
    return json.loads(answer.stdout)


def javascript(exported, rows, folder):
    """The scorer's file in node."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    exported.save(folder / "model.json")
    (folder / "given.json").write_text(json.dumps({"model": exported.json(), "rows": rows}))
    (folder / "run.mjs").write_text(PROGRAM)
    answer = json.loads(
        subprocess.run([node, "run.mjs"], cwd=folder, capture_output=True, text=True, check=True).stdout
    )
    if "error" in answer:
        raise ValueError(answer["error"])
    return answer["scores"]


LANGUAGES = {"python": python, "javascript": javascript}


@pytest.fixture(params=LANGUAGES)
def scored(request, tmp_path):
    """Scores of rows by an exported model, in each language."""
    return lambda exported, rows: np.array(LANGUAGES[request.param](exported, rows, tmp_path))


def numbers(seed=0, m=60):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 4)) * [3.0, 40.0, 0.1, 1.0] + [0.0, 300.0, -2.0, 0.0]
    return X, np.argsort(np.argsort(X @ [0.5, 0.02, 5.0, -1.0])) // 15, np.arange(m) // 6


def close(scores, wanted):
    np.testing.assert_allclose(scores, wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())


@pytest.mark.parametrize(
    "step", [StandardScaler(), MinMaxScaler(), MaxAbsScaler(), RobustScaler(), LogScaler()], ids=str
)
def test_scalers(scored, step):
    X, y, _ = numbers()
    model = make_pipeline(step, StandardScaler(with_std=False), RankRLS()).fit(X, y)
    close(scored(to_json(model, offset=2.5), X.tolist()), model.predict(X) + 2.5)


ESTIMATORS = {
    **{kernel: RankRLS(kernel=kernel, gamma=0.2) for kernel in FORMULAS if kernel != "sigmoid"},
    "sigmoid": RankRLS(kernel="sigmoid", gamma=0.01, coef0=0.0, alpha=50.0),
    "basis": SparseRankRLS(n_basis=15),
    "iterative": CGRankRLS(),
    "stumps": RankBoost(n_estimators=40),
    "views": CoRankingPursuit(7, views=["laplacian", {"kernel": "poly", "features": [3, 0, 2], "degree": 2}]),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_functions(scored, name):
    X, y, qid = numbers()
    Z = StandardScaler().fit_transform(X)
    model = ESTIMATORS[name].fit(Z, y, qid=qid)
    close(scored(to_json(model), Z.tolist()), model.predict(Z))


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "polynomial"])
def test_no_items_are_the_zero_function(scored, kernel):
    model = RankingPursuit(kernel=kernel).fit(np.ones((6, 2)), np.arange(6.0))
    assert scored(to_json(model, offset=2.5), [[1.0, 1.0], [0.0, 3.0]]).tolist() == [2.5, 2.5]


def test_views_that_agree_on_unlabelled_rows(scored):
    X, _, qid = numbers()
    Z = StandardScaler().fit_transform(X)
    model = CoRankRLS([0.1], mu=1.0, n_views=3, kernel="rbf", gamma=0.3)
    model.fit(Z, np.where(qid < 4, Z[:, 0] - Z[:, 1], np.nan), qid=qid)
    close(scored(to_json(model), Z.tolist()), model.predict(Z))


def test_one_target_of_several_and_names(scored):
    X, y, _ = numbers()
    names = ["list price (€)", "größe.cm", 'the "best"', "it's"]
    frame = pd.DataFrame(X, columns=names)
    model = RankRLS(kernel="rbf", gamma=1e-4).fit(frame, np.column_stack((y, y**2)))
    with Refusal("2 targets", parameter="target"):
        to_json(model)
    exported = to_json(model, target=1)
    assert exported.json()["columns"] == names
    close(scored(exported, frame[names[::-1]].to_dict("records")), model.predict(frame)[:, 1])


def test_one_target_of_a_linear_model(scored):
    X, y, qid = numbers()
    model = RankRLS().fit(X, np.column_stack((y, -(y**2))), qid=qid)
    close(scored(to_json(model, target=1), X.tolist()), model.predict(X)[:, 1])


def test_stumps_are_strict_at_their_thresholds(scored):
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    model = RankBoost(n_estimators=3).fit(X, [0, 0, 1, 1])
    at = np.array(model.thresholds_)[:, None]
    points = np.vstack((at, np.nextafter(at, 9), np.nextafter(at, -9)))
    close(scored(to_json(model), points.tolist()), model.predict(points))


def test_words_that_mean_missing_match_whatever_their_case(scored):
    table = {"price": ["1", "2", "Sold Out", "4", "7"], "stock": [3, 1, 2, 9, 4]}
    model = make_pipeline(TableEncoder(missing="Sold Out", impute="median"), RankRLS()).fit(table, [1, 2, 3, 4, 5])
    cells = ["SOLD OUT", "sold out", "Sold Out", "3"]
    rows = [{"price": cell, "stock": 5} for cell in cells]
    close(scored(to_json(model), rows), model.predict({"price": cells, "stock": [5] * 4}))


@pytest.mark.parametrize(
    "options", [{}, {"text_features": ["similarity", "tfidf"]}, {"min_frequency": 20}, {"impute": 3.0}]
)
def test_tables(scored, options):
    model = fitted([StandardScaler(with_mean=False)], **options)
    rows = [dict(zip(NEW, row, strict=True)) for row in zip(*NEW.values(), strict=True)]
    wanted = model.predict(NEW)
    assert np.ptp(wanted) > 1.0
    close(scored(to_json(model), rows), wanted)


def test_cells_as_people_write_them(scored):
    """Numbers as categories and truth values match by value; dates have several forms; blanks do not count."""
    table = {
        "size": [38, 40, 38, 40, None],
        "code": ["007", "42", "007", "42", "007"],
        "new": ["true", "false", "true", "false", "true"],
        "price": [1.0, 2.5, 3.0, None, 4.0],
        "added": ["2024-03-01", "2024/3/9", "1.2.2024", "2020-01-05T10:30:15", "2024-03-01 12:00"],
    }
    encoder = TableEncoder(categorical=["size", "code", "new"], dates="added", min_frequency=1, missing=["n/a", "-"])
    model = make_pipeline(encoder, RankRLS()).fit(table, [1, 2, 3, 4, 5])
    rows = {
        "size": ["38.0", " 40 ", "38", "N/A", "41", "38.00", 36],
        "code": ["7", "42", "007", "42.0", "-", "", 7],
        "new": ["True", "1", " FALSE", "no", "0", "true", False],
        "price": ["1e0", " 2.5", "n/a", "3", ".5", "True", 7],
        "added": [
            "2024-03-01T10:00+02:00",
            "29.2.2024",
            "2023/12/31",
            "-",
            "2024-03-01T00:00:00.5Z",
            "1960-02-29",
            "2024-02-29 23:15:10-05:30",
        ],
    }
    records = [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)]
    close(
        scored(to_json(model), records), model.predict({name: [str(c) for c in cells] for name, cells in rows.items()})
    )


BAD = [("price", "x"), ("price", "inf"), ("price", "1_0"), ("added", "3/1/2024"), ("added", "30.2.2024")]


@pytest.mark.parametrize(("column", "cell"), BAD)
def test_bad_cells_are_errors(scored, column, cell):
    table = {"price": [1.0, 2.0, 4.0], "added": ["2024-01-01", "2024-02-01", "2024-02-07"]}
    model = make_pipeline(TableEncoder(), RankRLS()).fit(table, [1, 2, 3])
    row = {"price": 1.0, "added": "2024-01-01", column: cell}
    with pytest.raises(ValueError, match=column):
        scored(to_json(model), [row])
    del row[column]
    with pytest.raises((ValueError, KeyError), match=column):
        scored(to_json(model), [row])


def test_numbers_must_be_finite(scored):
    X, y, _ = numbers()
    exported = to_json(RankRLS().fit(X, y))
    with pytest.raises(ValueError, match="finite"):
        scored(exported, [[1.0, 2.0, None, 3.0]])


def test_what_json_cannot_hold_is_refused():
    X, y, qid = numbers()
    dates = {"added": ["1|2024", "3|2024", "4|2024"]}
    formats = make_pipeline(TableEncoder(dates="added", date_format="%m|%Y"), RankRLS()).fit(dates, [1, 2, 3])
    within = make_pipeline(QueryStandardScaler().fit(X, qid=qid), RankRLS().fit(X, y))
    for call, parameter, words in (
        (lambda: to_json(formats), "model", "date_format"),
        (lambda: to_json(within), "model", "within queries"),
        (lambda: to_json(RankRLS(kernel=lambda a, b: float(a @ b)).fit(X, y)), "model", "Python function"),
        (lambda: to_json(RankRLS(kernel="precomputed").fit(np.eye(4), [0, 1, 2, 3])), "model", "matrix"),
    ):
        with Refusal(words, parameter=parameter):
            call()
