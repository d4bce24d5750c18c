"""TableEncoder against plain Python over the rows, on tables of every kind."""

import re
from collections import Counter
from datetime import date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankrls import InputError, RankRLS, RankRLSCV
from rankrls.inspection import explain
from rankrls.metrics import make_ranking_scorer
from rankrls.preprocessing import TableEncoder
from tests.refusals import Refusal


def shop(m=120, seed=0):
    """A messy shop table, as columns of texts; a missing cell is None."""
    rng = np.random.default_rng(seed)
    pick = lambda values, p=None: [values[k] for k in rng.choice(len(values), size=m, p=p)]
    words = ["red", "blue", "shoe", "shirt", "running", "summer", "long", "short", "men", "women"]
    return {
        "sku": [f"A-{k:05d}" for k in range(m)],
        "brand": pick(["H&M", 'The "Best"', "Acme", None, "rare one"], [0.4, 0.3, 0.2, 0.08, 0.02]),
        "price": [None if rng.random() < 0.1 else f"{v:.2f}" for v in rng.lognormal(3, 1, m)],
        "stock": [str(v) for v in rng.integers(0, 50, m)],
        "added": [
            f"{d:%Y-%m-%d}" if k % 2 else f"{d.day}.{d.month}.{d.year}"
            for k, d in enumerate(date.fromordinal(int(v)) for v in rng.integers(737000, 738900, m))
        ],
        "title": [" ".join(pick(words)[:5]) for _ in range(m)],
        "shop": ["north"] * m,
        "empty": ["n/a"] * m,
        "query": pick(["red shoe", "summer shirt women", "xylophone"]),
    }


QUERY = {"query_text": "query"}


def kinds(encoder):
    return {use.name: use.kind for use in encoder.columns_}


def test_kinds_are_decided_by_the_cells():
    encoder = TableEncoder(**QUERY).fit(shop())
    assert kinds(encoder) == {
        **{"sku": "unused", "brand": "category", "price": "number", "stock": "number", "added": "date"},
        **{"title": "text", "shop": "unused", "empty": "unused", "query": "query text"},
    }
    uses = {use.name: use for use in encoder.columns_}
    assert "id" in uses["sku"].reason
    assert uses["shop"].reason == "constant"
    assert "missing" in uses["empty"].reason
    assert uses["price"].n_missing == sum(v is None for v in shop()["price"])
    assert uses["brand"].n_distinct == 4
    assert uses["sku"].examples == ("A-00000", "A-00001")
    assert sum(use.n_features for use in uses.values()) == len(encoder.get_feature_names_out())


def day(text):
    parts = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)", text)
    found = date(*map(int, parts.groups()[::-1])) if parts else date.fromisoformat(text)
    return found.toordinal()


def test_features_are_those_of_a_loop_over_the_rows():
    table, new = shop(), shop(seed=5)
    new["brand"][:3] = ["unseen", None, "rare one"]
    encoder = TableEncoder(**QUERY).fit(table)
    X, names = encoder.transform(new), encoder.get_feature_names_out().tolist()
    counts = Counter(brand or "" for brand in table["brand"])
    frequent = {brand for brand, n in counts.items() if n >= 5}
    known = [float(v) for v in table["price"] if v is not None]
    latest = max(map(day, table["added"]))
    tfidf = TfidfVectorizer(token_pattern=r"\b\w+\b").fit(sorted(set(table["title"])))
    cosine = lambda a, b: float((tfidf.transform([a]) @ tfidf.transform([b]).T).toarray()[0, 0])
    for i in range(len(X)):
        brand, price, age = new["brand"][i] or "", new["price"][i], latest - day(new["added"][i])
        title, query = new["title"][i], new["query"][i]
        wanted = {
            "price": np.median(known) if price is None else float(price),
            "price (missing)": float(price is None),
            "stock": float(new["stock"][i]),
            "added (age in days)": age,
            "added (time of year, sine)": np.sin(2 * np.pi * age / 365.25),
            "added (time of year, cosine)": np.cos(2 * np.pi * age / 365.25),
            "added (time of week, sine)": np.sin(2 * np.pi * age / 7),
            "added (time of week, cosine)": np.cos(2 * np.pi * age / 7),
            **{f"brand={b or '(missing)'}": float(brand == b) for b in frequent},
            "brand=(other)": float(brand not in frequent),
            "title (words of the query)": len(set(title.split()) & set(query.split())),
            "title (TF-IDF cosine with the query)": cosine(title, query),
        }
        assert set(names) == set(wanted)
        np.testing.assert_allclose(X[i], [wanted[name] for name in names], atol=1e-9)


