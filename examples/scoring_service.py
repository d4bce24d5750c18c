"""
A scoring service
=================

The service ranks candidates by HTTP, with the model file that ``MODEL`` names. Requests contain raw columns, because
the model file has a :class:`~rankrls.preprocessing.TableEncoder`. It needs fastapi and uvicorn[standard]::

    MODEL=shop.rankrls RANKRLS_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 uvicorn scoring_service:app --workers 2

    curl http://localhost:8000/rank -H "Content-Type: application/json" -d '{"items": [
      {"brand": "H&M", "price": 9.5, "query": "red shoe"}, {"brand": "Acme", "price": 12, "query": "red shoe"}]}'

:doc:`/guide/deployment` explains workers, threads, versions and rollback.
"""

# sphinx_gallery_thumbnail_path = '_static/comparison_page.png'

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, Field

from rankrls import InputError, load
from rankrls.persistence import read_info

Cell = str | float | bool | None


class Request(BaseModel):
    """Candidates of one query, each with the columns of the training table; a missing value is null or left out."""

    items: list[dict[str, Cell]] = Field(min_length=1, max_length=1000)


class Answer(BaseModel):
    """Positions of the candidates in the request, best first, with their scores and the version of the model."""

    order: list[int]
    scores: list[float]
    model: str


# %%
# A worker loads the model once, before it takes requests. The first prediction compiles or loads loops, so it is made
# here, before the first request.


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    path = Path(os.environ.get("MODEL", "model.rankrls")).resolve()  # the file behind a link
    app.state.model = load(path)
    app.state.version = path.stem
    app.state.about = read_info(path)
    names = getattr(app.state.model, "feature_names_in_", None)
    if names is None:
        raise InputError("The model was fitted to arrays. Requests need names: fit it to a data frame.", file=str(path))
    app.state.columns = list(names)
    score([dict.fromkeys(app.state.columns)])
    yield


app = FastAPI(lifespan=lifespan)


def score(items: list[dict[str, Cell]]) -> np.ndarray:
    """Scores of rows, whose columns may be missing."""
    return app.state.model.predict({name: [item.get(name) for item in items] for name in app.state.columns})


# %%
# Plain functions run in threads, so a worker can answer several requests at once. Errors in a row are returned to
# the caller.


@app.post("/rank")
def rank(request: Request) -> Answer:
    try:
        scores = score(request.items)
    except InputError as error:
        raise HTTPException(status_code=422, detail=str(error)) from error
    order = np.argsort(-scores, kind="stable")
    return Answer(order=order.tolist(), scores=scores[order].tolist(), model=app.state.version)


@app.get("/health")
def health() -> dict[str, str | None]:
    """Which model answers, for the load balancer and for a rollback; a fixed alpha was not selected."""
    selection = app.state.about["selection"]
    return {"model": app.state.version, "selection": selection and selection["how"]}
