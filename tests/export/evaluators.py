"""What the engines do with an uploaded model, in float32, from their documentation alone; nothing of rankrls is used.

Each scorer takes the text of the file and a function that gives a feature's values by its name, as the engine would
compute them for the documents of a query, and returns the documents' scores.
"""

import json
import math
import re
from datetime import datetime

import numpy as np

F = np.float32
WORDS = re.compile(r"\w+")  # what a field of text is analysed to: lower-case words


def solr(text, values):
    """Solr reference guide, Learning To Rank: LinearModel over normalized features; weights are read as doubles."""
    model = json.loads(text)
    assert model["class"] == "org.apache.solr.ltr.model.LinearModel"
    assert isinstance(model["name"], str)
    weights = model["params"]["weights"]
    names = [feature["name"] for feature in model["features"]]
    assert len(set(names)) == len(names)
    missing = [name for name in names if name not in weights]
    assert not missing, f"Model {model['name']} is missing weight(s) for {missing}"
    total = F(0)
    for feature in model["features"]:
        weight = weights[feature["name"]]
        assert isinstance(weight, float)  # the engine casts to Double: an integer or a string is an error there
        x = values(feature["name"]).astype(F)
        if "norm" in feature:
            params = feature["norm"]["params"]
            assert all(isinstance(v, str) for v in params.values())
            assert feature["norm"]["class"] == "org.apache.solr.ltr.norm.StandardNormalizer"
            avg, std = F(float(params["avg"])), F(float(params["std"]))
            assert std > 0
            x = (x - avg) / std
        total = total + F(weight) * x
    return total


def elasticsearch(text, values, feature_set):
    """Elasticsearch Learning to Rank: model/linear; a feature that the definition does not name has weight 0."""
    body = json.loads(text)["model"]
    assert isinstance(body["name"], str)
    model = body["model"]
    assert model["type"] == "model/linear"
    definition = json.loads(model["definition"])
    unknown = set(definition) - set(feature_set)
    assert not unknown, f"Feature [{unknown}] is unknown."
    assert all(isinstance(w, float) for w in definition.values())
    normalizers = model.get("feature_normalizers", {})
    total = F(0)
    for name in feature_set:
        x = values(name).astype(F)
        if name in normalizers:
            ((kind, params),) = normalizers[name].items()
            assert kind == "standard"
            assert set(params) == {"mean", "standard_deviation"}
            x = (x - F(params["mean"])) / F(params["standard_deviation"])
        total = total + F(definition.get(name, 0.0)) * x
    return total


SCORERS = {"solr": lambda text, values, names: solr(text, values), "elasticsearch": elasticsearch}
"""What each engine makes of a file, from the file's text, a feature's values by its name, and all names."""


def solr_scores(exported, documents, query):
    """Scores of documents by a model with the definitions of its features."""
    found = solr_features(exported, documents, query)
    return solr(exported.content, found.__getitem__)


def elasticsearch_scores(exported, documents, query):
    """The same in Elasticsearch and OpenSearch."""
    found = elasticsearch_features(exported, documents, query)
    return elasticsearch(exported.content, found.__getitem__, list(found))


def instant(text):
    """Seconds since 1970 of a date in UTC."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Documents:
    """Documents of an index: JSON objects, where an empty cell is no field; the types of fields; and the query's text
    for each.
    """

    def __init__(self, documents, types, query=None):
        self.documents, self.types, self.query = documents, types, query

    def __len__(self):
        return len(self.documents)

    def of(self, field):
        """The values of a field; dates in milliseconds since 1970."""
        values = [document.get(field) for document in self.documents]
        dates = self.types.get(field) in ("date", "pdate")
        return [None if value is None else instant(value) * 1000.0 if dates else value for value in values]

    def words(self, field):
        assert self.types[field] in ("text", "rankrls_words")
        return [set(WORDS.findall((text or "").lower())) for text in self.of(field)]

    def having(self, field, text):
        """Which documents a term matches: of a text one of its words, else the value, read as the field's type."""
        kind = self.types.get(field)
        if kind in ("text", "rankrls_words"):
            return [text in words for words in self.words(field)]
        if kind == "boolean":
            assert text in ("true", "false"), f"Can't parse boolean value [{text}]"
            return [value is (text == "true") for value in self.of(field)]
        if kind in ("double", "pdouble"):
            return [value is not None and value == float(text) for value in self.of(field)]
        return [value == text for value in self.of(field)]

    def matches(self, field):
        """The score of a query by a similarity that counts the different words which a document has."""
        asked = [set(WORDS.findall(query.lower())) for query in self.query]
        return [len(words & query) for words, query in zip(self.words(field), asked, strict=True)]


