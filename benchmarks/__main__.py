"""Run the benchmarks and print one table: job, ours, rival or limit, ratio, goal, met."""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks._harness import skipped, thread_environment

LOAD_BEFORE = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
FOLDER = Path(__file__).parent


def names() -> list[str]:
    """The modules that are jobs, in the order of the table."""
    return sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_"))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("jobs", nargs="*", help=f"some of {', '.join(names())} (default: all)")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it works; no goal is judged")
    parser.add_argument("--threads", type=int, default=None, help="threads for us and every rival (default: all)")
    parser.add_argument("--device", default="cpu", help="torch's device, for the job devices (default: cpu)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the lines to a file")
    options = parser.parse_args(arguments)
    unknown = set(options.jobs) - set(names())
    if unknown:
        parser.error(f"unknown job {', '.join(sorted(unknown))}; known are {', '.join(names())}.")
    threads = options.threads or _processors()
    os.environ["RANKRLS_BENCHMARK_DEVICE"] = options.device  # for the processes of the jobs
    lines = []
    for name in options.jobs or names():
        start = time.perf_counter()
        new = run_apart(name, options.quick, threads)
        print(f"{name}, {time.perf_counter() - start:.0f} s:\n{table(new)}\n", file=sys.stderr, flush=True)
        lines += new
    machine = describe(threads)
    print("\n".join((table(lines), "", *(f"{key}: {value}" for key, value in machine.items()))))
    if options.json:
        options.json.write_text(
            json.dumps({"machine": machine, "quick": options.quick, "lines": lines}, indent=2) + "\n"
        )
    return 1 if any(line["met"] is False for line in lines) else 0


def _processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_apart(name: str, quick: bool, threads: int) -> list[dict[str, Any]]:
    """The lines of one job, from a process whose threads are fixed before numpy is imported."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "lines.json"
        code = f"from benchmarks.__main__ import run_here; run_here({name!r}, {quick!r}, {str(out)!r})"
        environment = thread_environment(threads)
        environment["PYTHONPATH"] = os.pathsep.join([str(FOLDER.parent), environment.get("PYTHONPATH", "")])
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=environment)
        if done.returncode:
            return [skipped(name, "", f"it failed with exit code {done.returncode}, see above") | {"met": False}]
        lines: list[dict[str, Any]] = json.loads(out.read_text())
    return lines


def run_here(name: str, quick: bool, out: str) -> None:
    """Called in the job's own process."""
    function = importlib.import_module(f"benchmarks.{name}").jobs
    if not inspect.signature(function).parameters:
        lines = [skipped(name, "", "it has no small sizes")] if quick else function()
    else:
        lines = function(quick)
    if quick:
        lines = [{**line, "met": None} for line in lines]
    Path(out).write_text(json.dumps(lines, default=_plain))


def _plain(value: Any) -> Any:
    return value.item()


def table(lines: list[dict[str, Any]]) -> str:
    head = ("job", "ours", "rival or limit", "its", "ratio", "goal", "met")
    rows = [head]
    for line in lines:
        unit = line.get("unit", "s")
        ratio = "" if line["ratio"] is None else f"{line['ratio']:.2f}"
        met = {True: "yes", False: "NO", None: ""}[line["met"]]
        rows.append(
            (line["job"], _value(line["ours"], unit), line["rival"], _value(line["rival_seconds"], unit), ratio)
            + (line["goal"], met)
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    left = (0, 2, 5)
    rows.insert(1, tuple("-" * width for width in widths))
    return "\n".join(
        "  ".join(c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
        for row in rows
    )


def _value(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:.3g} {unit}" if value < 1000 else f"{value:.0f} {unit}"


def describe(threads: int) -> dict[str, str]:
    """What the figures depend on."""
    from importlib.metadata import PackageNotFoundError, version

    found = []
    for package in ("numpy", "scipy", "scikit-learn", "numba", "lightgbm", "rlscore"):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return {
        "threads": str(threads),
        "load before": f"{LOAD_BEFORE:.1f}: on a busy machine neither side's seconds mean much",
        "python": platform.python_version(),
        "packages": ", ".join(found),
        "machine": f"{platform.machine()}, {os.cpu_count()} processors",
    }


if __name__ == "__main__":
    sys.exit(main())