def test_the_kind_of_table_does_not_matter():
    table = shop()
    frame = pd.DataFrame(table)
    tables = {
        "pandas": frame,
        "polars": pl.DataFrame(table),
        "pyarrow": pa.table(table),
        "chunks": pa.concat_tables([pa.table(frame[:50]), pa.table(frame[50:])]),
        "large": pa.table({k: pa.array(v, pa.large_string()) for k, v in table.items()}),
    }
    wanted = TableEncoder(**QUERY).fit_transform(table)
    for name, each in tables.items():
        encoder = TableEncoder(**QUERY).fit(each)
        np.testing.assert_array_equal(encoder.transform(each), wanted, err_msg=name)
        np.testing.assert_array_equal(encoder.transform(table), wanted, err_msg=name)


def test_typed_columns():
    days = [datetime(2024, 1, 1 + k % 28) for k in range(60)]
    numbers, sizes = [None if k % 9 == 0 else float(k % 7) for k in range(60)], [[38, 40, 42][k % 3] for k in range(60)]
    frame = pd.DataFrame(
        {"day": days, "number": numbers, "size": pd.Categorical(sizes), "new": [k % 2 == 0 for k in range(60)]}
    )
    mixed = pd.DataFrame({**frame, "mixed": [k % 4 if k % 2 else str(k % 4) for k in range(60)]})
    encoder = TableEncoder().fit(mixed)
    assert kinds(encoder) == {"day": "date", "number": "number", "size": "category", "new": "number", "mixed": "number"}
    assert "size=38" in encoder.get_feature_names_out()
    as_arrow = TableEncoder().fit_transform(pa.table(frame))
    np.testing.assert_array_equal(TableEncoder().fit_transform(frame), as_arrow)
    polars = pl.DataFrame(
        {**frame.drop(columns="size"), "size": pl.Series([str(s) for s in sizes], dtype=pl.Categorical)}
    )
    np.testing.assert_array_equal(
        TableEncoder().fit(polars).transform(frame), TableEncoder().fit(polars).transform(polars)
    )
    dates = pa.table({"day": pa.array([d.date() for d in days], pa.date32()), "number": pa.array(numbers)})
    np.testing.assert_array_equal(
        TableEncoder().fit_transform(dates), TableEncoder().fit_transform(frame[["day", "number"]])
    )


