"""Fits that were ended half-way go on from what is finished, to the same bits."""

from __future__ import annotations

import json
import resource
from dataclasses import replace

import numpy as np
import pytest

from rankrls import RankRLS, RankRLSCV
from tests.refusals import Refusal
from tests.streaming.arrays import ArrayDataset, example
from tests.streaming.engines import MODELS, Counter, bits, counted, fit_parts, killed, small

X, y, qid, w = example(5, weights=True)
DATA = ArrayDataset(X, y, qid, w, cuts=(4, 12, 30, 40, 50))
N = len(DATA.parts)


class KilledError(Exception):
    pass


class Dying(ArrayDataset):
    """Ends the driver when so many parts have been read."""

    def read(self, address, names=False):
        reads.append(address.number)
        if len(reads) > limit[0]:
            raise KilledError
        return super().read(address, names)


reads, limit = [], [0]
DYING = Dying(X, y, qid, w, cuts=DATA.cuts)


@pytest.mark.parametrize("after", [1, N - 1, N + 3])
@pytest.mark.parametrize("ties", ["include", "exclude"])
def test_it_goes_on_where_it_ended(after, ties, tmp_path, monkeypatch):
    monkeypatch.setenv("RANKRLS_NUM_THREADS", "1")
    expected = bits(RankRLSCV(ties=ties, scoring="map").fit_dataset(DATA))
    reads.clear()
    limit[0] = after
    with pytest.raises(KilledError):
        RankRLSCV(ties=ties, scoring="map").fit_dataset(DYING, checkpoint=tmp_path)
    reads.clear()
    limit[0] = 10**9
    assert bits(RankRLSCV(ties=ties, scoring="map").fit_dataset(DYING, checkpoint=tmp_path)) == expected
    assert len(reads) <= 2 * N - after + 3, "parts that were handed out may have to be read again"
    assert len(list(tmp_path.glob("*/*.npz"))) == 2, "one sum a pass"


def test_other_alphas_find_the_equations_ready(tmp_path):
    limit[0] = 10**9
    RankRLSCV(scoring="map").fit_dataset(DYING, checkpoint=tmp_path)
    reads.clear()
    again = RankRLSCV((0.1, 1.0), scoring="ndcg@3").fit_dataset(DYING, checkpoint=tmp_path)
    assert len(reads) == N
    assert bits(again) == bits(RankRLSCV((0.1, 1.0), scoring="ndcg@3").fit_dataset(DATA))
    reads.clear()
    RankRLSCV((0.1, 1.0), scoring="ndcg@3").fit_dataset(DYING, checkpoint=tmp_path)
    assert not reads
    RankRLS(balance="pairs").fit_dataset(DYING, checkpoint=tmp_path)
    assert len(reads) == N


def test_other_data_are_refused(tmp_path):
    RankRLS().fit_dataset(DATA, checkpoint=tmp_path)
    with Refusal("arrays", parameter="checkpoint", remedy="empty"):
        RankRLS().fit_dataset(replace(DATA, y=y + 1), checkpoint=tmp_path)
    with Refusal("other parts", parameter="checkpoint"):
        RankRLS().fit_dataset(replace(DATA, cuts=(30,)), checkpoint=tmp_path)
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "rankrls": "0.0"}))
    with Refusal("0.0", parameter="checkpoint"):
        RankRLS().fit_dataset(DATA, checkpoint=tmp_path)


def test_a_folder_that_cannot_be_used(tmp_path):
    (tmp_path / "file").write_text("x")
    with Refusal(parameter="checkpoint", remedy="folder"):
        RankRLS().fit_dataset(DATA, checkpoint=tmp_path / "file")
    RankRLS().fit_dataset(DATA, checkpoint=tmp_path / "sums")
    (node,) = (tmp_path / "sums").glob("*/*.npz")
    node.write_bytes(node.read_bytes()[:200])
    with Refusal("cannot be used", parameter="checkpoint"):
        RankRLS().fit_dataset(DATA, checkpoint=tmp_path / "sums")


def test_no_space_is_one_error_and_nothing_is_half_written(tmp_path):
    """Files may not grow beyond a limit; with more space the same folder serves."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1500, before[1]))
    try:
        with Refusal("large", parameter="checkpoint", remedy="space"):
            RankRLS().fit_dataset(DATA, checkpoint=tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not [path for path in tmp_path.glob("*/*") if path.is_file()]
    model = RankRLS().fit_dataset(DATA, checkpoint=tmp_path)
    np.testing.assert_array_equal(model.coef_, RankRLS().fit_dataset(DATA).coef_)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "passes"), [("primal", 0.5), ("primal", 1.5), ("folds", 1.5), ("cg", 0.5), ("cg", 4.5), ("sparse", 1.5)]
)
def test_a_driver_that_is_killed(name, passes, tmp_path):
    """It ends by SIGKILL in one of its passes; the next one reads what is missing, and has the same bits."""
    counts, sums, n = tmp_path / "count", tmp_path / "sums", len(small().parts)
    counts.mkdir()
    assert killed(fit_parts, counts, int(passes * n), name, sums)
    expected, undisturbed = MODELS[name](), Counter(tmp_path, seconds=0.0)
    expected.fit_dataset(counted(undisturbed))
    before, counter = int(passes * n), Counter(counts, seconds=0.0)
    model = MODELS[name]().fit_dataset(counted(counter), checkpoint=sums)
    assert counter.done - before <= undisturbed.done - before + 3, "parts that were handed out are read again"
    assert bits(model) == bits(expected)


def test_sums_are_stored_to_the_last_bit(tmp_path):
    a = RankRLS(ties="exclude", regression_weight=0.3).fit_dataset(DATA, checkpoint=tmp_path)
    b = RankRLS(ties="exclude", regression_weight=0.3).fit_dataset(DATA, checkpoint=tmp_path)
    np.testing.assert_array_equal(a.coef_, b.coef_)
