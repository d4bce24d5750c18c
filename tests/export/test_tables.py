"""Exports of models behind a TableEncoder: what the engines compute of raw rows is what predict computes of them."""

import json

import numpy as np
import onnxruntime
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from rankrls import RankRLS
from rankrls.export import to_elasticsearch, to_onnx, to_solr
from rankrls.preprocessing import TableEncoder
from tests.export import engines
from tests.refusals import Refusal

BRANDS = ["H&M", 'The "Best"', "back\\slash", "it's {odd}", "Acme", None]
DAY = 86_400.0


def shop(m=150, seed=0, extra=()):
    """Raw rows; dates in seconds since 1970, as documents hold them."""
    rng = np.random.default_rng(seed)
    pick = lambda values: [values[k] for k in rng.integers(len(values), size=m)]
    words = ["red", "blue", "shoe", "shirt", "running", "summer", "women"]
    price = [None if rng.random() < 0.1 else float(v) for v in rng.lognormal(3, 1, m).round(2)]
    return {
        "brand": pick([*BRANDS, *extra]),
        "colour": pick(["red", "blue", "sand"]),
        "price": price,
        "stock": [float(v) for v in rng.integers(0, 50, m)],
        "change": [float(v) for v in rng.normal(size=m).round(3)],
        "drift": [None if rng.random() < 0.2 else float(v) for v in rng.normal(size=m).round(3)],
        "added": [None if rng.random() < 0.05 else float(rng.integers(18_000, 19_900)) * DAY for _ in range(m)],
        "title": [" ".join(pick(words)[:3]) for _ in range(m)],
        "query": pick(["red shoe", "summer shirt"]),
    }


def table_of(rows):
    """The same rows as a table: dates as texts."""
    spelled = lambda s: None if s is None else str(np.datetime64(int(s), "s"))
    return {**rows, "added": [spelled(s) for s in rows["added"]]}


def fitted(steps=(), seed=0, **options):
    rows, rng = shop(seed=seed), np.random.default_rng(1)
    options = {"query_text": "query", "text_features": ["matches", "word"], "text": "title", **options}
    encoder = TableEncoder(categorical=["brand", "colour"], dates="added", **options)
    y = rng.integers(0, 4, 150) + 2.0 * np.array([brand == "H&M" for brand in rows["brand"]])
    return make_pipeline(encoder, *steps, RankRLS()).fit(table_of(rows), y)


NEW = shop(seed=7, extra=["never seen", ""])
NEW["brand"] = [brand or None for brand in NEW["brand"]]
NEW["added"][:3] = [20_500.5 * DAY, 19_950.0 * DAY, None]  # newer than all training rows: an age below 0


def documents(model):
    """New rows as documents; those without a field that Solr counts as 0 are left to a test of their own."""
    return engines.Documents(NEW, ("added",), NEW["query"])


def engine_scores(name, exported, rows):
    if name == "solr":
        found = engines.solr_features(exported.definitions, rows)
        return engines.solr(exported.content, found.__getitem__)
    found = engines.elasticsearch_features(exported.definitions, rows)
    return engines.elasticsearch(exported.content, found.__getitem__, list(found))


EXPORTS = {"solr": to_solr, "elasticsearch": to_elasticsearch}
STEPS = {"raw": [], "standard": [StandardScaler()], "minmax": [MinMaxScaler()]}


@pytest.mark.parametrize("engine", EXPORTS)
@pytest.mark.parametrize("steps", STEPS)
def test_engines_score_raw_rows_as_predict_does(engine, steps):
    model = fitted(STEPS[steps])
    kinds = {feature.kind for feature in model[0].features_}
    assert kinds >= {"number", "missing", "age", "sine", "cosine", "category", "none", "matches"}
    exported = EXPORTS[engine](model, "shop", offset=3.0)
    scores = engine_scores(engine, exported, documents(model))
    np.testing.assert_allclose(scores, model.predict(table_of(NEW)) + 3.0, atol=2e-3)
    assert np.ptp(scores) > 0.5


@pytest.mark.parametrize("engine", EXPORTS)
def test_rare_and_unseen_categories_are_the_constant(engine):
    model = fitted([StandardScaler()], min_frequency=28, text_features="matches")
    kinds = {feature.kind for feature in model[0].features_ if feature.column == "brand"}
    assert kinds >= {"category", "other"}
    scores = engine_scores(engine, EXPORTS[engine](model, "shop"), documents(model))
    expected = model.predict(table_of(NEW))
    assert np.ptp(scores - expected) < 2e-3
    assert np.corrcoef(scores, expected)[0, 1] > 0.9999


def test_names_and_terms():
    model = fitted()
    store = json.loads(to_solr(model, "shop", store="products").definitions)
    terms = {tuple(f["params"]["fq"]) for f in store if "fq" in f["params"]}
    assert {("{!term f=brand}H&M",), ('{!term f=brand}The "Best"',), ("{!term f=colour}sand",)} <= terms
    assert all(feature["store"] == "products" for feature in store)
    names = [feature["name"] for feature in store]
    assert {"brand_H_M", "price", "price_missing", "change", "drift", "drift_below_0"} <= set(names)
    assert all(name.isidentifier() and name.isascii() for name in names)
    assert {"field": "stock"} in [feature["params"] for feature in store]
    exported = to_elasticsearch(model)
    templates = {f["name"]: f["template"] for f in json.loads(exported.definitions)["featureset"]["features"]}
    assert templates["brand_H_M"] == {"constant_score": {"filter": {"term": {"brand": "H&M"}}}}
    assert templates["title_words_of_the_query"] == {"match": {"title": "{{query_text}}"}}
    assert set(json.loads(json.loads(exported.content)["model"]["model"]["definition"])) == set(templates)


def test_what_cannot_travel_is_named_at_once():
    tfidf = fitted(text_features=["similarity", "matches"])
    for export in EXPORTS.values():
        with Refusal("'title'", "text_features", parameter="model", column="title"):
            export(tfidf)
    with Refusal(parameter="feature_names"):
        to_solr(fitted(), feature_names=["a"])
    table = {"the price (€)": [1.0, 2.0, 3.0], "x": [1.0, 5.0, 2.0], "kind": ["${a}", "{{b}}", "c"]}
    odd = make_pipeline(TableEncoder(categorical="kind", min_frequency=1), RankRLS()).fit(table, [1, 2, 3])
    with Refusal("kind=$", "the price (€)", "Rename"):
        to_solr(odd)
    with Refusal("'kind=", parameter="model"):
        to_elasticsearch(odd)


def test_onnx_takes_what_the_encoder_makes():
    model = fitted([StandardScaler()], text_features="matches")
    with Refusal("model[1:]", parameter="model"):
        to_onnx(model)
    encoded = model[0].transform(table_of(NEW))
    session = onnxruntime.InferenceSession(to_onnx(model[1:]).content)
    (scores,) = session.run(None, {"X": np.asarray(encoded, dtype=np.float64)})
    np.testing.assert_allclose(scores, model.predict(table_of(NEW)), rtol=1e-9)


def test_definitions_are_saved(tmp_path):
    exported = to_solr(fitted())
    exported.save_definitions(tmp_path / "features.json")
    assert (tmp_path / "features.json").read_text() == exported.definitions
    with Refusal("no feature definitions"):
        to_onnx(fitted()[1:]).save_definitions(tmp_path / "none.json")
