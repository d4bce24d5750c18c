"""Exports of models behind a TableEncoder: what the engines compute of raw rows is what predict computes of them."""

import json

import numpy as np
import onnxruntime
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from rankrls import RankRLS
from rankrls.export import positive_offset, to_elasticsearch, to_elasticsearch_query, to_onnx, to_solr
from rankrls.preprocessing import TableEncoder
from tests.export import evaluators
from tests.export.shop import documents_of, fitted, renamed, shop, table_of
from tests.refusals import Refusal

NEW = shop(seed=7, new=True)
ENGINES = {
    "solr": (to_solr, evaluators.solr_scores),
    "elasticsearch": (to_elasticsearch, evaluators.elasticsearch_scores),
    "query": (to_elasticsearch_query, evaluators.elasticsearch_query),
}
STEPS = {"raw": [], "standard": [StandardScaler()], "minmax": [MinMaxScaler()]}


def both_scores(engine, model, rows, offset=None):
    """What the engine makes of documents, and what it should; in float64."""
    to_engine, scores = ENGINES[engine]
    exported = to_engine(model, "shop", offset=offset)
    wanted = exported.factor * model.predict(table_of(rows)) + (offset or 0.0)
    return np.asarray(scores(exported, documents_of(rows), rows["query"]), dtype=float), wanted


def kept(scores, wanted):
    """Whether all rows have the order of the wanted scores."""
    order = np.argsort(wanted)
    return (np.diff(scores[order])[np.diff(wanted[order]) > 1e-9] > 0.0).all()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("steps", STEPS)
def test_engines_score_raw_rows_as_predict_does(engine, steps):
    model = fitted(STEPS[steps])
    kinds = {feature.kind for feature in model[0].features_}
    assert kinds >= {"number", "missing", "age", "sine", "cosine", "category", "none", "matches", "word"}
    scores, wanted = both_scores(engine, model, NEW, offset=positive_offset(model, table_of(NEW)) + 100.0)
    np.testing.assert_allclose(scores, wanted, atol=2e-4)
    assert np.ptp(scores) > 1.0


@pytest.mark.parametrize("engine", ["elasticsearch", "query"])
def test_columns_have_any_name(engine):
    model = fitted([StandardScaler()], odd=True)
    rows = renamed(NEW)
    scores, wanted = both_scores(engine, model, rows, offset=positive_offset(model, table_of(rows)) + 100.0)
    np.testing.assert_allclose(scores, wanted, atol=2e-4)
    with Refusal("größe.cm", parameter="model"):
        to_solr(model)


@pytest.mark.parametrize("engine", ENGINES)
def test_rare_and_unseen_categories_are_the_constant(engine):
    model = fitted([StandardScaler()], min_frequency=20, text_features="matches")
    kinds = {feature.kind for feature in model[0].features_ if feature.column == "brand"}
    assert kinds >= {"category", "other"}
    scores, wanted = both_scores(engine, model, NEW, offset=400.0)
    np.testing.assert_allclose(scores, wanted, atol=2e-4)


@pytest.mark.parametrize("engine", ENGINES)
def test_float32_keeps_the_order_of_weak_models(engine):
    """Strong regularization makes all scores nearly the same; the offset does not hide what is left of them."""
    model = fitted([StandardScaler()], alpha=1e7, text_features="matches")
    table = table_of(NEW)
    assert np.ptp(model.predict(table)) < 1e-3
    scores, wanted = both_scores(engine, model, NEW, offset=positive_offset(model, table) + 1.0)
    assert 1.0 < np.ptp(wanted) < 200.0
    assert kept(scores, wanted)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_negative_number_is_one_also_where_training_had_none(engine):
    """Nor does a document without the field, where missing numbers count as a negative one."""
    table = {"x": [1.0, 2.0, 3.0, None], "z": [-3.0, -2.0, None, -1.0]}
    model = make_pipeline(TableEncoder(min_frequency=1), RankRLS()).fit(table, [1, 2, 3, 4])
    rows = {"x": [-4.0, 0.0, 5.0, None], "z": [None, 0.0, 2.0, -7.0]}
    to_engine, score = ENGINES[engine]
    exported = to_engine(model, "signs", offset=1000.0)
    every = [dict(zip(rows, values, strict=True)) for values in zip(*rows.values(), strict=True)]
    documents = [{name: value for name, value in row.items() if value is not None} for row in every]
    scores = score(exported, documents, [""] * 4)
    np.testing.assert_allclose(scores, exported.factor * model.predict(rows) + 1000.0, rtol=1e-6)


def test_names_and_terms():
    exported = to_solr(fitted(), "shop_v2")
    features = json.loads(exported.files["features.json"])
    terms = {tuple(f["params"]["fq"]) for f in features if "fq" in f["params"]}
    assert {("{!term f=brand}H&M",), ('{!term f=brand}The "Best"',), ("{!term f=colour}sand",)} <= terms
    assert {("{!term f=in_stock}true",), ("{!term f=size}38",), ("{!term f=size}37.5",)} <= terms
    assert {feature["store"] for feature in features} == {exported.json()["store"]} == {"shop_v2"}
    assert {f["store"] for f in json.loads(to_solr(fitted(), store="s").files["features.json"])} == {"s"}
    names = [feature["name"] for feature in features]
    assert {"brand_H_M", "price", "price_missing", "change", "drift", "added_age_in_days_below_0"} <= set(names)
    assert all(name.isidentifier() and name.isascii() for name in names)
    exported = to_elasticsearch(fitted())
    templates = {
        f["name"]: f["template"] for f in json.loads(exported.files["features.json"])["featureset"]["features"]
    }
    assert templates["in_stock_true"] == {"constant_score": {"filter": {"term": {"in_stock": "true"}}}}
    assert templates["title_words_of_the_query"] == {"match": {"title": "{{query_text}}"}}
    assert set(json.loads(json.loads(exported.content)["model"]["model"]["definition"])) == set(templates)


