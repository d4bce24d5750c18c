"""Expressions of SQL, in SQLite and DuckDB: their scores are those of predict."""

import sqlite3

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from rankrls import RankBoost, RankRLS
from rankrls.export import to_sql
from rankrls.preprocessing import LogScaler, QueryStandardScaler, TableEncoder
from tests.export.shop import fitted, shop, table_of
from tests.refusals import Refusal

NAMES = ["list price (€)", "größe.cm", 'the "best"', "it's", "select"]
NEW = shop(seed=7, new=True)
NUMBERS = {*NAMES, "price", "stock", "change", "drift", "size"}
TYPES = {"in_stock": "BOOLEAN", "added": "TIMESTAMP"} | dict.fromkeys(NUMBERS, "DOUBLE")
SCALERS = [
    [],
    [StandardScaler()],
    [MinMaxScaler()],
    [MaxAbsScaler()],
    [RobustScaler()],
    [LogScaler()],
    [StandardScaler(), LogScaler()],
]


def selected(database, rows, expression):
    """The values of an expression in a table of the rows."""
    quoted = {name: '"' + name.replace('"', '""') + '"' for name in rows}
    columns = ", ".join(f"{quoted[name]} {TYPES.get(name, 'VARCHAR')}" for name in rows)
    database.execute(f"CREATE TABLE items (row INTEGER, {columns})")
    marks = ", ".join("?" * len(rows))
    cells = [[*row] for row in zip(*rows.values(), strict=True)]
    for number, row in enumerate(cells):
        database.execute(f"INSERT INTO items VALUES ({number}, {marks})", row)
    return [score for (score,) in database.execute(f"SELECT {expression} FROM items ORDER BY row").fetchall()]


def sqlite(rows, expression):
    return selected(sqlite3.connect(":memory:"), rows, expression)


def duckdb(rows, expression):
    return selected(pytest.importorskip("duckdb").connect(), rows, expression)


DIALECTS = {"sqlite": sqlite, "duckdb": duckdb}


def numbers(seed, m=150):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, 5)) * [3.0, 40.0, 1e-3, 1.0, 1e4] + [0.0, 300.0, -2.0, 0.0, 0.0]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("steps", SCALERS, ids=str)
@pytest.mark.parametrize("ranker", [RankRLS(), RankBoost(n_estimators=30)], ids=str)
def test_numbers_are_scored_as_predict_does(dialect, steps, ranker):
    X, new = numbers(0), numbers(1)
    y = np.argsort(np.argsort(X @ [0.5, 0.02, 500.0, -1.0, 1e-4])) // 40
    model = make_pipeline(*steps, ranker).fit(X, y)
    expression = to_sql(model, feature_names=NAMES, offset=0.5, dialect=dialect).content
    scores = DIALECTS[dialect](dict(zip(NAMES, new.T.tolist(), strict=True)), expression)
    np.testing.assert_allclose(scores, model.predict(new) + 0.5, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("ranker", ["linear", "boosted"])
def test_tables_are_scored_as_predict_does(dialect, ranker):
    model = fitted(
        [StandardScaler()], min_frequency=20, text=(), query_text=None, text_features=None, ignore=["title", "query"]
    )
    if ranker == "boosted":
        model = make_pipeline(model[0], RankBoost(n_estimators=60)).fit(table_of(shop()), np.arange(150) % 7)
    kinds = {feature.kind for feature in model[0].features_}
    assert kinds >= {"number", "missing", "age", "sine", "cosine", "category", "none", "other"}
    rows = {name: values for name, values in table_of(NEW).items() if name in model[0].columns_needed_}
    scores = DIALECTS[dialect](rows, to_sql(model, "score", dialect=dialect).content)
    np.testing.assert_allclose(scores, model.predict(table_of(NEW)), rtol=1e-9, atol=1e-9)


def test_a_thousand_categories_are_a_shallow_expression():
    words = [f"it's {k}" for k in range(1500)]
    model = make_pipeline(TableEncoder(categorical="kind", min_frequency=1, max_categories=2000), RankRLS())
    model.fit({"kind": words}, np.arange(1500.0))
    scores = sqlite({"kind": [*words, "new"]}, to_sql(model, dialect="sqlite").content)
    np.testing.assert_allclose(scores, model.predict({"kind": [*words, "new"]}), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_spaces_around_a_category_do_not_count(dialect):
    rows = {"kind": ["red", " red", "red  ", "dark blue", "dark blue ", "new "]}
    model = make_pipeline(TableEncoder(categorical="kind", min_frequency=2), RankRLS()).fit(rows, [2, 2, 2, 0, 0, 1])
    scores = DIALECTS[dialect](rows, to_sql(model, dialect=dialect).content)
    np.testing.assert_allclose(scores, model.predict(rows), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("ranker", [RankRLS(), RankBoost()])
def test_a_missing_number_has_no_score(ranker):
    X = numbers(0)
    model = ranker.fit(X, X[:, 0] > 1.0)
    rows = dict(zip(NAMES, X[:3].T.tolist(), strict=True))
    rows[NAMES[0]][1] = None
    scores = sqlite(rows, to_sql(model, feature_names=NAMES, dialect="sqlite").content)
    assert [score is None for score in scores] == [False, True, False]


def test_the_name_and_the_target():
    X = numbers(0)
    model = RankRLS().fit(X, np.column_stack((X[:, 0], X[:, 3])))
    with Refusal("2 targets", parameter="target"):
        to_sql(model, feature_names=NAMES)
    exported = to_sql(model, 'my "score"', feature_names=NAMES, target=1, dialect="sqlite")
    assert exported.content.endswith(' AS "my ""score"""')
    scores = sqlite(dict(zip(NAMES, X.T.tolist(), strict=True)), exported.content)
    np.testing.assert_allclose(scores, model.predict(X)[:, 1], rtol=1e-9, atol=1e-9)


def test_what_sql_cannot_express_is_refused():
    X = numbers(0)
    given = {"feature_names": NAMES}
    qid = np.arange(150) // 10
    within = QueryStandardScaler().fit(X, qid=qid)
    for call, parameter, words in (
        (lambda: to_sql(RankRLS(kernel="rbf").fit(X, X[:, 0]), **given), "model", "kernel"),
        (lambda: to_sql(fitted(text_features="matches")), "model", "title"),
        (lambda: to_sql(fitted()), "model", "title"),
        (lambda: to_sql(make_pipeline(within, RankRLS().fit(X, X[:, 0])), **given), "model", "within queries"),
        (lambda: to_sql(RankRLS().fit(X, X[:, 0])), "feature_names", "data frame"),
        (lambda: to_sql(RankRLS().fit(X, X[:, 0]), dialect="mysql", **given), "dialect", "mysql"),
    ):
        with Refusal(words, parameter=parameter):
            call()
