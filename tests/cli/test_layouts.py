"""Other people's layouts: sizes of groups beside the rows, votes with both sides in a row, right-censored times."""

import gzip

import numpy as np
import pandas as pd
import pytest
from tests.refusals import Refusal

from rankrls import RankRLS, RankRLSCV, load, survival_pairs
from rankrls.metrics import preference_accuracy
from rankrls.model_selection import leave_pair_out

SIZES = "\n".join(["8"] * 12) + "\n"


@pytest.fixture
def sized(tmp_path, rows, letor):
    """rank.train and its twin with qid, and the sizes in other.txt."""
    X, y, qid = rows(1)
    letor(tmp_path / "rank.train", X, y)
    letor(tmp_path / "qid.txt", X, y, qid)
    frame = pd.DataFrame(X).add_prefix("f").assign(label=y)
    frame.to_csv(tmp_path / "rank.csv", index=False)
    (tmp_path / "rank.csv.gz").write_bytes(gzip.compress((tmp_path / "rank.csv").read_bytes()))
    (tmp_path / "other.txt").write_text(SIZES)
    return tmp_path


@pytest.mark.parametrize(
    ("data", "sizes"),
    [
        ("rank.train", "rank.train.query"),
        ("rank.train", "rank.train.group"),
        ("rank.csv", "rank.csv.query"),
        ("rank.csv.gz", "rank.csv.query"),
        ("rank.csv", "other.txt"),
    ],
)
def test_sizes_of_groups_are_queries(sized, rankrls, data, sizes):
    (sized / sizes).write_text(SIZES)
    given = ["--group", sized / sizes] if sizes == "other.txt" else []
    expected = rankrls("fit", sized / "qid.txt", "-m", sized / "qid.rankrls", "--json").json
    result = rankrls("fit", sized / data, *given, "-m", sized / "m.rankrls", "--json")
    assert result.status == 0, result.err
    assert result.json["data"]["train"]["queries"] == 12
    assert result.json["chosen"] == expected["chosen"]
    assert (str(sized / sizes) in result.err) == (not given)
    judged = [
        rankrls("evaluate", sized / "m.rankrls", sized / d, *g, "--json") for d, g in ((data, given), ("qid.txt", []))
    ]
    assert judged[0].json["measures"] == judged[1].json["measures"]


def test_only_the_first_file_is_that_of_the_option(sized, rankrls):
    (sized / "qid.txt.query").write_text("1\n")  # the rows' own ids come first
    result = rankrls(
        *("fit", sized / "rank.train", "--group", sized / "other.txt", "--test", sized / "qid.txt", "--json"),
        *("-m", sized / "m.rankrls"),
    )
    assert result.json["data"]["test"]["queries"] == 12


@pytest.mark.parametrize(
    ("text", "match"),
    [("8\n" * 11, "88, but"), ("8\n" * 11 + "x\n", "other.txt:12: 'x'"), ("-8\n", ":1: '-8'"), ("8.5\n", ":1: '8.5'")],
)
def test_sizes_that_do_not_fit(sized, refused, text, match):
    (sized / "other.txt").write_text(text)
    message = refused(
        *("fit", sized / "rank.train", "--group", sized / "other.txt", "-m", sized / "m.rankrls"), Refusal(match)
    )
    assert str(sized / "other.txt") in message
    assert not (sized / "m.rankrls").exists()


