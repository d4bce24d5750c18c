"""Makes the stored models of the current format version: ``python tests/golden/make_models.py``.

Run once for each new format version. The files of a version are never made again: the tests prove that every later
release still reads what an earlier one wrote.
"""

import json
from pathlib import Path

import numpy as np

from rankrls import RankRLS, RankRLSCV
from rankrls.persistence import FORMAT_VERSION, save


def main() -> None:
    folder = Path(__file__).parent
    rng = np.random.default_rng(20)
    X = rng.normal(size=(24, 5))
    y = np.round(X @ [2.0, -1.0, 0.5, 0.0, 0.0] + rng.normal(size=24))
    qid = [f"q{k}" for k in np.repeat(np.arange(6), 4)]
    models = {
        "linear": RankRLS(alpha=0.3, ties="exclude", balance="pairs").fit(X, y, qid=qid),
        "rbf": RankRLSCV(kernel="rbf", gamma=(0.05, 0.2), scoring="ndcg@3").fit(X, y - y.min(), qid=qid),
    }
    # Unit rows: what a linear model predicts for them is exact in every order of summation.
    inputs = np.vstack([np.eye(5), rng.normal(size=(5, 5))])
    for name, model in models.items():
        path = folder / f"model_v{FORMAT_VERSION}_{name}.skops"
        if path.exists():
            raise SystemExit(f"{path} exists; a stored model is never made again.")
        save(model, path, provenance={"data": "24 items of 6 queries from make_models.py"})
        expected = {
            "estimator": type(model).__name__,
            "alpha": float(model.alpha_).hex(),
            "inputs": [[float(v).hex() for v in row] for row in inputs],
            "predictions": [float(v).hex() for v in model.predict(inputs)],
        }
        path.with_suffix(".json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
