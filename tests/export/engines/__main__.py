"""Exports inside real engines: ``python -m tests.export.engines`` prints engine, case, largest difference and order.

Solr computes the features, and the evaluator the linear model over them, because Solr's learning-to-rank module is not
published as an artefact. In the same way OpenSearch runs the queries of a feature set. Where SOLR_LTR and
OPENSEARCH_LTR name the class paths of module and plugin, these score as a whole. The plain rescoring query runs as a
whole anywhere. At last the commands of the guide run.
"""

import json
import sys

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from rankrls import RankRLS
from rankrls.export import positive_offset, to_elasticsearch, to_elasticsearch_query, to_solr
from tests.export import evaluators
from tests.export.engines.nodes import MODULES, running
from tests.export.engines.walk import walk
from tests.export.shop import documents_of, fitted, renamed, shop, table_of

SCALERS = {
    "raw": [],
    "standard": [StandardScaler()],
    "standard, no mean": [StandardScaler(with_mean=False)],
    "min-max": [MinMaxScaler()],
    "max-abs": [MaxAbsScaler()],
    "robust": [RobustScaler()],
    "standard, min-max": [StandardScaler(), MinMaxScaler()],
}
NAMES = ["list price (€)", "größe.cm", 'the "best"', "it's", "back\\slash"]


class Solr:
    """The exports for Solr, whose features are queries and fields of a real node."""

    name = "Solr"
    version = "9.10.1"

    def __init__(self, node):
        self.node = node

    def scores(self, exported, rows):
        """Scores of rows by a model with a TableEncoder."""
        self._index(json.loads(exported.files["fields.json"]), documents_of(rows))
        features = json.loads(exported.files["features.json"])
        of_query = lambda feature: "query_text" in json.dumps(feature["params"])
        value = lambda feature, query: self._values(feature, query, len(rows["query"]))
        values = by_query(features, of_query, value, rows["query"])
        return evaluators.solr(exported.content, values.__getitem__)

    def numbers(self, exported, X):
        """Scores of numbers in fields f0, f1, ... by a model whose features are those fields."""
        fields = self._number_fields(X)
        values = {
            name: self._values({"class": "FieldValueFeature", "params": {"field": field}}, "", len(X))
            for name, field in zip(NAMES, fields, strict=True)
        }
        values["rankrls_offset"] = np.ones(len(X))
        return evaluators.solr(exported.content, values.__getitem__)

    def _number_fields(self, X):
        """Index numbers; the names of their fields."""
        fields = [f"f{j}" for j in range(X.shape[1])]
        documents = [{"id": str(i), **dict(zip(fields, row, strict=True))} for i, row in enumerate(X.tolist())]
        self._index({"add-field": [{"name": name, "type": "pdouble"} for name in fields]}, documents)
        return fields

    def _index(self, fields, documents):
        self.node.send("POST", "/solr/shop/update", {"delete": {"query": "*:*"}})
        for name in self.node.send("GET", "/solr/shop/schema/fields")["fields"]:
            if name["name"] != "id":
                self.node.send("POST", "/solr/shop/schema", {"delete-field": {"name": name["name"]}})
        if "add-field-type" in fields and any(
            each["name"] == fields["add-field-type"]["name"]
            for each in self.node.send("GET", "/solr/shop/schema/fieldtypes")["fieldTypes"]
        ):
            self.node.send(
                "POST", "/solr/shop/schema", {"delete-field-type": {"name": fields["add-field-type"]["name"]}}
            )
        self.node.send("POST", "/solr/shop/schema", fields)
        self.node.send("POST", "/solr/shop/update", documents, commit="true")

    def _values(self, feature, query, count):
        """The values of one feature: what SolrFeature and FieldValueFeature do of their parameters."""
        params = feature["params"]
        kind = feature["class"].rpartition(".")[2]
        if kind == "ValueFeature":
            return np.full(count, float(params["value"]))
        sent = {"q": "*:*", "rows": count, "fl": "id,score", "query_text": query}
        if kind == "FieldValueFeature":
            sent["fl"] = f"id,score,value:def({params['field']},{params.get('defaultValue', 0.0)!r})"
        else:
            sent |= params
        found = self.node.send("GET", "/solr/shop/select", **sent)["response"]["docs"]
        values = np.zeros(count)
        for document in found:
            values[int(document["id"])] = document["value" if kind == "FieldValueFeature" else "score"]
        return values


