"""The scoring service of the examples: its answers, and the program that measures it."""

import asyncio
import importlib

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from tests.docs.sessions import ROOT
from tests.refusals import Refusal

from comparisons import service_latency
from rankrls import RankRLS, save
from rankrls.preprocessing import TableEncoder

fastapi = pytest.importorskip("fastapi")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of fastapi and pydantic


@pytest.fixture(scope="module")
def model():
    return service_latency.fitted()


@pytest.fixture
def service(model, tmp_path, monkeypatch):
    return started_with(model, tmp_path, monkeypatch)


def started_with(model, tmp_path, monkeypatch):
    save(model, tmp_path / "shop_v1.rankrls")
    (tmp_path / "current.rankrls").symlink_to("shop_v1.rankrls")
    monkeypatch.setenv("MODEL", str(tmp_path / "current.rankrls"))
    monkeypatch.syspath_prepend(ROOT / "examples")
    module = importlib.import_module("scoring_service")

    async def started():
        async with module.lifespan(module.app):
            pass

    asyncio.run(started())
    return module


def test_the_order_is_that_of_predict(service, model):
    rows = service_latency.offers(30, 5)
    answer = service.rank(service.Request(items=rows))
    scores = model.predict(service_latency.columns(rows))
    assert answer.order == np.argsort(-scores, kind="stable").tolist()
    np.testing.assert_allclose(answer.scores, np.sort(scores)[::-1])


def test_the_version_is_that_of_the_file_behind_the_link(service):
    assert service.health() == {"model": "shop_v1", "selection": "leave-query-out over 100 queries"}


def test_a_model_of_fixed_alpha_is_healthy(tmp_path, monkeypatch):
    rows = service_latency.offers(20, 5)
    model = make_pipeline(TableEncoder(), RankRLS()).fit(service_latency.columns(rows), np.arange(20))
    service = started_with(model, tmp_path, monkeypatch)
    assert service.health() == {"model": "shop_v1", "selection": None}
    assert sorted(service.rank(service.Request(items=rows)).order) == list(range(20))


def test_a_model_of_arrays_is_refused_before_any_request(tmp_path, monkeypatch):
    with Refusal("fit it to a data frame", file=str(tmp_path / "shop_v1.rankrls")):
        started_with(RankRLS().fit(np.arange(6.0)[:, None], np.arange(6)), tmp_path, monkeypatch)


def test_columns_that_are_left_out_are_missing(service):
    rows = service_latency.offers(2, 5)
    without = [{name: cell for name, cell in row.items() if name != "price"} for row in rows]
    absent = service.rank(service.Request(items=without))
    null = service.rank(service.Request(items=[row | {"price": None} for row in without]))
    assert absent == null


def test_a_bad_cell_is_told_to_the_caller(service):
    (row,) = service_latency.offers(1, 5)
    with pytest.raises(fastapi.HTTPException) as raised:
        service.rank(service.Request(items=[row | {"price": "cheap"}]))
    assert raised.value.status_code == 422
    assert "price" in raised.value.detail


@pytest.mark.slow
def test_requests_to_two_workers(monkeypatch, capsys):
    pytest.importorskip("uvicorn")
    monkeypatch.setattr("sys.argv", ["service_latency", "--requests", "4", "--workers", "2", "--clients", "2"])
    service_latency.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line[:22].strip() for line in lines[1:]] == ["predict", "predict, encoded", "2 workers, 2 clients"]
