"""Each problem gets the cases that it is a problem of."""

from __future__ import annotations

from tests.selection.contract import CASES, ProblemContract


def pytest_generate_tests(metafunc):
    if "case" in metafunc.fixturenames and issubclass(metafunc.cls, ProblemContract):
        names = [name for name in CASES if metafunc.cls.applies(name)]
        metafunc.parametrize("case", [CASES[name]() for name in names], ids=names)