class Module(Solr):
    """The feature store and the model in the module of a real node."""

    name = "Solr, module"

    def __init__(self, node):
        super().__init__(node)
        self.stores = set()

    def scores(self, exported, rows):
        """Scores of rows by a model with a TableEncoder."""
        self._index(json.loads(exported.files["fields.json"]), documents_of(rows))
        self._upload(json.loads(exported.files["features.json"]), exported.json())
        asked = np.array(rows["query"])
        out = np.full(len(asked), np.nan)
        for query in {*rows["query"]}:
            where = asked == query
            out[where] = self._reranked(query, len(asked))[where]
        return out

    def numbers(self, exported, X):
        """Scores of numbers in fields f0, f1, ... by a model whose features are those fields."""
        self._number_fields(X)
        solr = "org.apache.solr.ltr.feature."
        features = [
            {"name": name, "class": f"{solr}FieldValueFeature", "params": {"field": f"f{j}"}}
            for j, name in enumerate(NAMES)
        ]
        one = {"name": "rankrls_offset", "class": f"{solr}ValueFeature", "params": {"value": 1}}
        self._upload([*features, one], exported.json())
        return self._reranked("", len(X))

    def _upload(self, features, model):
        store = model.get("store", "_DEFAULT_")
        if self.stores:
            self.node.send("DELETE", "/solr/shop/schema/model-store/shop_v1")
        for old in self.stores:
            self.node.send("DELETE", f"/solr/shop/schema/feature-store/{old}")
        self.stores = {store}
        self.node.send("PUT", "/solr/shop/schema/feature-store", features)
        self.node.send("PUT", "/solr/shop/schema/model-store", model)

    def _reranked(self, query, count):
        rerank = f"{{!ltr model=shop_v1 reRankDocs={count} efi.query_text=$asked}}"
        sent = {"q": "*:*", "rq": rerank, "asked": query or " ", "rows": count, "fl": "id,score"}
        found = self.node.send("GET", "/solr/shop/select", **sent)["response"]["docs"]
        scores = {int(document["id"]): document["score"] for document in found}
        return np.array([scores[row] for row in range(count)])


class FeatureSet:
    """The queries of a feature set, run by a real node."""

    name = "OpenSearch, feature set"
    version = "2.19.6"

    def __init__(self, node):
        self.node = node

    def scores(self, exported, rows):
        """Scores of rows by a model with a TableEncoder."""
        recreate(self.node, exported.files["fields.json"], documents_of(rows))
        features = json.loads(exported.files["features.json"])["featureset"]["features"]
        of_query = lambda feature: feature["params"]
        value = lambda feature, query: self._values(feature, query, len(rows["query"]))
        values = by_query(features, of_query, value, rows["query"])
        return evaluators.elasticsearch(exported.content, values.__getitem__, list(values))

    def _values(self, feature, query, count):
        text = rendered(feature["template"], query if feature["params"] else None)
        values = np.zeros(count)
        for row, score in hits(self.node, f'{{"size": {count}, "query": {text}}}').items():
            values[row] = score
        return values


