"""Fuzzing guided by coverage, on the Python forms of the LETOR scanner and of the reader of model files.

Needs atheris, in an environment of its own::

    NUMBA_DISABLE_JIT=1 python -m attack.guided letor FOLDER -max_total_time=300 -max_len=400

FOLDER collects the inputs that reach new code; those worth keeping are small and go into ``attack/corpus``. What goes
wrong ends the run, and libFuzzer writes the input beside it.
"""

from __future__ import annotations

import os
import sys
import warnings

import atheris

os.environ["NUMBA_DISABLE_JIT"] = "1"
sys.dont_write_bytecode = True
_INSTRUMENTED = ("rankrls.io", "rankrls.persistence")
with atheris.instrument_imports(include=[*_INSTRUMENTED]):
    from attack import letor, models
    from attack.campaign import Refused
    from attack.cases import packed
    from attack.model_files import Changed

_OPTIONS = {"gzip": "", "file": False, "threads": 1, "single": False, "n_features": None, "zero_based": "auto"}


def letor_text(data: bytes) -> None:
    """The first byte chooses the options."""
    if not data:
        return
    dense = [True, False, "auto"][data[0] % 3]
    case = {**_OPTIONS, "block": [1, 7, 4096][data[0] // 3 % 3], "dense": dense}
    _judge(letor.judge, packed(case, data[1:]))


def model_tree(data: bytes) -> None:
    """A tree in the place of that of a right file; the first byte chooses the file."""
    if not data:
        return
    names = sorted(models.seeds())
    name = names[data[0] % len(names)]
    changed = Changed(models.seeds()[name][0])
    document = changed.parts["model.json"]
    start = document.index(b'"model":') + len(b'"model":')
    changed.parts["model.json"] = document[:start] + data[1:]
    from attack.model_files import archived

    _judge(models.judge, packed({"seed": name, "large": True}, archived(changed.parts)))


def _judge(judge, case: bytes) -> None:  # type: ignore[no-untyped-def]
    try:
        judge(case)
    except Refused:
        return


def main() -> None:
    """Hand over to libFuzzer."""
    warnings.simplefilter("ignore")
    target = {"letor": letor_text, "models": model_tree}[sys.argv.pop(1)]
    if target is model_tree:
        models.warm_up()
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
