"""One undisturbed streamed fit, with what it was promised and what it took.

``python -m benchmarks._shards FOLDER`` writes 8 million rows of 136 features; then ``python -m benchmarks._large FOLDER
--memory 1G`` chooses among 21 regularization values by exact leave-query-out, and prints the seconds and the peak
memory of the whole process.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks._harness import peak_memory, timed

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks._large", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--memory", default=None)
    parser.add_argument("--rows-per-part", type=int, default=None)
    parser.add_argument("--scoring", default="ndcg@10")
    parser.add_argument("--checkpoint", type=Path, default=None)
    options = parser.parse_args(arguments)
    from rankrls import RankRLSCV
    from rankrls._compiled.threads import n_threads
    from rankrls.io import open_dataset

    before = peak_memory()
    seconds, data = timed(lambda: open_dataset(options.folder, rows_per_part=options.rows_per_part))
    opened = peak_memory()
    model = RankRLSCV(scoring=options.scoring)
    given = {"memory": options.memory, "checkpoint": options.checkpoint}
    took, model = timed(lambda: model.fit_dataset(data, **given))
    out = {
        "rows": data.n_rows,
        "features": data.n_features,
        "queries": data.n_queries,
        "parts": len(data.parts),
        "megabytes of files": sum(file.size for file in data.files) / 1e6,
        "threads": n_threads(),
        "seconds to open": seconds,
        "seconds to fit": took,
        "megabytes of the process, imported": before / 1e6,
        "megabytes of the process, opened": opened / 1e6,
        "megabytes of the process, peak": peak_memory() / 1e6,
        "alpha": model.alpha_,
        "values": len(model.cv_results_["alpha"]),
        "score": model.best_score_,
        "error": model.best_score_error_,
    }
    print(json.dumps(out, indent=1))


if __name__ == "__main__":
    main()