class Plugin:
    """The feature set and the model in the plugin of a real node."""

    name = "OpenSearch, plugin"
    version = "2.19"

    def __init__(self, node):
        self.node = node
        self.uploaded = False

    def scores(self, exported, rows):
        """Scores of rows by a model with a TableEncoder."""
        recreate(self.node, exported.files["fields.json"], documents_of(rows))
        self._upload(exported.files["features.json"], exported.content)
        asked = np.array(rows["query"])
        out = np.full(len(asked), np.nan)
        for query in {*rows["query"]}:
            found = self._rescored(query, len(asked))
            for row in np.flatnonzero(asked == query):
                out[row] = found[row]
        return out

    def numbers(self, exported, X):
        """Scores of numbers by a model whose features are fields, which cannot be negative, and the offset."""
        fields = [f"f{j}" for j in range(X.shape[1])]
        rows = [dict(zip(fields, row, strict=True)) for row in X.tolist()]
        types = json.dumps({"mappings": {"properties": {name: {"type": "double"} for name in fields}}})
        recreate(self.node, types, [{"id": str(i), **row} for i, row in enumerate(rows)])
        value = lambda field: {"function_score": {"field_value_factor": {"field": field}, "boost_mode": "replace"}}
        queries = {name: value(field) for name, field in zip(NAMES, fields, strict=True)}
        queries["rankrls_offset"] = {"match_all": {}}
        head = {"params": [], "template_language": "mustache"}
        features = [{"name": name, **head, "template": query} for name, query in queries.items()]
        self._upload(json.dumps({"featureset": {"features": features}}), exported.content)
        found = self._rescored("", len(X))
        return np.array([found[i] for i in range(len(X))])

    def _upload(self, features, model):
        if self.uploaded:
            self.node.send("DELETE", "/_ltr")
        self.uploaded = True
        self.node.send("PUT", "/_ltr")
        self.node.send("POST", "/_ltr/_featureset/shop", features)
        self.node.send("POST", "/_ltr/_featureset/shop/_createmodel", model)

    def _rescored(self, query, count):
        search = {"sltr": {"model": "shop_v1", "params": {"query_text": query}}}
        rescore = {"window_size": count, "query": {"query_weight": 0.0, "rescore_query": search}}
        body = {"size": count, "query": {"match_all": {}}, "rescore": rescore}
        return hits(self.node, json.dumps(body))


class Query:
    """The plain rescoring query, as a whole in a real node."""

    name = "OpenSearch, query"
    version = "2.19.6"

    def __init__(self, node):
        self.node = node

    def scores(self, exported, rows):
        """Scores of rows by a model with a TableEncoder."""
        recreate(self.node, exported.files["fields.json"], documents_of(rows))
        asked = np.array(rows["query"])
        out = np.full(len(asked), np.nan)
        for query in {*rows["query"]}:
            found = self._rescored(exported, query, len(asked))
            for row in np.flatnonzero(asked == query):
                out[row] = found[row]
        return out

    def numbers(self, exported, X):
        """Scores of numbers in fields with the features' names."""
        fields = json.dumps({"mappings": {"properties": {name: {"type": "double"} for name in NAMES}}})
        recreate(
            self.node,
            fields,
            [{"id": str(i), **dict(zip(NAMES, row, strict=True))} for i, row in enumerate(X.tolist())],
        )
        found = self._rescored(exported, None, len(X))
        return np.array([found[i] for i in range(len(X))])

    def _rescored(self, exported, query, count):
        body = json.loads(rendered(exported.json(), query))
        body["rescore"]["window_size"] = count
        return hits(self.node, json.dumps({"size": count, "query": {"match_all": {}}, **body}))


def by_query(features, of_query, value, asked):
    """The values of features by name: of each row those for its query, where they depend on it."""
    asked = np.array(asked)
    values = {}
    for feature in features:
        values[feature["name"]] = value(feature, asked[0])
        for query in {*asked} if of_query(feature) else ():
            where = asked == query
            values[feature["name"]][where] = value(feature, query)[where]
    return values


def recreate(node, fields, documents):
    """An index of its own for a case, without the fields that no document has."""
    body = json.loads(fields)
    properties = body["mappings"]["properties"]
    held = {name for document in documents for name in document}
    body["mappings"]["properties"] = {name: kind for name, kind in properties.items() if name in held}
    if any(index["index"] == "shop" for index in node.send("GET", "/_cat/indices", format="json")):
        node.send("DELETE", "/shop")
    node.send("PUT", "/shop", body)
    lines = []
    for document in documents:
        lines += [json.dumps({"index": {"_id": document["id"]}}), json.dumps(document)]
    answer = node.send("POST", "/shop/_bulk", "\n".join(lines) + "\n", refresh="true")
    assert not answer["errors"], json.dumps(answer)[:2000]


def rendered(template, query):
    """A mustache template with the text of a query, escaped as in JSON."""
    text = json.dumps(template)
    return text if query is None else text.replace("{{query_text}}", json.dumps(query)[1:-1])


def hits(node, body):
    """The scores of the documents that match, by row."""
    return {int(hit["_id"]): hit["_score"] for hit in node.send("POST", "/shop/_search", body)["hits"]["hits"]}


def numbers(seed, m=150):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 5)) * [3.0, 40.0, 0.1, 1.0, 1.0] + [0.0, 300.0, -2.0, 0.0, 0.0]
    X[:, 4] = X[:, 4] > 0.5
    return X.round(4)


