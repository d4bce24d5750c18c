"""TableEncoder against plain Python over the rows, on tables of every kind."""

import json
import re
from collections import Counter
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from tests.refusals import Refusal

from rankrls import InputError, InputWarning, RankRLS, load
from rankrls.cli import main
from rankrls.preprocessing import TableEncoder
from rankrls.preprocessing._table_encoder import day_of


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
        "empty": [None] * m,
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
    table = {**shop(), "emb": [None, *np.random.default_rng(2).normal(size=(119, 3)).tolist()]}  # is left out
    frame = pd.DataFrame(table)
    tables = {
        "pandas": frame,
        "polars": pl.DataFrame(table),
        "pyarrow": pa.table(table),
        "chunks": pa.concat_tables([pa.table(frame[:50]), pa.table(frame[50:])]),
        "concatenated": pd.concat([frame[:50], frame[50:]]).convert_dtypes(dtype_backend="pyarrow"),
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


def test_dates_have_the_readings_that_are_promised():
    cells = ["2024-03-01", "2024-03-01T12:00", "2024-03-01T00:00:00+00:00", "2024/3/2", "2.3.2024", None] * 5
    encoder = TableEncoder(dates="d", impute=0).fit({"d": cells})
    np.testing.assert_allclose(encoder.transform({"d": cells})[:6, 0], [1, 0.5, 1, 0, 0, 0])
    slashed = {"d": ["3/1/2024", "3/2/2024", "12/31/2023"] * 5}
    either = TableEncoder().fit({"d": ["3/1/2024", "3/2/2024", "12/1/2023"] * 5, "x": [1, 2, 3] * 5})
    assert "ambiguous" in either.columns_[0].reason
    with pytest.raises(InputError) as caught:
        TableEncoder(dates="d").fit(slashed)
    assert (caught.value.column, caught.value.row) == ("d", 0)
    assert "date_format" in caught.value.message
    american = TableEncoder(dates="d", date_format="%m/%d/%Y").fit_transform(slashed)
    np.testing.assert_allclose(american[:3, 0], [1, 0, 62])
    assert np.isnan([day_of("2023-02-30"), day_of("30.2.2023")]).all()


@pytest.mark.parametrize("form", [np.asarray, lambda ids: [*map(str, ids)]], ids=["numbers", "texts"])
def test_whole_numbers_that_float64_cannot_tell_apart_are_ids(form):
    use = TableEncoder().fit({"a": [1.0, 2.0] * 10, "offer": form(2**60 + np.arange(0, 60, 3))}).columns_[1]
    assert (use.kind, use.reason) == ("unused", "like an id")


def test_numbers_with_decimal_commas_are_no_ids():
    use = TableEncoder().fit({"a": [1.0, 2.0] * 10, "price": [f"{k},5" for k in range(20)]}).columns_[1]
    assert (use.kind, use.reason) == ("unused", "numbers with commas instead of points")


def test_named_columns_only():
    table = shop()
    with pytest.raises(InputError) as caught:
        TableEncoder(columns="named", impute=None).fit(table)
    text = str(caught.value)
    for name in ("sku", "brand", "price", "added", "title", "shop", "empty", "query"):
        assert repr(name) in caught.value.message
    assert "stock" not in text
    for option in ("categorical=['brand'", "dates=['added']", "impute='median'", "text=['title']", "ignore=["):
        assert option in caught.value.message
    said = {"categorical": ["brand", "query"], "dates": "added", "text": "title", "ignore": ["sku", "shop", "empty"]}
    encoder = TableEncoder(columns="named", **said).fit(table)
    assert {use.reason for use in encoder.columns_ if use.kind != "number"} == {"as configured"}


def test_a_number_may_be_a_category():
    table = {"size": [38, 40, 42, 38.0] * 10, "x": [1, 2, 3, 4] * 10}
    encoder = TableEncoder(categorical="size").fit(table)
    assert encoder.get_feature_names_out().tolist() == ["size=38", "size=40", "size=42", "x"]
    np.testing.assert_array_equal(encoder.transform({"size": ["40", "41"], "x": [0, 0]}), [[0, 1, 0, 0], [0, 0, 0, 0]])


@pytest.mark.parametrize(("shape", "kind"), [(0.0, "unused"), (1.5, "category")])
def test_many_values_are_a_category_only_if_few_of_them_are_in_most_rows(shape, kind):
    """A thousand features that are in 6 % of the rows make a model slow, and teach it nothing."""
    rng = np.random.default_rng(0)
    weights = np.arange(1.0, 16_668.0) ** -shape
    session = rng.choice(16_667, 100_000, p=weights / weights.sum())
    table = {"session": [f"s{k}" for k in session], "x": [1.5, 2.5] * 50_000}
    assert kinds(TableEncoder().fit(table))["session"] == kind
    if kind == "unused":
        with Refusal("ignore=['session']", column="session"):
            TableEncoder(columns="named").fit(table)


def test_advice_keeps_what_is_configured():
    table = {name: ["a", "b"] * 20 for name in ("brand", "size", "shop")} | {"x": [1.5, 2.5] * 20}
    with Refusal(settings={"categorical": ["size", "brand"], "columns": "auto"}):
        TableEncoder(columns="named", categorical="size", ignore="shop").fit(table)
    table["sku"] = [f"k{k}" for k in range(40)]
    with Refusal(settings={"categorical": ["size", "brand"], "ignore": ["shop", "sku"], "columns": "auto"}):
        TableEncoder(columns="named", categorical="size", ignore="shop").fit(table)


def one_column(cells, **options):
    """An encoder of a column of categories, with a column of numbers beside it."""
    return TableEncoder(categorical="c", min_frequency=1, **options).fit({"c": cells, "x": [*range(len(cells))]})


def category(encoder, cell):
    """The feature that is 1 for a cell; None if there is none."""
    names, row = encoder.get_feature_names_out(), encoder.transform({"c": [cell], "x": [0]})[0]
    return next((name for name, value in zip(names, row, strict=True) if value == 1.0), None)


WORDS = ["NA", "n/a", "None", "null", "nan", "NaN", "-", "?", "<NA>", "NaT", ""]


@pytest.mark.parametrize(
    "form",
    [
        *(list, pd.Series, lambda cells: pd.Series(cells, dtype="string"), pd.Categorical, pa.array, pl.Series),
        *(lambda cells: np.array(cells, dtype=object), lambda cells: [1, *cells]),
    ],
)
def test_in_memory_words_are_categories_and_nothing_is_missing_but_what_has_no_value(form):
    encoder = one_column(form([*WORDS, None]))
    assert {category(encoder, word) for word in WORDS} == {f"c={word}" for word in WORDS}
    assert {category(encoder, value) for value in (None, np.nan, pd.NaT, pd.NA)} == {"c=(missing)"}


def test_words_that_mean_missing_can_be_given():
    encoder = one_column(["NA", "-", "none", None], missing=["na", "None"])
    assert [category(encoder, cell) for cell in ("NA", "nA", "none", "-")] == [*["c=(missing)"] * 3, "c=-"]
    for wrong in (3, [None]):
        with Refusal(parameter="missing"):
            one_column(["NA"], missing=wrong)


@pytest.mark.parametrize(
    ("cells", "names", "same"),
    [
        (
            [True, False],
            ["false", "true"],
            {"true": [True, "True", "true", "TRUE", 1, 1.0, "1"], "false": [0, "False"]},
        ),
        (["True", "False", None], ["(missing)", "false", "true"], {"true": [True, 1, "true"], "(missing)": [None]}),
        ([1, 2], ["1", "2"], {"1": [1, 1.0, "1", "1.0", True], "2": [2, 2.0, "2"]}),
        (["1.0", "2.0"], ["1.0", "2.0"], {"1.0": [1, 1.0, "1"]}),
        ([1, 1.0, "1", "b"], ["1", "b"], {"1": [1, 1.0, "1"]}),
        ([0.1, 2.5], ["0.1", "2.5"], {"0.1": [0.1, "0.1"]}),
        (["00100", "100"], ["00100", "100"], {"00100": ["00100"], "100": [100, "100"]}),
        (["1", "1.0"], ["1", "1.0"], {"1": [1, "1"], "1.0": ["1.0"]}),
        (["True", "blue"], ["True", "blue"], {"True": ["True"]}),
    ],
    ids=str,
)
def test_categories_of_other_types_match_by_value(cells, names, same):
    encoder = one_column(cells)
    assert encoder.get_feature_names_out().tolist()[:-1] == [f"c={name}" for name in names]
    for name, others in same.items():
        for other in others:
            assert category(encoder, other) == f"c={name}"
            assert "unseen" not in encoder.count_unusual({"c": [other], "x": [0]}).get("c", {})


@pytest.mark.parametrize(("cells", "others"), [(["00100", "00200"], [100, "100"]), ([100, 200], ["00100", "1e2"])])
def test_texts_stay_texts(cells, others):
    encoder = one_column(cells)
    for other in others:
        assert category(encoder, other) is None
        assert encoder.count_unusual({"c": [other], "x": [0]}) == {"c": {"unseen": 1}}


def test_padded_codes_are_no_numbers():
    table = {"zip": ["00100", "20095", "00200"] * 10, "x": [1, 2, 3] * 10}
    assert kinds(TableEncoder().fit(table)) == {"zip": "category", "x": "number"}


def test_a_column_without_any_known_category_is_a_warning():
    table = {"brand": ["Acme", "Zed"] * 10, "size": [38, 40] * 10, "x": [1.0, 2.0] * 10}
    encoder = TableEncoder(categorical=["brand", "size"]).fit(table)
    with pytest.warns(InputWarning) as caught:
        encoder.transform({"brand": ["acme", "zed"], "size": [38, 41], "x": [0.0, 0.0]})
    (warning,) = caught
    assert all(word in str(warning.message) for word in ("'brand'", "'acme'"))
    assert "size" not in str(warning.message)
    encoder.transform({"brand": ["acme"], "size": [41], "x": [0.0]})  # one new item is no sign of another spelling
    encoder.transform({"brand": ["acme", "Zed"], "size": [None, None], "x": [0.0, 0.0]})


def test_words_that_mean_missing_in_text_files(tmp_path, capsys):
    rng = np.random.default_rng(0)
    words = ["NA", "-", "", "Chad", "Peru"]
    country = [words[k] for k in rng.integers(0, 5, 200)]
    frame = pd.DataFrame({"country": country, "x": rng.normal(size=200)})
    frame["label"], frame["qid"] = rng.integers(0, 3, 200), np.arange(200) // 10
    text, typed, model = (str(tmp_path / name) for name in ("train.csv", "train.parquet", "m.rankrls"))
    frame.to_csv(text, index=False)
    frame.to_parquet(typed)

    def features(*given):
        assert main(["fit", *given, "--categorical", "country", "-m", model, "--json"]) == 0
        capsys.readouterr()
        return load(model)[0].get_feature_names_out().tolist()

    assert features(text) == ["country=(missing)", "country=Chad", "country=Peru", "x"]
    assert features(text, "--set", "missing=-") == [
        *("country=(missing)", "country=Chad", "country=NA", "country=Peru", "x")
    ]
    out = [str(tmp_path / f"scores{k}.tsv") for k in range(2)]
    assert main(["predict", model, text, "-o", out[0]]) == 0
    assert main(["predict", model, typed, "-o", out[1]]) == 0
    empty, scores = np.array(country) == "", [np.loadtxt(path, usecols=-1, skiprows=1) for path in out]
    np.testing.assert_array_equal(scores[0][~empty], scores[1][~empty])
    assert features(typed) == [f"country={word}" for word in sorted(words)] + ["x"]


def test_numbers_are_filled_as_said():
    table = {"a": [1.0, None, 4.0, 4.0, 7.0], "b": [None, 2.0, 2.0, 5.0, 3.0]}
    filled = lambda impute: TableEncoder(impute=impute).fit_transform(table)[[1, 0], [0, 2]].tolist()
    assert filled("median") == [4.0, 2.5]
    assert filled("mean") == [4.0, 3.0]
    assert filled(-1) == [-1.0, -1.0]
    encoder = TableEncoder(impute="median").fit(table)
    assert encoder.get_feature_names_out().tolist() == ["a", "a (missing)", "b", "b (missing)"]
    with pytest.raises(InputError) as caught:
        TableEncoder(impute=None).fit(table)
    assert caught.value.parameter == "impute"
    assert all(name in str(caught.value) for name in ("'a'", "'b'"))
    whole = TableEncoder(impute=None).fit({"a": [1.0, 2.0, 3.0], "b": [0.0, 5.0, 1.0]})
    with pytest.raises(InputError, match="row 1"):
        whole.transform(table)


def test_columns_that_are_constant_within_every_query_change_no_order():
    rng = np.random.default_rng(4)
    qid, y = rng.permutation(np.repeat([f"q{k}" for k in range(15)], 8)), rng.integers(0, 3, 120)
    of_query = {f"q{k}": k for k in range(15)}
    table = {name: cells for name, cells in shop().items() if name != "query"}
    varying = {
        "season": [f"s{of_query[q] % 2}" for q in qid],
        "hits": [None if of_query[q] == 3 else of_query[q] ** 1.5 for q in qid],
        "opened": [f"2024-01-{of_query[q] % 9 + 1:02d}" for q in qid],
    }
    mixed = [float(of_query[q]) for q in qid]
    mixed[7] += 1.0
    whole = {**table, **varying, "mixed": mixed}
    encoder = TableEncoder().fit(whole, qid=qid)
    left_out = {use.name for use in encoder.columns_ if "within every query" in use.reason}
    assert left_out == {*varying}
    assert {use.kind for use in TableEncoder().fit(whole).columns_ if use.name in varying} == {
        *("category", "number", "date")
    }
    scores = []
    for each in (TableEncoder().fit(whole), encoder, TableEncoder(ignore=[*varying]).fit(whole, qid=qid)):
        found = RankRLS(alpha=1.0).fit(each.transform(whole), y, qid=qid).predict(each.transform(whole))
        scores.append(found - np.array([found[qid == q].mean() for q in qid]))
    np.testing.assert_allclose(scores[1], scores[0], rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(scores[1], scores[2])
    assert kinds(TableEncoder(categorical="season").fit(whole, qid=qid))["season"] == "category"
    with Refusal(parameter="qid"):
        TableEncoder().fit(whole, qid=qid[:5])


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


@pytest.mark.parametrize(
    ("change", "options", "parameter", "column"),
    [
        ({"added": ["2024-03-01", "yesterday"] * 60}, {"dates": "added"}, "X", "added"),
        ({}, {"categorical": "sku"}, "categorical", "sku"),
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
    "X",
    [
        *([{}, {}], pl.LazyFrame({"a": [1, 2]})),
        *([[1.0, 2.0]], np.ones((3, 2)), {}, {"a": []}, {"a": [1, 2], "b": [1]}, {"a": ["x", "x"]}),
        *(pd.DataFrame({0: [1, 2]}), pd.DataFrame([[1, 2]], columns=["a", "a"])),
    ],
    ids=lambda X: type(X).__name__,
)
def test_what_is_no_table_is_refused(X):
    with pytest.raises(InputError) as caught:
        TableEncoder().fit(X)
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
    assert "'query'" in caught.value.message
    wrong = shop(seed=3)
    wrong["stock"][7], wrong["added"][3] = "many", "soon"
    with pytest.raises(InputError) as caught:
        encoder.transform(wrong)
    assert (caught.value.column, caught.value.row) == ("stock", 7)
    assert "'many'" in caught.value.message
    assert "'soon'" in caught.value.message


def test_integer_categories_beyond_floats_are_their_texts():
    ids = [2**53 + 1, 2**53, 10**16 + 1, 2**63 - 1] * 10
    as_text = [str(value) for value in ids]
    for fitted, table in ((ids, pa.table({"a": pa.array(ids, pa.int64())})), (as_text, {"a": as_text})):
        encoder = TableEncoder(categorical="a").fit(table)
        assert sorted(encoder.get_feature_names_out()) == sorted(f"a={value}" for value in set(ids))
        for other in (ids, as_text):
            np.testing.assert_array_equal(encoder.transform({"a": other}), encoder.transform({"a": fitted}))
            assert encoder.count_unusual({"a": other}) == {}
    one, other = TableEncoder().fit({"a": [2**53, 2**53 + 1] * 5, "b": [1, 2] * 5}).columns_
    assert (one.n_distinct, other.kind) == (2, "number")
    floats = TableEncoder(categorical="a").fit({"a": [1e16, 1e16 + 2] * 5}).get_feature_names_out()
    assert floats.tolist() == ["a=10000000000000000", "a=10000000000000002"]


@pytest.mark.parametrize(("cells", "bad"), [(["7", "1"] * 9, "n/a?"), (["2024-01-02", "2024-01-09"] * 9, "soon")])
def test_a_few_cells_that_do_not_fit_their_column_are_an_error_about_the_first(cells, bad):
    with Refusal("row 18", repr(bad), parameter="X", column="a", row=18, remedy="empty it"):
        TableEncoder(columns="auto").fit({"a": [*cells, bad], "b": [*range(19)]})


@pytest.mark.parametrize("columns", ["auto", "named"])
@pytest.mark.parametrize("cells", [[1.5, np.inf, 2.0] * 9, ["7", "-Infinity", "1"] * 9, ["7", "1e999", "1"] * 9])
def test_an_infinite_cell_is_an_error_about_it(cells, columns):
    with Refusal("row 1", repr(str(cells[1])), parameter="X", column="a", row=1):
        TableEncoder(columns=columns).fit({"a": cells, "b": [1, 2, 3] * 9})
    encoder = TableEncoder(ignore="a").fit({"a": cells, "b": [1, 2, 3] * 9})
    assert kinds(encoder) == {"a": "unused", "b": "number"}


@pytest.mark.parametrize(
    ("name", "kind", "reason"),
    [("s{:05d}", "unused", "query ids do not read like text"), ("red shoe {}", "query text", "query ids of 2.0 words")],
)
def test_query_ids_are_text_only_if_they_read_like_it(name, kind, reason, tmp_path, capsys):
    table = {**shop(), "query": [name.format(k // 8) for k in range(120)], "grade": [k % 3 for k in range(120)]}
    data, model = str(tmp_path / "train.csv"), str(tmp_path / "m.rankrls")
    pd.DataFrame(table).to_csv(data, index=False)
    given = ["fit", data, "--label", "grade", "--qid", "query", "--columns", "auto", "-m", model, "--json"]
    assert main(given) == 0
    use = json.loads(capsys.readouterr().out)["columns_used"]["query"]
    assert use["kind"] == kind
    assert use["reason"].startswith(reason)
    table["price"][3] = "inf"
    pd.DataFrame(table).to_csv(data, index=False)
    assert main(given) == 2
    error = capsys.readouterr().err
    assert all(word in error for word in ("train.csv", "row 3", "'inf'", "'price'"))


def test_times_with_an_offset_are_taken_at_utc():
    table = {"when": ["2024-03-01T00:30:00+02:00", "2024-02-29T22:30:00+00:00", "2024-03-01", "2024-02-01"]}
    ages = TableEncoder(dates="when").fit_transform(table)[:, 0]
    assert ages[0] == ages[1]
    np.testing.assert_allclose(ages[2:], [0.0, 29.0])


@pytest.mark.parametrize(
    ("days", "circles"), [(13, []), (14, ["week"]), (730, ["week"]), (731, ["year", "week"])], ids=str
)
def test_dates_are_placed_on_a_circle_that_they_go_round_twice(days, circles):
    first = datetime(2022, 1, 1, tzinfo=UTC)
    cells = [(first + timedelta(days=days * k / 20)).isoformat() for k in range(21)]
    names = TableEncoder(dates="d").fit({"d": cells}).get_feature_names_out()
    assert [name for name in names if ", sine" in name] == [f"d (time of {circle}, sine)" for circle in circles]


def test_many_numbers_stay_dense_beside_many_categories():
    rng = np.random.default_rng(0)
    table = {f"x{k}": rng.normal(size=1000) for k in range(400)}
    table["code"] = [f"c{k % 200}" for k in range(1000)]
    encoded = TableEncoder(categorical="code").fit_transform(table)
    assert type(encoded) is np.ndarray
    assert encoded.shape == (1000, 600)


def test_the_query_is_needed_only_by_texts():
    table = shop()
    encoder = TableEncoder(**QUERY).fit(table)
    assert "query" in encoder.columns_needed_
    del table["title"]
    encoder = TableEncoder(**QUERY).fit(table)
    assert "query" not in encoder.columns_needed_
    without = {name: cells for name, cells in table.items() if name != "query"}
    np.testing.assert_array_equal(encoder.transform(without), encoder.transform(table))