def test_fields_hold_what_columns_hold():
    types = {"price": "double", "size": "double", "in_stock": "boolean", "brand": "keyword", "added": "date"}
    exported = to_elasticsearch(fitted())
    properties = json.loads(exported.files["fields.json"])["mappings"]["properties"]
    assert {name: properties[name]["type"] for name in types} == types
    (analyzed,) = {name for name in properties if properties[name]["type"] == "text"}
    assert analyzed == "title"
    assert any("'title'" in note for note in exported.notes)
    days = {"added": ["2024-01-01", None, "2024-01-03", "2024-01-04"], "n": [1.0, 2.0, 3.0, 5.0]}
    short = make_pipeline(TableEncoder(), RankRLS()).fit(days, [1, 2, 1, 3])
    assert [feature.kind for feature in short[0].features_] == ["age", "missing", "number"]
    fields = json.loads(to_elasticsearch_query(short).files["fields.json"])["mappings"]["properties"]
    assert fields == {"added": {"type": "date"}, "n": {"type": "double"}}
    padded = {"code": ["007", "42", "007", "42"]}
    model = make_pipeline(TableEncoder(categorical="code", min_frequency=1), RankRLS()).fit(padded, [1, 2, 1, 3])
    fields = json.loads(to_solr(model).files["fields.json"])
    assert fields == {"add-field": [{"name": "code", "type": "string", "docValues": True}]}


@pytest.mark.parametrize("to_engine", [to_solr, to_elasticsearch])
def test_names_of_features_never_meet(to_engine):
    table = {
        "x": [-1.0, 2.0, 3.0],
        "x_below_0": [3.0, -5.0, 2.0],
        "x__below_0": [1.0, 0.0, -2.0],
        "rankrls_offset": [2.0, 5.0, 4.0],
    }
    model = make_pipeline(TableEncoder(), RankRLS()).fit(table, [1, 2, 3])
    exported = to_engine(model, "names", offset=100.0)
    found = json.loads(exported.files["features.json"])
    names = [f["name"] for f in (found if isinstance(found, list) else found["featureset"]["features"])]
    assert len(set(names)) == len(names) >= 5
    documents = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    if to_engine is to_elasticsearch:
        scores = evaluators.elasticsearch_scores(exported, documents, [""] * 3)
        np.testing.assert_allclose(scores, exported.factor * model.predict(table) + 100.0, rtol=1e-6)


def test_what_cannot_travel_is_named_at_once():
    tfidf = fitted(text_features=["similarity", "matches"])
    for export, _ in ENGINES.values():
        with Refusal("'title'", "text_features", parameter="model", column="title"):
            export(tfidf)
    with Refusal(parameter="feature_names"):
        to_solr(fitted(), feature_names=["a"])
    table = {"the price (€)": [1.0, 2.0, 3.0], "x": [1.0, 5.0, 2.0], "kind": ["${a}", "{{b}}", "c"]}
    odd = make_pipeline(TableEncoder(categorical="kind", min_frequency=1), RankRLS()).fit(table, [1, 2, 3])
    with Refusal("'kind' (${", "the price (€)", "Rename"):
        to_solr(odd)
    with Refusal("'kind' ({{", parameter="model"):
        to_elasticsearch(odd)


@pytest.mark.parametrize("name", ["d1_added", "NOW_added", "e5"])
def test_solr_reads_some_names_as_dates(name):
    table = {name: ["2024-01-01", "2024-02-01", "2024-02-05"]}
    model = make_pipeline(TableEncoder(), RankRLS()).fit(table, [1, 2, 3])
    with Refusal("date", parameter="model", column=name):
        to_solr(model)
    numbers = make_pipeline(TableEncoder(), RankRLS()).fit({name: [1.0, 2.0, 5.0]}, [1, 2, 3])
    assert name in to_solr(numbers).content


def test_a_query_cannot_subtract_words():
    model = fitted(text_features="matches")
    words = [feature.kind for feature in model[0].features_].index("matches")
    model[-1].coef_[words] = -1.0
    to_elasticsearch(model)
    with Refusal("negative", parameter="model", column="title"):
        to_elasticsearch_query(model)


def test_onnx_takes_what_the_encoder_makes():
    model = fitted([StandardScaler()], text_features="matches")
    with Refusal("model[1:]", parameter="model"):
        to_onnx(model)
    encoded = model[0].transform(table_of(NEW))
    session = onnxruntime.InferenceSession(to_onnx(model[1:]).content)
    (scores,) = session.run(None, {"X": np.asarray(encoded, dtype=np.float64)})
    np.testing.assert_allclose(scores, model.predict(table_of(NEW)), rtol=1e-9)


def test_further_files_are_saved(tmp_path):
    exported = to_solr(fitted())
    exported.save(tmp_path / "model.json")
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert written == {"model.json": exported.content, **exported.files}
    assert set(exported.files) == {"features.json", "fields.json"}
    with Refusal("fields.json", parameter="path"):
        exported.save(tmp_path / "fields.json")
    assert (tmp_path / "fields.json").read_text() == exported.files["fields.json"]
    assert to_onnx(fitted()[1:]).files == {}
