"""A type checker accepts right calls, with the types of their results, and refuses wrong ones."""

import re
from pathlib import Path

import pytest
from mypy import api

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The codes of the errors of each line, by file."""
    settings = tmp_path_factory.mktemp("mypy") / "mypy.ini"  # a user's, not those of this project
    options = (
        "strict = True",
        "ignore_missing_imports = True",
        "follow_imports = silent",
        f"mypy_path = {ROOT / 'src'}",
    )
    settings.write_text("\n".join(["[mypy]", *options]))
    files = [str(HERE / "right.py"), str(HERE / "wrong.py")]
    cache = str(ROOT / ".mypy_cache")
    report, failure, _ = api.run(["--config-file", str(settings), "--cache-dir", cache, "--no-pretty", *files])
    assert not failure
    errors = {"right.py": {}, "wrong.py": {}}
    for name, line, code in re.findall(r"(right|wrong)\.py:(\d+): error: .*\[([a-z-]+)\]", report):
        errors[f"{name}.py"].setdefault(int(line), set()).add(code)
    return errors


@pytest.mark.slow
def test_right_calls_have_types(found):
    assert found["right.py"] == {}


@pytest.mark.slow
def test_wrong_calls_are_refused(found):
    lines = (HERE / "wrong.py").read_text().splitlines()
    expected = {k: {line.split("  # ")[1]} for k, line in enumerate(lines, 1) if "  # " in line}
    assert len(expected) > 20
    assert found["wrong.py"] == expected