def embedded(m=40, size=5):
    """A table with lists, some of them missing, as lists of Python; and the lists as an array, NaN where missing."""
    rng = np.random.default_rng(2)
    lists = rng.normal(size=(m, size))
    lists[[3, 8]] = np.nan
    cells = [None if np.isnan(row[0]) else row.tolist() for row in lists]
    return {"emb": cells, "brand": ["a", "b"] * (m // 2), "price": rng.random(m).tolist()}, lists


def test_lists_are_a_feature_for_each_place():
    table, lists = embedded()
    encoder = TableEncoder().fit(table)
    X, names = encoder.transform(table), encoder.get_feature_names_out().tolist()
    assert kinds(encoder) == {"emb": "list", "brand": "category", "price": "number"}
    use = encoder.columns_[0]
    assert (use.n_missing, use.n_distinct, use.n_features) == (2, 38, 6)
    at = [names.index(f"emb[{k}]") for k in range(5)]
    filled = np.where(np.isnan(lists), np.nanmedian(lists, axis=0), lists)
    np.testing.assert_array_equal(X[:, at], filled)
    np.testing.assert_array_equal(X[:, names.index("emb (missing)")], np.isnan(lists[:, 0]))
    assert encoder.count_unusual(table) == {"emb": {"missing": 2}}
    filled_with_0 = TableEncoder(impute={"emb": 0.0}).fit(table)
    np.testing.assert_array_equal(filled_with_0.transform(table)[:, at], np.nan_to_num(lists))


def test_lists_of_every_kind_of_table():
    table, lists = embedded()
    wanted = TableEncoder().fit_transform(table)
    arrays = [None if row is None else np.array(row) for row in table["emb"]]
    known = np.nan_to_num(lists)
    as_lists = lambda kind: pa.table({**table, "emb": pa.array(table["emb"], kind)})
    for each in (
        pd.DataFrame({**table, "emb": pd.Series(arrays)}),
        pl.DataFrame(table),
        pl.DataFrame({**table, "emb": pl.Series(table["emb"], dtype=pl.Array(pl.Float64, 5))}),
        *map(as_lists, (pa.list_(pa.float64()), pa.large_list(pa.float64()), pa.list_(pa.float64(), 5))),
        as_lists(pa.list_(pa.float64())).slice(1),
        pa.concat_tables([as_lists(pa.list_(pa.float64())).slice(0, 7), as_lists(pa.list_(pa.float64())).slice(7)]),
    ):
        encoder = TableEncoder().fit(table)
        np.testing.assert_array_equal(encoder.transform(each), wanted[len(wanted) - len(each) :])
    plain = TableEncoder().fit_transform({"emb": known})
    np.testing.assert_array_equal(plain, known)
    np.testing.assert_array_equal(
        TableEncoder().fit_transform({"emb": known[:, ::2].astype(np.float32)}).shape, (40, 3)
    )


def test_lists_that_cannot_be_used():
    table, lists = embedded()
    cells = table["emb"]
    for bad in (cells[0][:4], [*cells[0], 1.0], [*cells[0][:4], np.inf], [*cells[0][:4], None], []):
        changed = {**table, "emb": [*cells[:5], bad, *cells[6:]]}
        use = TableEncoder().fit(changed).columns_[0]
        assert use.kind == "unused"
        assert "row 5" in use.reason
        with Refusal("list of 5", parameter="X", row=5, column="emb", remedy="empty it"):
            TableEncoder().fit(table).transform(changed)
    with Refusal("list of 5", parameter="X", row=0, column="emb"):
        TableEncoder().fit(table).transform({**table, "emb": ["texts"] * 40})
    with Refusal("number", parameter="X", row=0, column="price"):
        TableEncoder().fit(table).transform({**table, "price": lists.tolist()})
    for parameter in ("categorical", "text", "dates"):
        with Refusal("'emb'", parameter="ignore"):
            TableEncoder(**{parameter: "emb"}).fit(table)
    with Refusal("2 missing", "'emb' (lists of 5", remedy="impute='median'"):
        TableEncoder(columns="named", categorical="brand", impute=None).fit(table)
    whole = {**table, "emb": np.nan_to_num(lists).tolist()}
    encoder = TableEncoder(columns="named", categorical="brand", impute=None).fit(whole)
    with Refusal("no value", row=3, column="emb", parameter="impute"):
        encoder.transform(table)
    words = {**table, "emb": [["a", "b"]] * 40}
    assert kinds(TableEncoder().fit(words))["emb"] == "unused"


def test_dates_have_the_readings_that_are_promised():
    cells = ["2024-03-01", "2024-03-01T12:00", "2024-03-01T00:00:00+00:00", "2024/3/2", "2.3.2024", None] * 5
    encoder = TableEncoder(dates="d", impute=0).fit({"d": cells})
    np.testing.assert_allclose(encoder.transform({"d": cells})[:6, 0], [1, 0.5, 1, 0, 0, 0])
    slashed = {"d": ["3/1/2024", "3/2/2024", "12/31/2023"] * 5}
    auto = TableEncoder(ignore=()).fit({**slashed, "x": [1, 2, 3] * 5})
    assert auto.columns_[0].reason.endswith("%m/%d/%Y")
    either = TableEncoder().fit({"d": ["3/1/2024", "3/2/2024", "12/1/2023"] * 5, "x": [1, 2, 3] * 5})
    assert "readings" in either.columns_[0].reason
    with Refusal("'3/1/2024'", remedy="dates=['d'] date_format='%m/%d/%Y'"):
        TableEncoder(columns="named").fit(slashed)
    with pytest.raises(InputError) as caught:
        TableEncoder(dates="d").fit(slashed)
    assert (caught.value.column, caught.value.row) == ("d", 0)
    assert "date_format" in caught.value.remedy
    american = TableEncoder(dates="d", date_format="%m/%d/%Y").fit_transform(slashed)
    np.testing.assert_allclose(american[:3, 0], [1, 0, 62])


def test_named_columns_only():
    table = shop()
    with pytest.raises(InputError) as caught:
        TableEncoder(columns="named", impute=None).fit(table)
    text = str(caught.value)
    for name in ("sku", "brand", "price", "added", "title", "shop", "empty", "query"):
        assert repr(name) in caught.value.problem
    assert "stock" not in text
    assert all(cells in text for cells in ("'H&M'", "'A-00000', 'A-00001'"))
    for option in ("categorical=['brand'", "dates=['added']", "impute='median'", "text=['title']", "ignore=["):
        assert option in caught.value.remedy
    said = {"categorical": ["brand", "query"], "dates": "added", "text": "title", "ignore": ["sku", "shop", "empty"]}
    encoder = TableEncoder(columns="named", **said).fit(table)
    assert {use.reason for use in encoder.columns_ if use.kind != "number"} == {"as said"}


def test_a_number_may_be_a_category():
    table = {"size": [38, 40, 42, 38.0] * 10, "x": [1, 2, 3, 4] * 10}
    encoder = TableEncoder(categorical="size").fit(table)
    assert encoder.get_feature_names_out().tolist() == ["x", "size=38", "size=40", "size=42"]
    np.testing.assert_array_equal(encoder.transform({"size": ["40", "41"], "x": [0, 0]}), [[0, 0, 1, 0], [0, 0, 0, 0]])


def test_numbers_are_filled_as_said():
    table = {"a": [1.0, None, 4.0, 4.0, 7.0], "b": [None, 2.0, 2.0, 5.0, 3.0]}
    filled = lambda impute, **rest: TableEncoder(impute=impute, **rest).fit_transform(table)[[1, 0], [0, 1]].tolist()
    assert filled("median") == [4.0, 2.5]
    assert filled("mean") == [4.0, 3.0]
    assert filled("most_frequent") == [4.0, 2.0]
    assert filled(-1) == [-1.0, -1.0]
    encoder = TableEncoder(impute={"a": "median", "b": 0}).fit(table)
    assert encoder.get_feature_names_out().tolist() == ["a", "a (missing)", "b", "b (missing)"]
    assert encoder.transform(table)[[1, 0], [0, 2]].tolist() == [4.0, 0.0]
    with pytest.raises(InputError) as caught:
        TableEncoder(impute=None).fit(table)
    assert caught.value.parameter == "impute"
    assert all(name in str(caught.value) for name in ("'a'", "'b'"))
    whole = TableEncoder(impute=None).fit({"a": [1.0, 2.0, 3.0], "b": [0.0, 5.0, 1.0]})
    with pytest.raises(InputError, match="row 1"):
        whole.transform(table)


def test_unusual_cells_are_counted():
    encoder = TableEncoder(**QUERY).fit(shop())
    new = shop(seed=5)
    new["brand"][:4] = ["unseen", "new", None, "rare one"]
    found = encoder.count_unusual(new)
    seen = {brand for brand in shop()["brand"] if brand}
    assert found["brand"] == {
        "missing": sum(brand is None for brand in new["brand"]),
        "unseen": sum(brand is not None and brand not in seen for brand in new["brand"]),
    }
    assert found["price"] == {"missing": sum(price is None for price in new["price"])}
    assert set(found) == {"brand", "price"}


def test_words_without_a_query():
    table = {name: cells for name, cells in shop().items() if name != "query"}
    encoder = TableEncoder(max_words=6).fit(table)
    assert sum(use.n_features for use in encoder.columns_ if use.name == "title") == 6
    binary = TableEncoder(text_features="word", max_words=6).fit(table)
    names = binary.get_feature_names_out().tolist()
    j = next(k for k, name in enumerate(names) if name.startswith("title: "))
    word = names[j].removeprefix("title: ")
    np.testing.assert_array_equal(binary.transform(table)[:, j], [word in title.split() for title in table["title"]])


def test_sparse_where_it_is_wide():
    rng = np.random.default_rng(0)
    table = {"code": [f"c{k}" for k in rng.integers(0, 900, 30_000)], "x": rng.normal(size=30_000)}
    encoder = TableEncoder(categorical="code").fit(table)
    assert sparse.issparse(encoder.transform({"code": ["c1"], "x": [0.5]}))
    dense = TableEncoder(categorical="code", sparse_output=False).fit(table)
    part = {name: cells[:50] for name, cells in table.items()}
    np.testing.assert_array_equal(encoder.transform(part).toarray(), dense.transform(part))
    assert len(TableEncoder(categorical="code", max_categories=10).fit(table).features_) == 11


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_searches_learn_on_training_rows_only(make):
    table, rng = shop(), np.random.default_rng(1)
    y, qid = rng.integers(0, 3, 120), np.repeat(np.arange(12), 10)
    X = make(table)
    model = make_pipeline(TableEncoder(**QUERY), StandardScaler(), RankRLS())
    folds = GroupKFold(3)
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            *(model, {"tableencoder__min_frequency": [2, 20], "rankrls__alpha": [1.0, 100.0]}),
            cv=folds,
            scoring=make_ranking_scorer("ndcg@5"),
        ).fit(X, y, qid=qid, groups=qid)
    train, test = next(folds.split(table["sku"], y, qid))
    part = lambda rows: {name: [cells[k] for k in rows] for name, cells in table.items()}
    alone = clone(model).set_params(tableencoder__min_frequency=2, rankrls__alpha=1.0)
    alone.fit(part(train), y[train], rankrls__qid=qid[train])
    scorer = make_ranking_scorer("ndcg@5")
    wanted = scorer(alone, part(test), y[test], qid=qid[test])
    chosen = [
        k
        for k, p in enumerate(search.cv_results_["params"])
        if p == {"tableencoder__min_frequency": 2, "rankrls__alpha": 1.0}
    ]
    assert search.cv_results_["split0_test_score"][chosen[0]] == pytest.approx(wanted)


def test_labels_are_not_looked_at():
    table = shop()
    a, b = TableEncoder(**QUERY), TableEncoder(**QUERY)
    np.testing.assert_array_equal(a.fit_transform(table, np.arange(120)), b.fit_transform(table))
    assert not a.__sklearn_tags__().target_tags.required


def test_explanations_speak_of_columns_and_categories():
    table, rng = shop(), np.random.default_rng(1)
    y, qid = rng.integers(0, 3, 120), np.repeat(np.arange(12), 10)
    model = make_pipeline(TableEncoder(**QUERY), StandardScaler(), RankRLSCV()).fit(table, y, rankrlscv__qid=qid)
    found = explain(model, table, qid=qid)
    assert "brand=H&M" in found.feature_names
    np.testing.assert_allclose(found.scores, model.predict(table), atol=1e-9)


def test_set_output():
    encoder = TableEncoder(**QUERY).set_output(transform="pandas").fit(shop())
    frame = encoder.transform(shop())
    assert list(frame.columns) == encoder.get_feature_names_out().tolist()


@pytest.mark.parametrize(
    ("change", "options", "parameter", "column"),
    [
        ({"added": ["2024-03-01", "yesterday"] * 60}, {"dates": "added"}, "dates", "added"),
        ({}, {"categorical": "sku"}, "categorical", "sku"),
        ({}, {"impute": {"brand": "median"}}, "impute", "brand"),
        ({}, {"impute": {"none": "median"}}, "X", "none"),
        ({}, {"impute": "medain"}, "impute", None),
        ({}, {"impute": float("nan")}, "impute", None),
        ({}, {"categorical": ["brnad", "colour"]}, "X", "brnad"),
        ({}, {"categorical": "brand", "dates": "brand"}, "dates", "brand"),
        ({}, {"columns": "all"}, "columns", None),
        ({}, {"min_frequency": 0}, "min_frequency", None),
        ({}, {"text": "title", "text_features": "matches"}, "text_features", None),
        ({}, {"text": "title", "text_features": "bm25"}, "text_features", None),
        ({}, {"sparse_output": "no"}, "sparse_output", None),
        ({"title": ["?!", "..."] * 60}, {"text": "title"}, "text", "title"),
        ({"price": [[1], [2]] * 60}, {"categorical": "price"}, "ignore", "price"),
    ],
    ids=lambda v: str(v)[:40],
)
def test_what_cannot_be_is_refused(change, options, parameter, column):
    table = {name: cells for name, cells in {**shop(), **change}.items() if name != "query"}
    with pytest.raises(InputError) as caught:
        TableEncoder(**options).fit(table)
    assert caught.value.parameter == parameter
    assert caught.value.column == column


@pytest.mark.parametrize(
    "X", [[[1.0, 2.0]], np.ones((3, 2)), {}, {"a": []}, {"a": [1, 2], "b": [1]}, pd.DataFrame({0: [1, 2]})], ids=repr
)
def test_what_is_no_table_is_refused(X):
    with pytest.raises(InputError) as caught:
        TableEncoder().fit(X)
    assert caught.value.parameter == "X"


def test_two_columns_of_one_name():
    with pytest.raises(InputError) as caught:
        TableEncoder().fit(pd.DataFrame([[1, 2], [3, 5]], columns=["a", "a"]))
    assert caught.value.column == "a"


def test_no_feature_at_all():
    with pytest.raises(InputError, match="constant") as caught:
        TableEncoder().fit({"a": ["x", "x"], "b": [None, None]})
    assert caught.value.parameter == "X"


def test_other_tables_at_predict():
    encoder = TableEncoder(**QUERY).fit(shop())
    new = shop(seed=3)
    for name in ("sku", "shop", "empty"):  # not used: they need not be there
        del new[name]
    assert encoder.transform({**new, "more": [1] * 120}).shape[0] == 120
    del new["brand"], new["query"]
    with pytest.raises(InputError) as caught:
        encoder.transform(new)
    assert caught.value.column == "brand"
    assert "'query'" in caught.value.problem
    wrong = shop(seed=3)
    wrong["stock"][7], wrong["added"][3] = "many", "soon"
    with pytest.raises(InputError) as caught:
        encoder.transform(wrong)
    assert (caught.value.column, caught.value.row) == ("stock", 7)
    assert "'many'" in caught.value.problem
    assert "'soon'" in caught.value.problem


def test_rows_in_another_order_are_the_same_features():
    table, order = shop(), np.random.default_rng(2).permutation(120)
    shuffled = {name: [cells[k] for k in order] for name, cells in table.items()}
    one, other = TableEncoder(**QUERY).fit(table), TableEncoder(**QUERY).fit(shuffled)
    assert one.get_feature_names_out().tolist() == other.get_feature_names_out().tolist()
    np.testing.assert_allclose(one.transform(shuffled), other.transform(shuffled), rtol=1e-12, atol=1e-12)


def test_a_name_that_is_nearly_right_is_suggested():
    with pytest.raises(InputError) as caught:
        TableEncoder(categorical=["brnd", "{odd}"]).fit({**shop(), "{od}": ["a", "b"] * 60})
    assert all(name in caught.value.remedy for name in ("'brand'", "'{od}'"))
