"""``python -m fuzzing.fuzz``: every target for its share of some minutes, what went wrong, and a table."""

from __future__ import annotations

import argparse
import json
import secrets
import sys
from pathlib import Path

from fuzzing.campaign import BAD, find, run, table

TARGETS = {
    "commands": "fuzzing.commands:TARGET",
    "letor": "fuzzing.letor:TARGET",
    "tables": "fuzzing.tables:TARGET",
    "models": "fuzzing.models:TARGET",
    "numerics": "fuzzing.numerics:TARGET",
    "clicks": "fuzzing.clicks:TARGET",
}


CORES = {"numerics": ["Haswell", "Sandybridge", "Nehalem"]}
"""Processors whose loops OpenBLAS takes in turn, by target: results must not hang on the last bits."""


def main(arguments: list[str] | None = None) -> int:
    """Run the targets. The exit code is 1 if anything went wrong."""
    parser = argparse.ArgumentParser(prog="python -m fuzzing.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=4.0, help="of all targets together (default 4)")
    parser.add_argument("--seed", type=int, help="the same seed gives the same cases (default: a new one)")
    parser.add_argument("--targets", nargs="+", choices=TARGETS, default=[*TARGETS], metavar="NAME")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--cases", type=int, default=1 << 62, help="of each target, at most")
    parser.add_argument("--json", type=Path, help="write the table and the findings to this file too")
    options = parser.parse_args(arguments)
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    whole = sum(find(TARGETS[name]).share for name in options.targets)
    tallies = []
    for name in options.targets:
        cores = CORES.get(name, [None])
        seconds = 60.0 * options.minutes * find(TARGETS[name]).share / whole / len(cores)
        for core in cores:
            limits = {"seconds": seconds, "cases": options.cases, "first": options.first, "core": core}
            tallies.append(run(TARGETS[name], seed, **limits))
            for found in tallies[-1].findings:
                again = f"--targets {name} --seed {seed} --first {found.number} --cases 1"
                print(f"{found.verdict}: {found.what} (again: {again})", flush=True)
    print(table(tallies))
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        found = [{**vars(t), "inputs": t.inputs, "findings": [*map(vars, t.findings)]} for t in tallies]
        options.json.write_text(json.dumps({"seed": seed, "targets": found}, indent=2) + "\n")
    return int(any(tally.counts[verdict] for tally in tallies for verdict in BAD))


if __name__ == "__main__":
    sys.exit(main())
