"""``python -m attack.fuzz``: every target for its share of some minutes, a table, and the inputs that went wrong."""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import warnings
from dataclasses import asdict
from pathlib import Path

from attack.campaign import BAD, VERDICTS, Tally, find, run, table, verdict_of

TARGETS = {
    "letor": "attack.letor:TARGET",
    "tables": "attack.tables:TARGET",
    "models": "attack.models:TARGET",
    "numerics": "attack.numerics:TARGET",
}


def main(arguments: list[str] | None = None) -> int:
    """Run the attack. The exit code is 1 if anything went wrong."""
    parser = argparse.ArgumentParser(prog="python -m attack.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=4.0, help="of all targets together (default 4)")
    parser.add_argument("--seed", type=int, help="the same seed gives the same cases (default: a new one)")
    parser.add_argument("--targets", nargs="+", choices=TARGETS, default=[*TARGETS], metavar="NAME")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--cases", type=int, default=1 << 62, help="of each target, at most")
    parser.add_argument("--folder", type=Path, default=Path("attack-findings"), help="for inputs that went wrong")
    parser.add_argument("--json", type=Path, help="write the table and the findings to this file too")
    parser.add_argument(
        "--replay", nargs="+", metavar="NAME", help="a target, and kept inputs to judge in this process"
    )
    options = parser.parse_args(arguments)
    if options.replay:
        return _replay(options.replay[0], [options.folder / name for name in options.replay[1:]])
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    whole = sum(find(TARGETS[name]).share for name in options.targets)
    tallies = []
    for name in options.targets:
        seconds = 60.0 * options.minutes * find(TARGETS[name]).share / whole
        limits = {"seconds": seconds, "cases": options.cases, "first": options.first}
        tallies.append(run(TARGETS[name], seed, options.folder, **limits))
        _tell(tallies[-1])
    print(table(tallies))
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        lines = [
            {
                "target": tally.target,
                "inputs": tally.inputs,
                "counts": {verdict: tally.counts[verdict] for verdict in VERDICTS},
                "seconds": round(tally.seconds, 1),
                "findings": [asdict(finding) for finding in tally.findings],
            }
            for tally in tallies
        ]
        options.json.write_text(json.dumps({"seed": seed, "targets": lines}, indent=2) + "\n")
    return int(any(tally.counts[verdict] for tally in tallies for verdict in BAD))


def _tell(tally: Tally) -> None:
    """The findings that were kept."""
    for finding in tally.findings:
        if finding.file:
            print(f"{finding.target} case {finding.number}: {finding.verdict}: {finding.what} -> {finding.file}")
    sys.stdout.flush()


def _replay(name: str, paths: list[Path]) -> int:
    target = find(TARGETS[name])
    warnings.simplefilter("ignore")
    target.warm_up()
    verdicts = [verdict_of(target, path.read_bytes()) for path in paths]
    for path, (verdict, what) in zip(paths, verdicts, strict=True):
        print(f"{path.name}: {verdict}{': ' * bool(what)}{what}")
    return int(any(verdict in BAD for verdict, _ in verdicts))


if __name__ == "__main__":
    sys.exit(main())
