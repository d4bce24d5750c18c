"""What a command imports: no more than it uses, and nothing that is missing afterwards."""

import subprocess
import sys

import pytest

FIT = """
import sys
from rankrls.cli import main
assert main(["fit", {data!r}, "--model", {model!r}, "--scale", "minmax", "--quiet"]) == 0
"""


@pytest.fixture
def after_a_fit(tmp_path):
    data = tmp_path / "data.txt"
    data.write_text("".join(f"{row % 3} qid:{row // 5} 1:{row % 7} 2:{row % 4}\n" for row in range(30)))
    fit = FIT.format(data=str(data), model=str(tmp_path / "m.rankrls"))

    def run(code):
        done = subprocess.run([sys.executable, "-c", fit + code], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    return run


def test_a_fit_needs_neither_pandas_nor_statistics(after_a_fit):
    names = ["pandas", "scipy.stats._stats_py", "sklearn.metrics", "sklearn.impute", "sklearn.model_selection"]
    names += ["scipy.interpolate._bsplines", "scipy.optimize"]
    assert after_a_fit(f"print(*[name for name in {names} if name in sys.modules])") == []


def test_loops_that_are_compiled_already_need_no_compiler(after_a_fit):
    after_a_fit("")
    names = ["numba.np.linalg", "numba.cpython.setobj", "numba.np.random.generator_core"]
    assert after_a_fit(f"print(*[name for name in {names} if name in sys.modules])") == []


def test_what_was_left_out_is_there_when_it_is_asked_for(after_a_fit):
    code = """
import scipy.stats
from scipy.stats import rankdata
from scipy.stats._stats_py import mode
from sklearn.preprocessing import _data
print(*rankdata([3, 1, 2]), _data.stats.norm.cdf(0.0), sys.modules["scipy.stats"].mode is mode)
from sklearn.preprocessing import SplineTransformer
print(*SplineTransformer(n_knots=2, degree=1).fit_transform([[0.0], [0.25], [1.0]])[1])
from scipy.interpolate import BSpline
print(BSpline([0, 1, 2], [3.0, 5.0], 0)(1.5), isinstance(BSpline, type))
import pandas, gc, sklearn.utils.validation as v
print(v.check_array(pandas.DataFrame({"a": [1.0]})).shape == (1, 1), gc.isenabled())
"""
    assert after_a_fit(code) == ["3.0", "1.0", "2.0", "0.5", "True", "0.75", "0.25", "5.0", "True", "True", "True"]


def test_a_program_that_has_scipy_stats_keeps_it(tmp_path):
    code = "import scipy.stats as s, sys; import rankrls.cli.startup.lean as lean; lean.imported('json'); "
    done = subprocess.run(
        [sys.executable, "-c", code + "print(sys.modules['scipy.stats'] is s)"], capture_output=True, text=True
    )
    assert done.stdout == "True\n", done.stderr
