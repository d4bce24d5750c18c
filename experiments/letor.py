"""RankRLS and RLS on the LETOR collections, beside the published figures.

Reproduces section 3.1 of Pahikkala, Tsivtsivadze, Airola, Boberg, Salakoski: Learning to Rank with Pairwise Regularized
Least-Squares (SIGIR 2007 workshop on learning to rank for information retrieval): features scaled to 0..1 inside each
query, the five official folds, regularization and the treatment of ties chosen by the MAP of the validation queries.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

import numpy as np
from _letor_data import COLLECTIONS, Collection, load_fold
from _letor_data import find_collections as find
from _letor_protocol import COLUMNS, MEASURES, Outcome, run_fold, wider_range
from _letor_report import Result, as_json, as_text

_DATA_HELP = """\
where the data come from:
  Microsoft Research publishes the LETOR collections (search for "LETOR: Learning to Rank for Information Retrieval",
  at microsoft.com/research). The paper used version 1.0 of OHSUMED, TREC2003 and TREC2004: 25 and 44 features, files
  trainingset.txt, validationset.txt and testset.txt in Fold1 to Fold5. Later versions have other features and give
  other figures. MQ2008 is from version 4.0: 46 features, files train.txt, vali.txt and test.txt. Unpack each into a
  folder of its own that is named after it, and give the folder above them, or the folder itself with --dataset.

examples:
  python experiments/letor.py --data ~/letor
  python experiments/letor.py --data ~/letor/OHSUMED/Data/All --dataset ohsumed --folds 1,2 --json
"""


def run(collection: Collection, numbers: tuple[int, ...]) -> Result:
    """Every column of the table on the given folds."""
    outcomes: dict[str, list[Outcome]] = {column.name: [] for column in COLUMNS}
    ranges: dict[str, list[dict[str, tuple[float, float]]]] = {c.name: [] for c in COLUMNS if c.paper}
    documents = queries = features = 0
    for number in numbers:
        fold = load_fold(collection, number)
        documents += len(fold.test.y)
        queries += len(np.unique(fold.test.qid))
        features = fold.test.X.shape[1]
        for column in COLUMNS:
            outcome, model = run_fold(column, fold)
            outcomes[column.name].append(outcome)
            if column.paper:
                ranges[column.name].append(wider_range(column, fold, model))
    mean_ranges = {
        name: {
            m: (float(np.mean([fold[m][0] for fold in per_fold])), float(np.mean([fold[m][1] for fold in per_fold])))
            for m in MEASURES
        }
        for name, per_fold in ranges.items()
    }
    return Result(collection, (documents, queries, features), outcomes, mean_ranges)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=_DATA_HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("RANKRLS_DATA"),
        help="folder of the collections (default: the environment variable RANKRLS_DATA)",
    )
    parser.add_argument("--dataset", choices=("auto", *COLLECTIONS), default="auto", help="default: all that are there")
    parser.add_argument("--folds", help="folds to run, such as 1,2 (default: all)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the tables")
    options = parser.parse_args(arguments)
    if options.data is None:
        parser.error("give the folder of the data: --data DIR, or set RANKRLS_DATA.")
    try:
        results = []
        for collection in find(Path(options.data).expanduser(), options.dataset):
            result = run(collection, _folds(options.folds, collection))
            results.append(result)
            if not options.json:
                print(as_text(result), flush=True)
        if options.json:
            print(json.dumps([as_json(result) for result in results], indent=2))
    except (ValueError, OSError) as error:
        print(f"letor.py: {error}", file=sys.stderr)
        return 2
    return 0


def _folds(text: str | None, collection: Collection) -> tuple[int, ...]:
    if text is None:
        return collection.folds
    try:
        numbers = tuple(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError:
        raise ValueError(f"--folds must be numbers with commas between them; got {text!r}.") from None
    missing = [n for n in numbers if n not in collection.folds]
    if missing:
        raise ValueError(f"{collection.title} has folds {collection.folds}, not {missing}.")
    return numbers


if __name__ == "__main__":
    sys.exit(main())
