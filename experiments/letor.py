"""RankRLS, RLS and their rivals on the LETOR collections, beside the published figures.

Reproduces section 3.1 of Pahikkala, Tsivtsivadze, Airola, Boberg, Salakoski: Learning to Rank with Pairwise Regularized
Least-Squares (SIGIR 2007 workshop on learning to rank for information retrieval): features scaled to 0..1 inside each
query, the five official folds, everything chosen by the MAP of the validation queries. Methods that came later stand
beside the paper's, and every pair is tested over the test queries.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from _letor_data import COLLECTIONS, Collection
from _letor_data import find_collections as find
from _letor_methods import Method, known_methods, published
from _letor_report import as_json, as_text, run

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

the benchmark's own predictions:
  Where a collection's folder holds official_results/RankSVM or RankBoost, with files 1_Prediction... to 5_Prediction...
  of one score a line, they are judged beside ours.
"""


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
    parser.add_argument("--methods", help=f"some of {', '.join(known_methods())}, with commas (default: all)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the tables")
    options = parser.parse_args(arguments)
    if options.data is None:
        parser.error("give the folder of the data: --data DIR, or set RANKRLS_DATA.")
    try:
        methods = _methods(options.methods)
        results = []
        for collection in find(Path(options.data).expanduser(), options.dataset):
            result = run(collection, _folds(options.folds, collection), [*methods, *published(collection)])
            results.append(result)
            if not options.json:
                print(as_text(result), flush=True)
        if options.json:
            print(json.dumps([as_json(result) for result in results], indent=2))
    except (ValueError, OSError) as error:
        print(f"letor.py: {error}", file=sys.stderr)
        return 2
    return 0


def _methods(text: str | None) -> list[Method]:
    known = known_methods()
    names = list(known) if text is None else [part.strip() for part in text.split(",")]
    for name in names:
        if name not in known:
            raise ValueError(f"--methods must be some of {', '.join(known)}, with commas; got {name!r}.")
    return [known[name] for name in dict.fromkeys(names)]


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
