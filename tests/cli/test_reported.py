"""What commands got wrong where features cross."""

import numpy as np
import pandas as pd

from rankrls import RankRLS, save


def test_an_interval_ends_at_one_for_one_file_and_for_shards(files, letor, works):
    y, qid = np.ones(60), np.repeat(np.arange(6), 10)
    y[:7] = 0.0
    X = pd.DataFrame({"f1": y.copy(), "f2": np.linspace(0.0, 1.0, 60)})
    X.loc[0, "f1"] = 2.0
    model = RankRLS().fit(X, y, qid=qid)
    model.coef_ = np.array([1.0, 0.0])
    save(model, "m.rankrls")
    letor(files / "t.txt", X.to_numpy(), y, qid)
    works("convert", "t.txt", "shards", "--rows-per-file", "20")
    for data in ("t.txt", "shards"):
        found = works("evaluate", "m.rankrls", data, "--metrics", "p@5", "--json").json["measures"]["p@5"]
        low, high = found["interval"]
        assert low < found["value"] < high == 1.0
