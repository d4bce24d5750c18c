"""What the library says, in the words of the command line: its parameters are options here."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

__all__ = ["in_options", "in_words"]

FLAGS: dict[str, str] = {
    **{name: "--" + name.replace("_", "-") for name in ("alphas", "kernel", "gamma", "degree", "coef0", "rule")},
    **{name: "--" + name.replace("_", "-") for name in ("ties", "balance", "regression_weight", "convention")},
    "alpha": "alpha",
    "C": "--Cs",
    "cv": "--cv",
    "scoring": "--metric",
    "leave_pair_out": "--leave-pair-out",
}
"""Parameters that every learner may name; those of one method are in its own table."""

_PHRASES = [
    (r"X_val(?:,| and) y_val(?:, qid_val| \(and qid_val where fit has qid\))?", "--vali"),
    (r",? (?:or )?folds of rows \(cv\)", ""),  # --cv makes folds of whole queries
    (r" \(n_samples = (\d+)\)", r" (\1 rows)"),
    (r"check y and qid", "check the labels and the qids"),
    (r"Give k, or a name such as", "Give a name such as"),
    (r"choose gain='positive' \(negative counts as 0\) or a callable", "take --convention trec (negative counts as 0)"),
    (r"Choose another gain, such as gain='linear'", "Take --convention sklearn, where a label is its own gain"),
    (r"must be None or ", "must be "),
    (r"; got None\b", ""),
    (r"This \w+ is not linear", "This model is not linear"),
    (r"to ONNX \(to_onnx\)", "to ONNX (--format onnx)"),
    (r"has no depth; got k=(\d+)", r"has no depth; got \1"),
    (r"(Holding out [\w ]*preferences .*Give validation data)\.", r"\1 (--vali-pairs)."),
    (r"lower C\b", "give smaller --Cs"),
    (r"is beyond n_features=(\d+), with", r"is beyond the \1 features that are read, with"),
    (r"zero_based=False says that ids start at 1", "in the data of the model ids start at 1"),
]
_STARTS = r"(?= must| needs?\b| is | has | of | means)"
_OVERFLOW = re.compile(r"(overflow|invalid value|divide by zero) encountered")
_TOO_LARGE = "numbers overflowed: features as large or as far apart as these need scaling (see --scale)."


def in_words(text: str, flags: Mapping[str, str] = FLAGS) -> str:
    """A message with options for parameters.

    ``name=value`` becomes ``--name value``; a name alone is changed where it cannot be an English word: with a capital
    or an underline in it, in brackets, or where the message begins with what is wrong about it.

    Parameters
    ----------
    text : str
    flags : mapping of str to str
        Parameters and what they are called here.

    Examples
    --------
    >>> from rankrls.cli._words import in_words
    >>> in_words("tol must be below 1; lower tol, or take cv=5 (cv).", {"tol": "--tol", "cv": "--cv"})
    '--tol must be below 1; lower --tol, or take --cv 5 (--cv).'
    """
    for pattern, words in _PHRASES:
        text = re.sub(pattern, words, text)
    for name, flag in flags.items():
        word = rf"(?<![\w./-]){re.escape(name)}"
        text = re.sub(rf"{word}=(['\"]?)([^\s'\",;:()]*[^\s'\",;:().])\1", rf"{flag} \2", text)
        text = re.sub(rf"\({word}\)", f"({flag})", text)
        text = re.sub(rf"^{word}{_STARTS}", flag, text)
        if "_" in name or name == "tol":
            text = re.sub(rf"{word}(?![\w/-]|\.\w)", flag, text)
    return text


@contextmanager
def in_options(
    flags: Mapping[str, str] | None = None,
    names: Mapping[str, str] | None = None,
    hints: Mapping[str, str] | None = None,
) -> Iterator[None]:
    """Errors and warnings from inside, with options for parameters; a package that is not installed is bad input.

    Parameters
    ----------
    flags : mapping of str to str, optional
        Parameters beside those of ``FLAGS``, and what they are called here.
    names : mapping of str to str, optional
        Classes, and what they are called here.
    hints : mapping of str to str, optional
        What to add to an error that has some words in it.
    """
    known = FLAGS | dict(flags or {})
    classes = dict(names or {})

    def say(text: str) -> str:
        for name, words in classes.items():
            text = re.sub(rf"^{name}: ", "", text)
            text = re.sub(rf"\b{name}\b", words, text)
        return in_words(text, known)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except ValueError as error:
            if type(error).__name__ == "LinAlgError":
                raise ValueError(f"{_TOO_LARGE} ({error})") from error
            text = say(str(error))
            hint = next((hint for words, hint in (hints or {}).items() if words in str(error)), None)
            raise ValueError(f"{text} ({hint}.)" if hint else text) from error
        except ImportError as error:
            if "pip install" not in str(error):
                raise
            raise ValueError(str(error)) from error
        finally:
            found = [(str(w.message), w.category) for w in caught]
    for text, category in dict.fromkeys(found):
        overflow = issubclass(category, RuntimeWarning) and _OVERFLOW.match(text)
        warnings.warn(_TOO_LARGE if overflow else say(text), category, stacklevel=2)
