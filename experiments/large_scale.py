"""Linear RankRLS on large sparse data: one Krylov run for every alpha and every iteration.

Repeats section 4 of Airola, Pahikkala, Salakoski: Large Scale Training Methods for Linear RankRLS (2010): Tikhonov
regularization, regularization by iteration and the hybrid of both, learning from scored data and from a sample of a
million pairs; its Table 1, and its Figures 1 and 2 as files.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from _large_scale_data import PAIRS, SOURCES, Task, load
from _large_scale_protocol import METHODS, figure, run_method, training_of, warm_up
from _large_scale_report import Part, as_json, as_text, draw

_DATA_HELP = """\
data sets:
  reuters    Reuters-21578, the files reut2-*.sgm (or .sgm.gz), in a folder reuters21578 of --data
  parse      the sample of the paper's parse ranking data that RLScore publishes, in a folder parse_ranking of --data
  rcv1       RCV1-v2, which sklearn.datasets.fetch_rcv1 fetches from the internet once (656 MB); 8 GB of memory
  synthetic  made-up documents of RCV1's shape, for machines without it; 4 GB of memory

examples:
  python experiments/large_scale.py --data ~/data --plots figures
  python experiments/large_scale.py synthetic --quick
  python experiments/large_scale.py rcv1 --json
"""
_QUICK_PAIRS = 50_000


def run(task: Task, number_of_pairs: int | None) -> Part:
    """Every method on one data set."""
    training = training_of(task, number_of_pairs)
    outcomes = tuple(run_method(method, task, training) for method in METHODS)
    return Part(task, number_of_pairs, outcomes, figure(task, training))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=_DATA_HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"{', '.join(SOURCES)} (default: reuters parse)")
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("RANKRLS_DATA"),
        help="folder of the data (default: the environment variable RANKRLS_DATA)",
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it works")
    parser.add_argument("--plots", type=Path, metavar="DIR", help="draw the figures into this folder")
    parser.add_argument("--pairs", type=int, metavar="N", help="pairs to sample (default: a million; 0: none)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the tables")
    options = parser.parse_args(arguments)
    unknown = set(options.sets) - set(SOURCES)
    if unknown:
        parser.error(f"unknown data set {', '.join(sorted(unknown))}; known are {', '.join(SOURCES)}.")
    if options.pairs is not None and options.pairs < 0:
        parser.error(f"--pairs must not be negative; got {options.pairs}.")
    data = None if options.data is None else Path(options.data)
    found = []
    try:
        if options.plots is not None:
            options.plots.mkdir(parents=True, exist_ok=True)
        for name in dict.fromkeys(options.sets or ("reuters", "parse")):
            task = load(name, data, quick=options.quick)
            warm_up(task)
            for number in _numbers_of_pairs(task, options):
                part = run(task, number)
                if not options.json:
                    print(as_text(part), flush=True)
                if options.plots is not None:
                    print(f"large_scale.py: drew {draw(part, options.plots)}", file=sys.stderr)
                found.append(as_json(part))
                del part
        if options.json:
            print(json.dumps(found, indent=2))
    except (ValueError, OSError) as error:
        print(f"large_scale.py: {error}", file=sys.stderr)
        return 2
    return 0


def _numbers_of_pairs(task: Task, options: argparse.Namespace) -> list[int | None]:
    """None is the scored data themselves."""
    number = options.pairs if options.pairs is not None else _QUICK_PAIRS if options.quick else PAIRS
    return [None, number] if number and task.is_bipartite else [None]


if __name__ == "__main__":
    sys.exit(main())
