"""No command writes over a file that it reads, however that file was named."""

import shutil

import pytest
from tests.refusals import Refusal


@pytest.fixture
def shards(files, rankrls):
    """A folder of two Parquet files, a model, and a file without query ids beside its sizes."""
    folder = files / "shards"
    assert rankrls("convert", files / "train.txt", folder, "--rows-per-file", 48).status == 0
    assert rankrls("fit", folder, "--model", files / "m.rankrls", "--quiet").status == 0
    lines = (files / "test.txt").read_text().splitlines()
    (files / "plain.txt").write_text("".join(" ".join([a, *rest]) + "\n" for a, _, *rest in map(str.split, lines)))
    (files / "plain.txt.query").write_text("8\n" * 12)
    return folder


def test_inputs_that_are_named_or_found_are_kept(files, shards, refused, monkeypatch):
    monkeypatch.chdir(files)
    (files / "more" / "day=1").mkdir(parents=True)
    shutil.copy(shards / "part-00000.parquet", files / "more" / "day=1" / "a.parquet")
    (files / "link").symlink_to(shards)
    before = {path: path.read_bytes() for path in files.rglob("*") if path.is_file()}
    member, sizes, lost = "shards/part-00000.parquet", "plain.txt.query", Refusal("would be overwritten")
    for command in ("predict", "rank"):
        refused(command, "m.rankrls", "shards", "-o", member, lost)
        refused(command, "m.rankrls", "link", "-o", member, lost)
        refused(command, "m.rankrls", "shards/*.parquet", "-o", member, lost)
        refused(command, "m.rankrls", "more/**/*.parquet", "-o", "more/day=1/a.parquet", lost)
        refused(command, "m.rankrls", "plain.txt", "-o", sizes, lost)
    refused("fit", "shards", "--model", member, lost)
    refused("fit", "train.txt", "--vali", "shards/part*", "--model", member, lost)
    refused("fit", "plain.txt", "--model", sizes, lost)
    refused("fit", "plain.txt", "--group", "test.txt", "--model", "test.txt", lost)
    refused("convert", "plain.txt", sizes, lost)
    refused("convert", "shards", "shards", "--rows-per-file", "9", "--force", Refusal("replace files of shards"))
    refused("convert", "shards", "shards/new", "--rows-per-file", "9", Refusal("files of shards"))
    refused("split", "shards", "shards/new", Refusal("files of shards"))
    assert {path: path.read_bytes() for path in before} == before


def test_split_keeps_a_file_of_the_folder_that_it_replaces(files, rankrls, refused):
    assert rankrls("split", "train.txt", "parts").status == 0
    before = (files / "parts" / "train.txt").read_bytes()
    refused("split", "parts/train.txt", "parts", "--force", Refusal("replace files of parts/train.txt", file="parts"))
    refused(
        "split",
        "train.txt",
        "parts",
        "--force",
        "--group",
        "parts/test.txt",
        Refusal("parts/test.txt"),
    )
    assert (files / "parts" / "train.txt").read_bytes() == before


@pytest.mark.parametrize("data", ["shards", "shards/*.parquet", "shards/**/*.parquet"])
def test_no_command_adds_a_file_to_what_it_reads(data, files, shards, refused, rankrls, monkeypatch):
    monkeypatch.chdir(files)
    refused("predict", "m.rankrls", data, "-o", "shards/scores.parquet", Refusal("or become part of"))
    assert rankrls("predict", "m.rankrls", data, "-o", "scores.parquet").status == 0
    assert rankrls("predict", "m.rankrls", data, "-o", "shards/scores.log").status == 0  # which no folder reads
    assert rankrls("predict", "m.rankrls", data).status == 0
