"""What the engines do with an uploaded model, in float32, from their documentation alone; nothing of rankrls is used.

Each scorer takes the text of the file and a function that gives a feature's values by its name, as the engine would
compute them for the documents of a query, and returns the documents' scores.
"""

import json
import re

import numpy as np

F = np.float32


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
            kind = feature["norm"]["class"].removeprefix("org.apache.solr.ltr.norm.")
            if kind == "StandardNormalizer":
                avg, std = F(float(params["avg"])), F(float(params["std"]))
                assert std > 0
                x = (x - avg) / std
            else:
                assert kind == "MinMaxNormalizer"
                low, high = F(float(params["min"])), F(float(params["max"]))
                assert low != high
                x = (x - low) / (high - low)
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
            if kind == "standard":
                assert set(params) == {"mean", "standard_deviation"}
                x = (x - F(params["mean"])) / F(params["standard_deviation"])
            else:
                assert kind == "min_max"
                assert set(params) == {"minimum", "maximum"}
                low, high = F(params["minimum"]), F(params["maximum"])
                assert low < high
                x = (x - low) / (high - low)
        total = total + F(definition.get(name, 0.0)) * x
    return total


def vespa(text, values, names):
    """Vespa: the expression of the rank profile, evaluated as arithmetic; rank features are what names says."""
    (expression,) = re.findall(r"expression \{\n(.*?)\n\s*\}", text, re.S)
    assert re.match(r"rank-profile [\w-]+ inherits default \{\n    \S+-phase \{\n", text)
    assert text.count("{") == text.count("}")
    columns = {}
    for k, name in enumerate(sorted(names, key=len, reverse=True)):
        expression = re.sub(rf"(?<![\w.(]){re.escape(name)}(?![\w(.])", f"f{k}_", expression)
        expression = re.sub(rf"(?<=\(){re.escape(name)}(?= [-+])", f"f{k}_", expression)
        columns[f"f{k}_"] = values(name).astype(F).astype(float)
    assert re.fullmatch(r"[\w\s.+\-*/()]+", expression), expression
    return eval(" ".join(expression.split()), {"__builtins__": {}}, columns)


def plain(text, values):
    """Plain JSON: the sum that its own text describes."""
    model = json.loads(text)
    assert model["score"] == "constant + sum of weight * (value - centre) / spread"
    total = model["constant"]
    for feature in model["features"]:
        total = total + feature["weight"] * (values(feature["name"]) - feature["centre"]) / feature["spread"]
    return total
