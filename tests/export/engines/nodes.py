"""Nodes of real engines on this machine, in processes of their own, and requests to them."""

import json
import os
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
CLASSPATHS = Path("build/engines")
PROGRAMS = {"solr": HERE / "solr/Solr.java", "opensearch": HERE / "opensearch/OpenSearch.java"}


class Node:
    """A running engine that answers JSON."""

    def __init__(self, port):
        self.base = f"http://127.0.0.1:{port}"

    def send(self, method, path, body=None, **parameters):
        """The answer to a request; text bodies are sent as they are."""
        query = "?" + urllib.parse.urlencode(parameters, doseq=True) if parameters else ""
        data = None if body is None else (body if isinstance(body, str) else json.dumps(body)).encode()
        head = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.base + path + query, data, head, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read().decode()[:2000]}") from None


MODULES = {"solr": os.environ.get("SOLR_LTR", ""), "opensearch": os.environ.get("OPENSEARCH_LTR", "")}
"""The class paths of the engines' learning-to-rank modules, for machines that have compiled them."""
ENABLED = {"solr": "org.apache.solr.ltr.search.LTRQParserPlugin", "opensearch": "com.o19s.es.ltr.LtrQueryParserPlugin"}


@contextmanager
def running(engine):
    """A node of an engine in an empty folder, for the duration of a block."""
    classpath = (CLASSPATHS / f"{engine}.classpath").read_text()
    plugins = []
    if MODULES[engine]:
        classpath = f"{classpath}:{MODULES[engine]}"
        plugins = [ENABLED[engine]]
    with tempfile.TemporaryDirectory() as home:
        command = [
            "java",
            "-Xmx1g",
            f"-Dsolr.log.dir={home}",
            "-cp",
            classpath,
            str(PROGRAMS[engine]),
            f"{home}/node",
            *plugins,
        ]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            line = next((line for line in process.stdout if line.startswith("PORT ")), None)
            assert line is not None, f"{engine} did not start"
            yield Node(int(line.split()[1]))
        finally:
            process.stdin.close()
            process.wait(timeout=60)