def linear_cases():
    """Linear models with every scaler, under awkward names; and one that strong regularization has shrunk."""
    X = numbers(0)
    y = np.digitize(X @ [0.5, 0.02, 5.0, -1.0, 1.0], [-6.0, -2.0]).astype(float)
    qid = np.repeat(np.arange(15), 10)
    for case, steps in {**SCALERS, "standard, alpha 1e8": SCALERS["standard"]}.items():
        steps = [clone(step) for step in steps]
        Z = X
        for step in steps:
            Z = step.fit_transform(Z)
        alpha = 1e8 if "alpha" in case else 1.0
        yield f"numbers, {case}", make_pipeline(*steps, RankRLS(alpha=alpha).fit(Z, y, qid=qid)), numbers(1)


def table_cases(engine):
    """Models of tables with every kind of column."""
    if not isinstance(engine, Solr):  # whose fields need plain names
        yield "table, odd names", fitted([StandardScaler()], odd=True), renamed(shop(seed=11, new=True))
    for case in ("raw", "standard", "min-max", "robust"):
        yield f"table, {case}", fitted([clone(step) for step in SCALERS[case]]), shop(seed=7, new=True)
    yield "table, rare categories", fitted([StandardScaler()], min_frequency=20), shop(seed=8, new=True)
    gaps = shop(seed=10, new=True)
    gaps |= {name: [None] * len(gaps["query"]) for name in ("added", "drift", "size", "in_stock")}
    yield "table, unmapped fields", fitted([StandardScaler()]), gaps
    yield "table, alpha 1e7", fitted([StandardScaler()], alpha=1e7), shop(seed=9, new=True)


def exported_for(engine, model, offset, **options):
    to = {
        Solr: to_solr,
        Module: to_solr,
        FeatureSet: to_elasticsearch,
        Plugin: to_elasticsearch,
        Query: to_elasticsearch_query,
    }
    return to[type(engine)](model, "shop_v1", offset=offset, **options)


def compare(scores, wanted):
    """Largest difference, relative to the spread of scores, and whether the order is kept."""
    scores = np.asarray(scores, dtype=np.float64)
    difference = float(np.abs(scores - wanted).max() / np.ptp(wanted))
    order = np.argsort(wanted, kind="stable")
    apart = np.diff(wanted[order]) > 1e-9 * np.ptp(wanted)
    kept = bool((np.diff(scores[order])[apart] > 0.0).all())
    return difference, kept


def run(engine):
    """Rows of the table for an engine."""
    if hasattr(engine, "numbers"):
        for case, model, X in linear_cases():
            if isinstance(engine, Plugin):
                X = np.abs(X)
            offset = positive_offset(model, X)
            exported = exported_for(engine, model, offset, feature_names=NAMES)
            yield case, *compare(engine.numbers(exported, X), exported.factor * model.predict(X) + offset)
    for case, model, rows in table_cases(engine):
        table = table_of(rows)
        offset = positive_offset(model, table) + 100.0 * (engine.name == Query.name)
        exported = exported_for(engine, model, offset)
        yield case, *compare(engine.scores(exported, rows), exported.factor * model.predict(table) + offset)


def main():
    """Print the table; whether something failed."""
    failed = 0
    passed = 0
    print(f"{'engine':30} {'case':28} largest difference / spread   order")
    programs = {
        "solr": [Solr, *([Module] if MODULES["solr"] else [])],
        "opensearch": [FeatureSet, *([Plugin] if MODULES["opensearch"] else []), Query],
    }
    for program, kinds in programs.items():
        with running(program) as node:
            for engine in kinds:
                label = f"{engine.name} {engine.version}"
                for case, difference, kept in run(engine(node)):
                    good = kept and difference < 1e-5
                    passed += good
                    failed += not good
                    print(f"{label:30} {case:28} {difference:.1e} {'kept' if kept else 'CHANGED'}", flush=True)
        with running(program) as node:
            ran, lacking, orders = walk(program, node, has_ltr=bool(MODULES[program]))
            good = ran > 0 and all(orders)
            passed += good
            failed += not good
            order = f"{len(orders)} searches {'kept' if all(orders) else 'CHANGED'}"
            text = f"{ran} ran, {lacking} need the module or plugin; {order}"
            print(f"{program:30} {'the commands of the guide':28} {text}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
