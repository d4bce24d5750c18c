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


def instant(text):
    """Seconds since 1970 of a date in UTC."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Documents:
    """Raw rows as documents: numbers, texts, and dates in seconds since 1970; None is a field that is not there."""

    def __init__(self, rows, dates=(), query=None):
        self.rows, self.dates, self.query = rows, dates, query

    def of(self, name):
        """The values of a field."""
        return self.rows[name]

    def __len__(self):
        return len(next(iter(self.rows.values())))

    def words(self, name):
        return [set(WORDS.findall((text or "").lower())) for text in self.of(name)]


def solr_features(text, documents):
    """Solr reference guide, Learning To Rank and Function Queries: the features of a feature store, by name.

    A FieldValueFeature of a document without the field is 0, a SolrFeature with fq alone 1 or 0, and the scores of
    queries are never negative.
    """
    out = {}
    for feature in json.loads(text):
        params, kind = feature["params"], feature["class"].removeprefix("org.apache.solr.ltr.feature.")
        assert feature["name"] not in out
        if kind == "ValueFeature":
            values = [params["value"]] * len(documents)
        elif kind == "FieldValueFeature":
            values = [0.0 if value is None else value for value in documents.of(params["field"])]
        elif "fq" in params:
            assert kind == "SolrFeature"
            (query,) = params["fq"]
            field, word = re.fullmatch(r"\{!term f=(\w+)\}(.*)", query, re.S).groups()
            assert "${" not in word  # would be a parameter of the request
            values = _has(documents, field, word)
        elif params["q"].startswith("{!func}"):
            values = [max(_function(params["q"][7:], documents, row), 0.0) for row in range(len(documents))]
        else:
            field = re.fullmatch(r"\{!dismax qf=(\w+) mm=0\}\$\{query_text\}", params["q"])[1]
            values = _matches(documents, field)
        out[feature["name"]] = np.array(values, dtype=F)
    return out


def _has(documents, field, word):
    """Whether a term is in a field: of a string the whole, of a text one of its words."""
    return [
        value == word or word in words for value, words in zip(documents.of(field), documents.words(field), strict=True)
    ]


def _matches(documents, field):
    """The score of a query by a similarity that counts the words which a document has."""
    asked = [set(WORDS.findall(query.lower())) for query in documents.query]
    return [len(words & query) for words, query in zip(documents.words(field), asked, strict=True)]


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
        value = documents.of(name)[row]
        return (value * 1000.0 if name in documents.dates and value is not None else value), rest
    values = []
    while rest[0] != ")":
        value, rest = _argument(rest[1:], documents, row)
        values.append(value)
    functions = {
        "exists": lambda a: a is not None,
        "def": lambda a, b: b if a is None else a,
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


def elasticsearch_features(text, documents):
    """Elasticsearch, query DSL and Painless: the scores of the queries of a feature set; a negative one is an error."""
    out = {}
    for feature in json.loads(text)["featureset"]["features"]:
        assert feature["template_language"] == "mustache"
        template = feature["template"]
        if "match" not in template:
            assert feature["params"] == []
            assert "{{" not in json.dumps(template)
        ((kind, body),) = template.items()
        values = _QUERIES[kind](body, documents)
        assert feature["name"] not in out
        out[feature["name"]] = np.array(values, dtype=F)
        assert (out[feature["name"]] >= 0).all()
    return out


def _constant_score(body, documents):
    ((kind, inner),) = body["filter"].items()
    if kind == "term":
        ((field, word),) = inner.items()
        return _has(documents, field, word)
    field = inner["must_not"]["exists"]["field"]
    return [value is None for value in documents.of(field)]


def _function_score(body, documents):
    assert body.pop("query") == {"match_all": {}}
    ((kind, inner),) = body.items()
    if kind == "field_value_factor":
        return [inner["missing"] if value is None else value for value in documents.of(inner["field"])]
    script = inner["script"]
    assert script["lang"] == "painless"
    params, source = script["params"], script["source"]
    field = params["field"]
    negated = re.fullmatch(r"Math\.max\(0\.0, (-?)\(?(.*?)\)?\)", source) if source.startswith("Math.max") else None
    inside = negated[2] if negated else source
    test, yes, no = re.fullmatch(r"(.*?) \? (.*?) : (.*)", inside).groups()
    if no.count("(") > no.count(")"):
        no += ")"
    assert test == "doc[params.field].size() == 0"
    value = "doc[params.field].value"
    no = no.replace(f"{value}.toInstant().toEpochMilli()", "(value * 1000.0)").replace(value, "value")
    names = {"math": math}
    out = []
    for value in documents.of(field):
        expression = (yes if value is None else no).replace("Math.", "math.")
        expression = re.sub(r"params\.(\w+)", lambda m: repr(params[m[1]]), expression)
        found = eval(expression, {"__builtins__": {}}, {**names, "value": value})
        out.append(max(0.0, -found if negated and negated[1] else found) if negated else found)
    return out


_QUERIES = {
    "match_all": lambda body, documents: [1.0] * len(documents),
    "constant_score": _constant_score,
    "function_score": _function_score,
    "match": lambda body, documents: _matches(documents, *[f for f, text in body.items() if text == "{{query_text}}"]),
}
