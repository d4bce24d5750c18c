"""How long the scoring service of ``examples/`` takes: requests of 100 candidates, by workers and by clients at once.

    python -m comparisons.service_latency --requests 1000 --workers 1 2 --clients 1 4

It needs fastapi and uvicorn[standard]. The model is that of the guide to tables: categories, missing prices, dates and
words. A line has the median, the 99th percentile and the requests a second, as clients on the same machine see them;
the first lines are ``predict`` alone, in this process, on the table and on its features.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from itertools import chain
from pathlib import Path

import numpy as np
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from rankrls import RankRLSCV, save
from rankrls.preprocessing import TableEncoder

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
ONE_THREAD = {"RANKRLS_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
Row = dict[str, str | float | None]


def offers(rows: int, seed: int) -> list[Row]:
    """Rows of a shop, all for one query."""
    rng = np.random.default_rng(seed)
    words = np.array(["red", "blue", "shoe", "shirt", "summer", "women", "long"])
    found = []
    for _ in range(rows):
        price = round(float(rng.lognormal(3.0, 1.0)), 2)
        found.append(
            {
                "brand": str(rng.choice(["H&M", "Acme", "Zed"])),
                "price": None if rng.random() < 0.1 else price,
                "added": f"2024-{rng.integers(1, 13):02d}-{rng.integers(1, 29):02d}",
                "title": " ".join(rng.choice(words, 3)),
                "query": "red shoe",
            }
        )
    return found


def columns(rows: list[Row]) -> dict[str, list[str | float | None]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


def fitted() -> Pipeline:
    """The model of the service."""
    rows = offers(2000, 0)
    grades = np.array([("red" in row["title"]) + ("shoe" in row["title"]) + (row["brand"] == "H&M") for row in rows])
    encoder = TableEncoder(categorical="brand", dates="added", text="title", query_text="query")
    return make_pipeline(encoder, StandardScaler(), RankRLSCV()).fit(
        columns(rows), grades, rankrlscv__qid=np.arange(2000) // 20
    )


@contextmanager
def served(model: Path, workers: int) -> Iterator[int]:
    """The port of a service that has answered once."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "scoring_service:app", "--workers", str(workers), "--port", str(port)]
    environment = os.environ | ONE_THREAD | {"MODEL": str(model)}
    process = subprocess.Popen([*command, "--log-level", "error"], cwd=EXAMPLES, env=environment)
    try:
        until = time.monotonic() + 120
        while time.monotonic() < until and process.poll() is None:
            try:
                client(port, 1, 0)
                break
            except OSError:
                time.sleep(0.2)
        yield port
    finally:
        process.terminate()
        process.wait(30)


def ask(connection: HTTPConnection, rows: list[Row]) -> None:
    connection.request("POST", "/rank", json.dumps({"items": rows}), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    content = json.loads(answer.read())
    if answer.status != 200 or len(content["order"]) != len(rows):
        raise RuntimeError(f"status {answer.status}: {content}")


def repeated(call: Callable[[], object], times: int) -> tuple[list[float], float]:
    """Milliseconds of each call, after a first one, and the seconds of all."""
    call()
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        taken.append(1e3 * (time.perf_counter() - start))
    return taken, sum(taken) / 1e3


def client(port: int, requests: int, seed: int) -> list[float]:
    """Milliseconds of each request of one client."""
    rows = offers(100, seed)
    with closing(HTTPConnection("127.0.0.1", port)) as connection:
        return repeated(lambda: ask(connection, rows), requests)[0]


def line(name: str, taken: list[float], seconds: float) -> str:
    middle, late = np.percentile(taken, [50, 99])
    return f"{name:24s}{middle:8.1f} ms{late:8.1f} ms{len(taken) / seconds:8.0f} a second"


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4])
    given = parser.parse_args()
    model, table = fitted(), columns(offers(100, 1))
    print(f"{'':24s}{'median':>11s}{'99 %':>11s}")
    print(line("predict", *repeated(lambda: model.predict(table), given.requests)), flush=True)
    X = model[:-1].transform(table)
    print(line("predict, encoded", *repeated(lambda: model[-1].predict(X), given.requests)), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        save(model, Path(folder) / "shop_v1.rankrls")
        for workers in given.workers:
            with served(Path(folder) / "shop_v1.rankrls", workers) as port:
                for clients in given.clients:
                    share = max(1, given.requests // clients)
                    start = time.perf_counter()
                    with ThreadPoolExecutor(clients) as pool:
                        runs = [*pool.map(client, [port] * clients, [share] * clients, range(clients))]
                    name = f"{workers} workers, {clients} clients"
                    print(line(name, [*chain(*runs)], time.perf_counter() - start), flush=True)


if __name__ == "__main__":
    main()
