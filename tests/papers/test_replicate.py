"""The command that runs every table of the papers."""

import hashlib
import tomllib
from pathlib import Path

import pytest

from papers import large_scale, replicate

SOURCES = tomllib.loads(Path(replicate.__file__).with_name("data_sources.toml").read_text())


def test_without_data_it_says_where_they_come_from(monkeypatch, capsys):
    monkeypatch.delenv("RANKRLS_DATA", raising=False)
    monkeypatch.setattr(large_scale, "QUICK_ROWS", (300, 150, 200))
    monkeypatch.setattr(large_scale, "QUICK_PAIRS", 300)
    monkeypatch.setattr("benchmarks._text.RCV1", (781_265, 800))
    assert replicate.main(["--quick"]) == 0
    text = capsys.readouterr().out
    assert "synthetic, 300 items to learn from" in text
    for name in {part.source for name, part in replicate.PARTS.items() if part.in_quick and part.source}:
        source = SOURCES[name]
        assert source["name"] in text
        assert source["address"] in text
        assert source.get("checksum", "") in text


def test_unknown_parts_and_folders_are_refused(capsys):
    for arguments, message in ((["magic"], "unknown part magic"), (["--data", "nowhere"], "not a folder")):
        with pytest.raises(SystemExit):
            replicate.main(arguments)
        assert message in capsys.readouterr().err


@pytest.mark.shared_data
@pytest.mark.parametrize(("name", "file"), [("ohsumed", "testset.txt"), ("mq2008", "test.txt")])
def test_checksums_are_those_of_the_files(data_dir, name, file):
    from papers.letor import find

    folder, found = find(data_dir, name).folder, hashlib.sha256()
    for fold in (2, 3, 4, 5, 1):
        found.update((folder / f"Fold{fold}" / file).read_bytes())
    assert found.hexdigest() == SOURCES[name]["checksum"]


@pytest.mark.slow
@pytest.mark.shared_data
def test_quick_prints_ours_the_papers_and_the_difference(data_dir, capsys):
    assert replicate.main(["--quick", "--data", str(data_dir), "parses", "transductive-ohsumed"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (head,) = [line for line in lines if line.split() == ["tau-b", "paper", "diff"]]
    ours, paper, difference = map(float, lines[lines.index(head) + 1].split()[1:])
    assert paper == 0.444
    assert difference == pytest.approx(ours - paper, abs=0.0011)
    assert lines[-1].split()[-1].replace(".", "").isdigit()  # minutes
