"""Displays can be made without matplotlib; drawing says what to install."""

import sys

import pytest
from tests.refusals import Refusal

from rankrls import plots

DISPLAYS = {
    "AlphaSelectionDisplay": ([1.0, 2.0], [0.1, 0.2]),
    "CoefficientsDisplay": ([1.0, -2.0],),
    "PerQueryDifferencesDisplay": ([1.0, 2.0], [0.0, 2.0]),
    "PursuitPathDisplay": ([0.3, 0.2],),
    "RegularizationPathDisplay": ([1.0, 2.0], [[1.0], [0.5]]),
    "ValidationSurfaceDisplay": ([[0.1, 0.2]], [1.0]),
}


@pytest.mark.parametrize("name", sorted(plots.__all__))
def test_the_error_names_the_extra(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    display = getattr(plots, name)(*DISPLAYS[name])
    with Refusal("pip install 'rankrls[plots]'", kind=ImportError):
        display.plot()
