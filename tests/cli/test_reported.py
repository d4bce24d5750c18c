"""What commands got wrong where features cross."""

import json
import zipfile

import numpy as np
import pandas as pd
import pytest
from tests.refusals import Refusal

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


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_a_model_file_of_which_a_part_is_gone_is_refused(command, files, works, refused):
    works("fit", "train.txt", "--model", "m.rankrls")
    with zipfile.ZipFile("m.rankrls") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    (name,) = (name for name in members if name.endswith(".json"))
    document = json.loads(members[name])
    inner = [(part, key) for part, value in document.items() if isinstance(value, dict) for key in value]
    for part, key in [*((part, None) for part in document), *inner]:
        changed = {k: v for k, v in document.items() if k != part or key is not None}
        if key is not None:
            changed[part] = {k: v for k, v in document[part].items() if k != key}
        with zipfile.ZipFile("damaged", "w") as archive:
            for member, content in members.items():
                archive.writestr(member, json.dumps(changed) if member == name else content)
        refused(command, "damaged", "test.txt", Refusal("damaged"))
