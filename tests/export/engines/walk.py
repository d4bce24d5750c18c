"""The commands of the guide to deployment, run in real engines in the folder that its Python examples fill."""

import doctest
import json
import re
import shlex
import subprocess
import tempfile
from contextlib import chdir
from pathlib import Path

import numpy as np

PAGE = Path("docs/guide/deployment.rst").resolve()
PORTS = {"solr": "http://localhost:8983", "opensearch": "http://localhost:9200"}
ASKED = "red shoes"


def prepare(folder):
    """Run the Python examples of the page in a folder; the names that they define."""
    with chdir(folder):
        examples = doctest.DocTestParser().get_doctest(PAGE.read_text("utf-8"), {}, "deployment", str(PAGE), 0)
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        assert runner.run(examples, clear_globs=False).failed == 0
    return examples.globs


def commands(engine):
    """The curl commands of the page for an engine, in order."""
    blocks = re.findall(r"\.\. code-block:: bash\n\n((?:   .*\n|\n)+)", PAGE.read_text("utf-8"))
    lines = "".join(re.sub(r" \\\n +", " ", block) for block in blocks)
    found = [command.strip() for command in re.split(r"\n(?=   curl )", "\n" + lines) if command.strip()]
    return [command for command in found if PORTS[engine] in command]


def walk(engine, node, has_ltr):
    """How many commands ran, how many need what the engine lacks, and whether each search had the order of predict."""
    with tempfile.TemporaryDirectory() as folder:
        space = prepare(folder)
        products = space["products"].assign(query=ASKED)
        scores = dict(zip(products["id"], space["pipeline"].predict(products), strict=True))
        ran = 0
        lacking = 0
        orders = []
        for command in commands(engine):
            if not has_ltr and re.search(r"_ltr|sltr|\{!ltr|feature-store|model-store", command):
                lacking += 1
                continue
            words = shlex.split(command.replace(PORTS[engine], node.base))
            answer = subprocess.run([*words, "-s", "-S"], cwd=folder, capture_output=True, text=True, check=True)
            found = json.loads(answer.stdout)
            failed = found.get("error") or found.get("errors")
            assert not failed, f"{command}: {answer.stdout[:2000]}"
            ran += 1
            documents = found.get("hits", {}).get("hits") or found.get("response", {}).get("docs")
            if documents:
                ids = [document.get("_id") or document["id"] for document in documents]
                orders.append(len(ids) > 3 and bool((np.diff([scores[i] for i in ids]) < 0.0).all()))
        return ran, lacking, orders