@pytest.mark.parametrize(
    ("data", "sizes"),
    [("rank.train", "rank.train.query"), ("rank.csv", "rank.csv.group"), ("rank.csv.gz", "rank.csv.query")],
)
def test_split_keeps_sizes_beside_the_rows(sized, rankrls, data, sizes):
    counts = [3, 10, 1, 0, 20, 8, 8, 8, 30, 8]
    (sized / sizes).write_text("".join(f"{n}\n" for n in counts))
    result = rankrls("split", sized / data, sized / "parts", "--parts", "60,40", "--json")
    assert result.status == 0, result.err
    assert sizes in result.err
    ending, end = data.removeprefix("rank").replace(".train", ".txt"), "." + sizes.rpartition(".")[2]
    read = lambda path: gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    lines = read(sized / data).splitlines()[data != "rank.train" :]
    queries = [lines[a : a + n] for a, n in zip(np.cumsum([0, *counts]), counts, strict=False) if n]
    found = []
    for part in ("train", "test"):
        path = sized / "parts" / f"{part}{ending}"
        rows = iter(read(path).splitlines()[data != "rank.train" :])
        own = [int(n) for n in (path.parent / f"{path.name}{end}").read_text().split()]
        assert result.json["parts"][part]["queries"] == len(own)
        found += [[next(rows) for _ in range(n)] for n in own]
        assert next(rows, None) is None
    assert sorted(found) == sorted(queries)
    fitted = rankrls("fit", sized / "parts" / f"train{ending}", "-m", sized / "m.rankrls", "--json")
    assert fitted.status == 0, fitted.err
    if data == "rank.train":
        moved = (sized / sizes).rename(sized / "moved.txt")
        rankrls("split", sized / data, sized / "same", "--group", moved, "--parts", "60,40")
        same = [(sized / folder / f"train{ending}.query").read_text() for folder in ("parts", "same")]
        assert same[0] == same[1]


def test_sizes_that_split_would_write_over(sized, refused):
    (sized / "rank.train").rename(sized / "rank.txt")
    sizes = (sized / "other.txt").rename(sized / "train.txt.query")
    said = refused("split", sized / "rank.txt", sized, "--group", sizes, Refusal(""))
    assert "train.txt.query" in said
    assert sizes.read_text() == SIZES


def test_sizes_of_rows_that_have_ids(sized, refused):
    refused("fit", sized / "qid.txt", "--group", sized / "other.txt", "-m", sized / "m.rankrls", Refusal("--group"))


