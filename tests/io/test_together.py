"""A folder of files that takes the place of another one."""

import os

import pytest

from rankrls.io import _together
from rankrls.io._together import written_together


def write(folder, text):
    with written_together(folder, ["a.txt", "b/c.txt"]) as new:
        for name in ("a.txt", "b/c.txt"):
            (new / name).write_text(text)


def content(folder):
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("swaps", [True, False])
def test_a_folder_is_replaced_whole(swaps, tmp_path, monkeypatch):
    """By one step where the system has one, else by two renames; either way nothing else is left."""
    if not swaps:
        monkeypatch.setattr(_together, "_exchanged", lambda one, other: False)
    write(tmp_path / "parts", "old")
    write(tmp_path / "parts", "new")
    assert content(tmp_path / "parts") == {"a.txt": "new", "b/c.txt": "new"}
    assert os.listdir(tmp_path) == ["parts"]


def test_two_folders_swap_their_names(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "one" / "file").touch()
    if not _together._exchanged(tmp_path / "one", tmp_path / "other"):
        pytest.skip("this system or file system has no such step")
    assert os.listdir(tmp_path / "one") == []
    assert os.listdir(tmp_path / "other") == ["file"]
    assert not _together._exchanged(tmp_path / "one", tmp_path / "none")
