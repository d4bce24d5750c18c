"""Ranking jokes or movies for one user from a few of the user's ratings, beside the published figures.

Reproduces section 6 of Tsivtsivadze and Heskes: Semi-supervised ranking pursuit. 300 reference users of a group give an
item's features (a reference user's median where a rating is missing), half of a test user's ratings are there to learn
from, the other half to be judged on, by a Gaussian kernel. Its width and all other parameters are chosen once for each
group, on hold-out users drawn in the same way.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

from _collaborative_methods import METHODS
from _collaborative_problem import Method
from _collaborative_protocol import GROUPS, MEASURES, Sizes, draw, run_part
from _collaborative_report import Result, as_json, as_text
from _ratings_data import Ratings, find_jester, read_ratings

_HELP = """\
where the data come from:
  Jester: eigentaste.berkeley.edu/dataset, jester-data-1, as comma separated values: a line a user, first the number of
  jokes rated, then 100 ratings from -10 to 10, where 99 is not rated. It holds the users with 36 ratings or more, so
  that its group 20-40 is the users with 36 to 39.
  MovieLens 1M: grouplens.org/datasets/movielens, ratings.dat; or any file of user, movie, rating (.csv, also gzipped).

examples:
  python experiments/collaborative_filtering.py --data ~/data --quick
  python experiments/collaborative_filtering.py --data ~/data --jobs 2 --json result.json
  python experiments/collaborative_filtering.py --ratings ~/ml-1m/ratings.dat --paper movielens
"""
_QUICK = Sizes(users=60, repetitions=2, holdout=60)


def run(
    ratings: Ratings,
    published: str | None,
    groups: list[tuple[int, int]],
    sizes: Sizes,
    n_jobs: int,
    methods: dict[str, tuple[Method, ...]] = METHODS,
) -> Result:
    """Every table on the given groups; one that none of the methods belongs to is left out."""
    start = time.perf_counter()
    drawn, parts = [], {}
    for bounds in groups:
        group = draw(ratings, bounds, sizes)
        drawn.append(group)
        parts[bounds] = {}
        for name, measures in (("full", MEASURES), ("half", MEASURES[:1])):
            if methods[name]:
                half = name == "half"
                parts[bounds][name] = run_part(methods[name], group, half=half, measures=measures, n_jobs=n_jobs)
        print(f"group {bounds[0]}-{bounds[1]}: done after {time.perf_counter() - start:.0f} s", file=sys.stderr)
    return Result(ratings.name, published, sizes, methods, drawn, parts, time.perf_counter() - start)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=_HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("RANKRLS_DATA"),
        help="folder of jester-data-1.csv or .csv.gz (default: the environment variable RANKRLS_DATA)",
    )
    parser.add_argument("--ratings", type=Path, help="a file of ratings instead: Jester, ratings.dat, or a CSV")
    parser.add_argument(
        "--paper", choices=("auto", "jester", "movielens", "none"), default="auto", help="whose figures to print beside"
    )
    parser.add_argument("--groups", help="such as 40-60,60-80 (default: 20-40,40-60,60-80)")
    parser.add_argument("--quick", action="store_true", help="60 users, two repetitions: a first look")
    for name in ("users", "repetitions", "holdout", "reference", "seed"):
        parser.add_argument(f"--{name}", type=int, help=f"default: {getattr(Sizes(), name)}")
    parser.add_argument("--methods", nargs="+", metavar="ROW", help="some rows of the tables only, by their names")
    parser.add_argument("--jobs", type=int, default=1, help="processes, -1 for one a core (default: 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there too")
    options = parser.parse_args(arguments)
    if options.data is None and options.ratings is None:
        parser.error("give the folder of the data: --data DIR, or set RANKRLS_DATA; or a file: --ratings FILE.")
    try:
        path = options.ratings or find_jester(Path(options.data).expanduser())
        ratings = read_ratings(path.expanduser())
        published = options.paper
        if published == "auto":
            published = "jester" if ratings.name == "Jester" else "movielens"
        result = run(
            ratings,
            None if published == "none" else published,
            _groups(options.groups),
            _sizes(options),
            options.jobs,
            _methods(options.methods),
        )
        if options.json:
            options.json.write_text(json.dumps(as_json(result), indent=2) + "\n")
        print(as_text(result), flush=True)
    except (ValueError, OSError) as error:
        print(f"collaborative_filtering.py: {error}", file=sys.stderr)
        return 2
    return 0


def _sizes(options: argparse.Namespace) -> Sizes:
    base = _QUICK if options.quick else Sizes()
    given = {name: value for name in vars(base) if (value := getattr(options, name)) is not None}
    least = {"users": 2, "repetitions": 1, "holdout": 1, "reference": 1, "seed": 0}
    for name, value in given.items():
        if value < least[name]:
            raise ValueError(f"--{name} must be at least {least[name]}; got {value}.")
    return replace(base, **given)


def _methods(names: list[str] | None) -> dict[str, tuple[Method, ...]]:
    if names is None:
        return METHODS
    known = {m.name: m for rows in METHODS.values() for m in rows}
    for name in names:
        if name not in known:
            raise ValueError(f"--methods must be some of {', '.join(known)}; got {name!r}.")
        if known[name].after not in (None, *names):
            raise ValueError(f"--methods: {name} needs what {known[name].after} chose; name both.")
    return {part: tuple(m for m in rows if m.name in names) for part, rows in METHODS.items()}


def _groups(text: str | None) -> list[tuple[int, int]]:
    if text is None:
        return list(GROUPS)
    groups = []
    for part in text.split(","):
        ends = part.split("-")
        if len(ends) != 2 or not all(end.strip().isdigit() for end in ends) or int(ends[0]) >= int(ends[1]):
            raise ValueError(f"--groups must look like 40-60,60-80; got {text!r}.")
        groups.append((int(ends[0]), int(ends[1])))
    return groups


if __name__ == "__main__":
    sys.exit(main())