@pytest.fixture
def votes(tmp_path):
    """sides.csv: features on either side; names.csv: names and choices; the same 200 votes of four prompts."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(30, 3)).round(3)
    a, b = rng.integers(30, size=(2, 200))
    a, b = a[a != b], b[a != b]
    lead = (X[a] - X[b]) @ [1.0, -1.0, 0.0] + 0.5 * rng.normal(size=len(a))
    choice = np.where(np.abs(lead) < 0.2, "tie", np.where(lead > 0, "left", "right"))
    prompt = [f"p{k % 4}" for k in range(len(a))]
    sides = pd.concat([pd.DataFrame(X[k]).add_prefix(f"{side}_x") for k, side in ((a, "left"), (b, "right"))], axis=1)
    sides.assign(choice=choice, prompt=prompt).to_csv(tmp_path / "sides.csv", index=False)
    names = pd.DataFrame({"left": [f"item {k}" for k in a], "right": [f"item {k}" for k in b]})
    names.assign(choice=choice, prompt=prompt).to_csv(tmp_path / "names.csv", index=False)
    winners, losers = np.where(choice == "right", b, a), np.where(choice == "right", a, b)
    return tmp_path, X, winners, losers, (choice != "tie").astype(float), prompt


FEATURES = ("--left", "left_*", "--right", "right_*", "--preferred", "choice")
NAMES = ("--left", "left", "--right", "right", "--preferred", "choice")


@pytest.mark.parametrize("keep", [True, False])
def test_votes_with_features_on_either_side(votes, rankrls, keep):
    folder, X, winners, losers, strength, prompt = votes
    ties = () if keep else ("--ties", "exclude")
    result = rankrls(
        *("fit", folder / "sides.csv", *FEATURES, *ties, "--group", "prompt", "-m", folder / "m.rankrls", "--json"),
        *("--test", folder / "sides.csv"),
    )
    assert result.status == 0, result.err
    kept = keep | (strength > 0)
    groups = np.array(prompt)[kept]
    given = {"strength": strength[kept], "groups": groups}
    expected = RankRLSCV(scoring="pair_accuracy").fit_pairs(X, winners[kept], losers[kept], **given)
    found = result.json
    assert found["chosen"]["alpha"] == pytest.approx(expected.alpha_, rel=1e-9)
    assert found["selection"]["value"] == pytest.approx(expected.best_score_, abs=1e-12)
    assert found["pairs"]["train"]["ties"] == (strength == 0).sum() * keep
    share = preference_accuracy(expected.predict(X), winners, losers, strength=strength)
    assert found["measures"]["test"]["pair_accuracy"]["value"] == pytest.approx(share, abs=1e-12)
    model = load(folder / "m.rankrls")
    assert model.feature_names_in_.tolist() == ["x0", "x1", "x2"]
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)


def test_names_get_a_rating_each(votes, rankrls):
    folder, _, winners, losers, strength, _ = votes
    result = rankrls("fit", folder / "names.csv", *NAMES, "-m", folder / "m.rankrls", "--alphas", "1", "--json")
    assert result.status == 0, result.err
    expected = RankRLS(alpha=1.0).fit_pairs(np.eye(30), winners, losers, strength=strength).coef_
    ratings = result.json["ratings"]
    assert [r["rating"] for r in ratings] == sorted((r["rating"] for r in ratings), reverse=True)
    counts = np.bincount(np.concatenate((winners, losers)), minlength=30)
    for each in ratings:
        item = int(each["item"].removeprefix("item "))
        assert each["rating"] == pytest.approx(expected[item], abs=1e-9)
        assert each["votes"] == counts[item]
    shown = rankrls("fit", folder / "names.csv", *NAMES, "-m", folder / "m.rankrls")
    assert ratings[0]["item"] in shown.out
    assert ratings[-1]["item"] not in shown.out


@pytest.mark.parametrize("said", [True, False])
def test_texts_are_read_as_words(tmp_path, rankrls, said):
    good, bad = ["a warm answer", "warm words"], ["cold answer", "so cold and short"]
    lines = [f"{good[k % 2]} number {k},{bad[k // 2 % 2]} number {k + 50}" for k in range(20)]
    (tmp_path / "v.csv").write_text("better,worse\n" + "\n".join(lines) + "\n")
    how = ("--sides", "texts") if said else ()
    result = rankrls(
        "fit", tmp_path / "v.csv", "--winner", "better", "--loser", "worse", *how, "-m", tmp_path / "m.rankrls"
    )
    assert result.status == 0, result.err
    assert ("texts" in result.err) is not said
    scores = load(tmp_path / "m.rankrls").predict({"item": ["warm", "cold", "unheard"]})
    assert scores[0] > scores[2] > scores[1]


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (("--left", "left", "--right", "right"), "--preferred"),
        (("--left", "left"), "--right"),
        (("--winner", "left", "--right", "right"), "--right"),
        (("--preferred", "choice"), "--left"),
        ((*NAMES[:-1], "chosen"), "chosen"),
        ((*NAMES, "--label", "prompt"), "--label"),
        ((*NAMES, "--pairs", "names.csv"), "--pairs"),
        ((*NAMES, "--ties", "both"), "--ties"),
        ((*NAMES, "--balance", "pairs"), "--balance"),
        ((*NAMES, "--event", "prompt"), "--event"),
        (("--left", "left", "--right", "right", "--preferred", "prompt"), "names.csv:2: the choice 'p0'"),
    ],
)
def test_votes_that_cannot_be_read(votes, refused, given, match):
    folder = votes[0]
    refused("fit", folder / "names.csv", *given, "-m", folder / "m.rankrls", Refusal(match))
    assert not (folder / "m.rankrls").exists()


@pytest.fixture
def times(tmp_path):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 3)).round(3)
    lasted, seen = np.exp(X[:, 0] + 0.5 * rng.normal(size=60)), rng.exponential(2.0, size=60)
    frame = pd.DataFrame(X).add_prefix("g").assign(days=np.minimum(lasted, seen).round(3), died=(lasted <= seen) * 1)
    frame.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path, X, frame.days.to_numpy(), frame.died.to_numpy(), frame


EVENT = ("--label", "days", "--event", "died")


def test_censored_times(times, rankrls):
    folder, X, time, event, _ = times
    result = rankrls("fit", folder / "t.csv", *EVENT, "--test", folder / "t.csv", "-m", folder / "m.rankrls", "--json")
    assert result.status == 0, result.err
    winners, losers = survival_pairs(time, event)
    expected = RankRLSCV(scoring="pair_accuracy").fit_pairs(X, winners, losers, groups=losers)
    np.testing.assert_allclose(load(folder / "m.rankrls").coef_, expected.coef_, rtol=1e-9)
    c_index = preference_accuracy(expected.predict(X), winners, losers)
    assert result.json["measures"]["test"]["C-index"]["value"] == pytest.approx(c_index, abs=1e-12)
    judged = rankrls("evaluate", folder / "m.rankrls", folder / "t.csv", *EVENT, "--json").json
    assert judged["measures"]["C-index"]["value"] == pytest.approx(c_index, abs=1e-12)
    assert judged["pairs"]["preferences"] == len(winners)


def test_censored_times_by_leave_pair_out(times, rankrls):
    folder, X, time, event, _ = times
    result = rankrls("cv", folder / "t.csv", *EVENT, "--leave-pair-out", "--alphas", "1,10", "--json")
    assert result.status == 0, result.err
    expected = leave_pair_out(RankRLS(), X, time, event=event, alphas=[1.0, 10.0])
    assert [entry["c_index"] for entry in result.json["curve"]] == pytest.approx(
        expected.score[::-1].tolist(), abs=1e-12
    )
    assert [entry["low"] for entry in result.json["curve"]] == pytest.approx(expected.interval[0][::-1].tolist())
    assert result.json["how"] == f"leave-pair-out over {expected.n_pairs} comparable pairs"


def test_censored_times_by_leave_pair_out_of_several_kernels(times, rankrls, refused):
    folder, X, time, event, _ = times
    command = ("cv", folder / "t.csv", *EVENT, "--leave-pair-out")
    result = rankrls(*command, "--alphas", "1,10", "--kernel", "linear,rbf", "--json")
    assert result.status == 0, result.err
    for kernel in ("linear", "rbf"):
        expected = leave_pair_out(RankRLS(kernel=kernel), X, time, event=event, alphas=[10.0, 1.0])
        found = [entry["c_index"] for entry in result.json["curve"] if entry["kernel"] == kernel]
        assert found == pytest.approx(expected.score.tolist(), abs=1e-12)
    refused(
        *command, "--method", "sparse", "--kernel", "rbf", Refusal("--leave-pair-out", "--event", "--method rankrls")
    )


@pytest.mark.parametrize(
    ("change", "given", "match"),
    [
        ({"died": 0}, EVENT, "comparable"),
        ({"died": 2}, EVENT, "--event must be 1"),
        ({"days": [np.nan] + [1.0] * 59}, EVENT, "t.csv:2"),
        ({}, ("--event", "died"), "--label"),
        ({}, ("--label", "days", "--event", "dead"), "dead"),
        ({}, ("--label", "days", "--event", "days"), "days"),
        ({}, (*EVENT, "--metrics", "map"), "--metrics"),
        ({}, (*EVENT, "--ties", "exclude"), "--ties"),
    ],
)
def test_times_that_cannot_be_compared(times, refused, change, given, match):
    folder, *_, frame = times
    frame.assign(**change).to_csv(folder / "t.csv", index=False)
    refused("fit", folder / "t.csv", *given, "-m", folder / "m.rankrls", Refusal(match))


def test_letor_text_has_no_events(files, refused):
    refused("fit", files / "train.txt", "--event", "died", "-m", files / "m.rankrls", Refusal("--event"))
