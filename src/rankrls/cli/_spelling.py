"""Messages in terms of the command line: options for parameters, methods for estimators."""

from __future__ import annotations

import re
from ast import literal_eval
from functools import cache

from rankrls._errors import Parameter, Stated
from rankrls.cli._methods import METHODS
from rankrls.cli._options import flag_of, names_of_options

_PLAIN = re.compile(r"[\w.,:@%+=/-]+")
_SPELLED = {
    "C": "--Cs",
    "scoring": "--metric",
    "feature_names": "--names",
    "n_features": "--features",
    "X_val": "--vali",
    "X_val, y_val, qid_val": "--vali",
    "winners_val": "--vali-pairs",
    "gain='positive'": "--convention trec",
    "gain='linear'": "--convention sklearn",
    "to_onnx": "--format onnx",
    "zero_based=False": "the model",
    "format": "--input-format",
    "cv=leave_pair_out": "--leave-pair-out",
    "queries=ignored": "--global",
}
"""Parameters, with or without a value, that are not called after an option."""


def said(error: BaseException | str) -> str:
    """A message, with options for the parameters that it names."""
    return error.render(_spell) if isinstance(error, Stated) else str(error)


def _spell(parameter: Parameter) -> str:
    known = _known()
    if parameter in known or parameter.value is None:
        return known.get(parameter, str(parameter))
    if parameter.name not in known:
        return str(parameter)
    value = parameter.value.strip("'")
    if value.startswith("["):
        from rankrls.io.tables.writing import cell

        value = _quoted(",".join(cell(name) for name in literal_eval(value)))
    return f"{known[parameter.name]} {value}"


def _quoted(text: str) -> str:
    """A word of a shell's line."""
    return text if _PLAIN.fullmatch(text) else "'" + text.replace("'", "'\\''") + "'"


@cache
def _known() -> dict[str, str]:
    methods = {method.estimator: f"--method {name}" for name, method in METHODS.items()}
    return {name: flag_of(name) for name in names_of_options()} | methods | _SPELLED