def solr_features(exported, documents, query):
    """Solr reference guide, Learning To Rank and Function Queries: the features of a feature store, by name.

    A FieldValueFeature of a document without the field is its defaultValue, a SolrFeature with fq alone 1 or 0, and the
    scores of queries are never negative.
    """
    fields = json.loads(exported.files["fields.json"])
    assert all(field["docValues"] for field in fields["add-field"] if field["type"] != "rankrls_words")
    types = {field["name"]: field["type"] for field in fields["add-field"]}
    assert ("rankrls_words" in types.values()) == ("add-field-type" in fields)
    documents = Documents(documents, types, query)
    model = json.loads(exported.content)
    out = {}
    for feature in json.loads(exported.files["features.json"]):
        assert feature["store"] == model["store"]
        params, kind = feature["params"], feature["class"].removeprefix("org.apache.solr.ltr.feature.")
        assert feature["name"] not in out
        if kind == "ValueFeature":
            values = [params["value"]] * len(documents)
        elif kind == "FieldValueFeature":
            assert isinstance(params["defaultValue"], float)
            values = [params["defaultValue"] if value is None else value for value in documents.of(params["field"])]
        elif "fq" in params:
            assert kind == "SolrFeature"
            (query,) = params["fq"]
            absent = re.fullmatch(r"-(\w+):\[\* TO \*\]", query)
            if absent:
                values = [value is None for value in documents.of(absent[1])]
            else:
                field, word = re.fullmatch(r"\{!term f=(\w+)\}(.*)", query, re.S).groups()
                assert "${" not in word  # would be a parameter of the request
                values = documents.having(field, word)
        elif params["q"].startswith("{!func}"):
            values = [max(_function(params["q"][7:], documents, row), 0.0) for row in range(len(documents))]
        else:
            found = re.fullmatch(r"\{!simple qf=(\w+) q\.op=OR q\.operators=''\}\$\{query_text\}", params["q"])
            values = documents.matches(found[1])
        out[feature["name"]] = np.array(values, dtype=F)
    return out


def _function(text, documents, row):
    """A function query of one document."""
    value, rest = _argument(text, documents, row)
    assert rest == ""
    return value


def _argument(text, documents, row):
    date = re.match(r"\d{4}-\d\d-\d\dT[\d:.]+Z", text)
    if date:
        return instant(date[0]) * 1000.0, text[date.end() :]
    number = re.match(r"-?\d+(\.\d+)?(e[+-]?\d+)?", text)
    if number:
        return float(number[0]), text[number.end() :]
    name = re.match(r"\w+", text)[0]
    rest = text[len(name) :]
    if not rest.startswith("("):
        assert not re.match(r"NOW|.\d", name)  # ms reads such names as dates
        return documents.of(name)[row], rest
    values = []
    while rest[0] != ")":
        value, rest = _argument(rest[1:], documents, row)
        values.append(value)
    functions = {
        "exists": lambda a: a is not None,
        "if": lambda test, yes, no: yes if test else no,
        "ms": lambda a, b: None if b is None else a - b,
        "div": lambda a, b: None if a is None else a / b,
        "sub": lambda a, b: a - b,
        "sum": lambda *terms: None if None in terms else sum(terms),
        "product": lambda *terms: None if None in terms else math.prod(terms),
        "max": max,
        "sin": lambda a: None if a is None else math.sin(a),
        "cos": lambda a: None if a is None else math.cos(a),
    }
    return functions[name](*values), rest[1:]


def elasticsearch_features(exported, documents, query):
    """Elasticsearch, query DSL and Painless: the scores of the queries of a feature set.

    A negative score fails the search. A document that a query does not match has the value 0.
    """
    documents = Documents(documents, _types(exported.files["fields.json"]), query)
    out = {}
    for feature in json.loads(exported.files["features.json"])["featureset"]["features"]:
        assert feature["template_language"] == "mustache"
        template = feature["template"]
        if "match" not in template:
            assert feature["params"] == []
            assert "{{" not in json.dumps(template)
        values = [0.0 if value is None else value for value in _scores(template, documents)]
        assert feature["name"] not in out
        out[feature["name"]] = np.array(values, dtype=F)
    return out


