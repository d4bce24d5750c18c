"""A cluster on this machine gives the bits of this process, also if its workers are killed in any pass."""

from __future__ import annotations

import shlex
import subprocess
import time
from contextlib import ExitStack, suppress
from shutil import which

import pytest

import rankrls
from rankrls.streaming import run
from tests.refusals import Refusal
from tests.streaming.engines import MODELS, Counter, bits, counted, dask_blocks, local_cluster, small

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
PASSES = {
    "pass 1": ("primal", 0.5),
    "pass 2": ("primal", 1.5),
    "the right side of CG": ("cg", 0.5),
    "a product of CG": ("cg", 5.5),
    "the basis": ("sparse", 0.5),
    "the held-out scores over a basis": ("sparse", 2.5),
}
"""Which fit is disturbed, after how many passes."""
ROLES = ("client", "scheduler", "worker")
ENOUGH = 25.0
"""Seconds that a lost worker may cost beside its tasks; whoever waits for a connection waits for 30."""
BUSY = 2.0
"""By how much other work on the machine may hold up the second of two fits."""


@pytest.fixture(scope="module")
def clusters():
    with ExitStack() as stack:
        yield stack, []


@pytest.fixture
def cluster(clusters):
    """Two workers; others where one that was killed has not come back, as its nanny may fail to bring it."""
    stack, known = clusters
    if known:
        with suppress(TimeoutError):
            known[-1].wait_for_workers(2, timeout=15)
            return known[-1]
    known.append(stack.enter_context(local_cluster()))
    return known[-1]


@pytest.mark.parametrize("name", MODELS)
def test_a_cluster_gives_the_bits_of_this_process(name, cluster):
    found = MODELS[name]().fit_dataset(small(), executor=cluster.get_executor())
    assert bits(found) == bits(MODELS[name]().fit_dataset(small()))


@pytest.mark.parametrize("when", PASSES)
def test_a_worker_that_is_killed_costs_its_tasks_and_changes_no_bit(when, cluster, tmp_path):
    name, passes = PASSES[when]
    folders = [tmp_path / word for word in ("undisturbed", "killed")]
    counters = [Counter(folders[0]), Counter(folders[1], after=int(passes * len(small().parts)))]
    found, took = [], []
    for folder, counter in zip(folders, counters, strict=True):
        folder.mkdir()
        start = time.monotonic()
        found.append(bits(MODELS[name]().fit_dataset(counted(counter), executor=cluster.get_executor())))
        took.append(time.monotonic() - start)
    undisturbed, killed = counters
    assert killed.killed
    lost = killed.done - undisturbed.done
    assert 1 <= lost <= 2 * len(small().parts)
    assert took[1] < BUSY * took[0] + lost * killed.seconds + ENOUGH
    assert found[0] == found[1] == bits(MODELS[name]().fit_dataset(small()))


@pytest.mark.parametrize("when", [when for when in PASSES if "basis" not in when])
def test_collections_survive_it_too(when, cluster, tmp_path):
    from rankrls.dask import CGRankRLS, RankRLSCV

    name, passes = PASSES[when]
    local = MODELS[name]()
    cls = CGRankRLS if name == "cg" else RankRLSCV
    folders, found = [tmp_path / word for word in ("undisturbed", "killed")], []
    counters = [Counter(folders[0]), Counter(folders[1], after=int(passes * 6))]
    took = []
    for folder, counter in zip(folders, counters, strict=True):
        folder.mkdir()
        X, y, qid, w = dask_blocks(counter)
        start = time.monotonic()
        found.append(bits(cls(**local.get_params()).fit(X, y, qid=qid, sample_weight=w)))
        took.append(time.monotonic() - start)
    assert counters[1].killed
    assert counters[1].done > counters[0].done
    assert took[1] < BUSY * took[0] + (counters[1].done - counters[0].done) * counters[1].seconds + ENOUGH
    assert found[0] == found[1]


class Rows:
    """Counts rows, and how often this process sends it away."""

    sent = 0

    def __reduce__(self):
        Rows.sent += 1
        return Rows, ()

    def leaf(self, part):
        return len(part.y)

    def merge(self, a, b):
        return a + b


def test_what_all_leaves_need_is_sent_once(cluster):
    data = small()
    Rows.sent = 0
    assert run(Rows(), data, executor=cluster.get_executor()) == data.n_rows
    assert Rows.sent < len(data.parts) - 2


def test_the_engine_of_an_address(cluster):
    from rankrls.dask import executor_of

    with executor_of(cluster.scheduler.address) as executor:
        found = MODELS["primal"]().fit_dataset(small(), executor=executor)
    assert bits(found) == bits(MODELS["primal"]().fit_dataset(small()))


@pytest.mark.skipif(which("openssl") is None, reason="openssl makes the certificate")
def test_an_encrypted_cluster(tmp_path):
    """With certificates in Dask's configuration, as the guide says."""
    from distributed import LocalCluster, Security

    from rankrls.dask import executor_of

    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    made = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    subprocess.run([*shlex.split(made), "-keyout", key, "-out", cert], check=True, capture_output=True)
    given = {f"tls_{role}_{what}": str(path) for role in ROLES for what, path in (("cert", cert), ("key", key))}
    security = Security(require_encryption=True, tls_ca_file=str(cert), **given)
    how = {"host": "127.0.0.1", "protocol": "tls://", "dashboard_address": "127.0.0.1:0", "processes": False}
    known = {"ca-file": cert, "client.cert": cert, "client.key": key}
    with LocalCluster(n_workers=1, threads_per_worker=1, security=security, **how) as workers:
        address = workers.scheduler_address
        assert address.startswith("tls://127.0.0.1")
        configured = dask.config.set({f"distributed.comm.tls.{name}": str(path) for name, path in known.items()})
        with configured, executor_of(address) as executor:
            found = MODELS["primal"]().fit_dataset(small(), executor=executor)
    assert bits(found) == bits(MODELS["primal"]().fit_dataset(small()))


@pytest.mark.parametrize("address", ["tcp://10.0.0.1:8786", "http://x", "ws://127.0.0.1:1"])
def test_only_safe_addresses(address):
    from rankrls.dask import executor_of

    with Refusal("secure", parameter="scheduler", remedy="tls"), executor_of(address):
        pass


def test_workers_with_another_version(cluster, monkeypatch):
    from rankrls.dask import executor_of

    monkeypatch.setattr(rankrls, "__version__", "9.9")
    with Refusal("9.9", parameter="scheduler", remedy="same"), executor_of(cluster.scheduler.address):
        pass
    with Refusal("9.9", parameter="executor"):
        MODELS["primal"]().fit_dataset(small(), executor=cluster.get_executor())


LACKS = """
import sys

class Lacks:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "rankrls":
            raise ModuleNotFoundError("No module named 'rankrls'", name="rankrls")

sys.meta_path.insert(0, Lacks())
for name in [name for name in sys.modules if name.partition(".")[0] == "rankrls"]:
    del sys.modules[name]
"""


def test_workers_without_rankrls(tmp_path):
    """They are asked before anything is sent to them: what they cannot load they would never answer for."""
    from rankrls.dask import RankRLS, executor_of

    X, y, qid, _ = dask_blocks(Counter(tmp_path))
    with local_cluster(n_workers=1, preload=LACKS) as client:
        with Refusal("no rankrls", parameter="scheduler"), executor_of(client.scheduler.address):
            pass
        with Refusal("no rankrls", parameter="executor", remedy="same"):
            MODELS["primal"]().fit_dataset(small(), executor=client.get_executor())
        with Refusal("no rankrls", parameter="X"):
            RankRLS().fit(X, y, qid=qid)
