"""Hold-out without refitting: that it is exact, how much faster it is, and what leaving out pairs is for.

First every shortcut of rankrls.model_selection beside its refits, on data sets inside scikit-learn and on OHSUMED. Then
the AUC of labels that are drawn at random, by leave-one-out and folds whose scores are pooled, by leave-pair-out and by
its tournament (Airola, Pahikkala, Waegeman, De Baets, Salakoski 2011; Montoya Perez et al. 2019): 0.5 is right.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from _holdout_bias import METHODS, Bias, bias
from _holdout_refits import Agreement, agreements
from _text import aligned, headed

EXACT = 1e-8
"""What counts as equal, in standard deviations of the scores."""
SETTINGS = (
    *((20, 10, 5, alpha) for alpha in (1.0, 100.0)),
    *((30, 6, 10, alpha) for alpha in (1.0, 100.0)),
    *((40, 20, 200, alpha) for alpha in (1.0, 1000.0)),
    *((100, 20, 10, alpha) for alpha in (1.0, 1000.0)),
)
"""Items, positives, features, alpha."""


def agreement_text(rows: list[Agreement]) -> str:
    """Shortcuts beside refits."""
    head = ["data", "held out by", "parts", "alphas", "largest gap", "equal", "seconds", "refits", "times faster"]
    lines = [
        [
            row.data,
            row.what,
            str(row.held),
            str(row.alphas),
            f"{row.gap:.1e}",
            "yes" if row.gap < EXACT else "NO",
            f"{row.seconds:.3g}",
            f"{row.refit_seconds:.3g}",
            f"{row.faster:.0f}",
        ]
        for row in rows
    ]
    title = f"Shortcuts beside refits (equal: within {EXACT:g} standard deviations of the scores)"
    return f"{headed(title)}\n\n{aligned([head, *lines])}\n"


def bias_text(rows: list[Bias]) -> str:
    """AUC on random labels."""
    head = ["items, positives, features, alpha", "samples", *METHODS, "interval holds 0.5"]
    lines = [
        [
            f"{row.items}, {row.positives}, {row.features}, {row.alpha:g}",
            str(row.samples),
            *(f"{row.mean[m]:.3f} ± {row.error[m]:.3f}" for m in METHODS),
            f"{row.coverage:.1%}",
        ]
        for row in rows
    ]
    return f"{headed('Mean AUC of random labels, ± its standard error: 0.5 is right')}\n\n{aligned([head, *lines])}\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("RANKRLS_DATA"),
        help="folder of OHSUMED (default: the environment variable RANKRLS_DATA; see letor.py --help); without it the "
        "shortcuts for queries are left out",
    )
    parser.add_argument("--quick", action="store_true", help="fewer refits and samples")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the tables")
    options = parser.parse_args(arguments)
    try:
        data = None if options.data is None else Path(options.data).expanduser()
        equal = agreements(data, quick=options.quick)
        if not options.json:
            print(agreement_text(equal), flush=True)
        biases = [bias(*setting, samples=20 if options.quick else 1000) for setting in SETTINGS]
    except (ValueError, OSError) as error:
        print(f"holdout.py: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(
            json.dumps(
                {
                    "agreement": [asdict(row) | {"faster": row.faster} for row in equal],
                    "bias": [asdict(row) for row in biases],
                },
                indent=2,
            )
        )
    else:
        print(bias_text(biases))
    return 0 if all(row.gap < EXACT for row in equal) else 1


if __name__ == "__main__":
    sys.exit(main())