def _types(fields):
    body = json.loads(fields)
    properties = body["mappings"]["properties"]
    for field in properties.values():
        if field["type"] == "text":
            assert field["similarity"] == "boolean"
            assert {field["analyzer"], field["search_analyzer"]} <= set(body["settings"]["analysis"]["analyzer"])
    return {name: field["type"] for name, field in properties.items()}


def elasticsearch_query(exported, documents, query, types=None):
    """The scores of a rescoring query; constants cannot have negative weights, nor documents negative scores."""
    types = types or _types(exported.files["fields.json"])
    documents = Documents(documents, types, query)
    settings = exported.json()["rescore"]["query"]
    assert (settings["query_weight"], settings["rescore_query_weight"]) == (0.0, 1.0)
    return np.array(_scores(settings["rescore_query"], documents), dtype=F)


def _scores(query, documents):
    """The scores of a query, None where it does not match."""
    ((kind, body),) = query.items()
    scores = _QUERIES[kind](body, documents)
    assert all(score is None or score >= 0.0 for score in scores), "Negative scores are not allowed"
    return scores


def _flags(found):
    return [1.0 if each else None for each in found]


def _boolean(body, documents):
    parts = [_scores(query, documents) for query in body.get("should", [])]
    apart = [_scores(query, documents) for query in body.get("must_not", [])]
    must = [_scores(query, documents) for query in body.get("filter", [])]
    out = []
    for row in range(len(documents)):
        found = [part[row] for part in parts if part[row] is not None]
        matches = all(part[row] is None for part in apart) and all(part[row] is not None for part in must)
        out.append(sum(found) if matches and (found or must or not parts) else None)
    return out


def _term(body, documents):
    ((field, word),) = body.items()
    return _flags(documents.having(field, word))


def _match(body, documents):
    ((field, asked),) = body.items()
    boost = 1.0
    if isinstance(asked, dict):
        boost = asked["boost"]
        asked = asked["query"]
    assert asked == "{{query_text}}"
    return [boost * count or None for count in documents.matches(field)]


def _constant_score(body, documents):
    assert set(body) == {"filter"}
    return [None if score is None else 1.0 for score in _scores(body["filter"], documents)]


def _function_score(body, documents):
    matching = _scores(body["query"], documents)
    if "functions" not in body:
        assert body["boost_mode"] == "replace"
        values = _values(body, documents)
        return [None if score is None else value for score, value in zip(matching, values, strict=True)]
    assert body["score_mode"] == "sum"
    total = [score if body["boost_mode"] == "sum" else 0.0 for score in matching]
    for function in body["functions"]:
        weight = function.get("weight", 1.0)
        assert weight >= 0.0, "[weight] cannot be negative for a filtering function"
        where = _scores(function.get("filter", {"match_all": {}}), documents)
        values = _values(function, documents)
        for row in range(len(documents)):
            total[row] += 0.0 if where[row] is None else weight * values[row]
    return total


def _values(function, documents):
    """What a function gives for each document; negative values are an error where the function applies."""
    if "script_score" not in function:
        return [1.0] * len(documents)
    script = function["script_score"]["script"]
    assert script["lang"] == "painless"
    return _sums(script["params"], documents)


def _sums(params, documents):
    """What the script says, in Python."""
    out = []
    columns = {feature["field"]: documents.of(feature["field"]) for feature in params["features"]}
    for row in range(len(documents)):
        score = params["constant"]
        for feature in params["features"]:
            value = columns[feature["field"]][row]
            x = feature["fill"]
            if value is not None and feature["kind"] == "number":
                x = value
            elif value is not None and feature["kind"] == "missing":
                x = 0.0
            elif value is not None and "weights" in feature:
                key = str(value).lower() if isinstance(value, bool) else str(value)
                key = key if isinstance(value, (bool, str)) else f"{value:g}"
                x = feature["weights"].get(key, 0.0)
            elif value is not None:
                x = (feature["origin"] - value) / 864e5
                wave = {"sine": math.sin, "cosine": math.cos}.get(feature["kind"])
                x = wave(feature["angle"] * x) if wave else x
            score += feature["weight"] * x
        out.append(max(score, 0.0))
    return out


_QUERIES = {
    "match_all": lambda body, documents: [1.0] * len(documents),
    "exists": lambda body, documents: _flags(value is not None for value in documents.of(body["field"])),
    "bool": _boolean,
    "term": _term,
    "match": _match,
    "constant_score": _constant_score,
    "function_score": _function_score,
}
