# Everything runs in a virtual environment of its own; PYTHON names the interpreter to make it with (3.11 or newer).
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/.stamps

.PHONY: demo test test-quick test-processors test-oldest engines mutations long fuzz faults replicate lint types imports docs notebooks bench package check clean

demo: $(STAMPS)/demo
	$(BIN)/python examples/search_documentation.py

test: $(STAMPS)/test
	$(BIN)/python -m pytest -n auto --dist worksteal

# Without the tests marked slow.
test-quick: $(STAMPS)/test
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow"

# The numeric tests with the loops of other processors: results may differ in their last bits, and no test may notice.
# SkylakeX runs only where the processor has AVX-512. Once the compiled loops are those of a generic processor, with bounds checked.
NUMERIC := tests/numerics tests/learners tests/selection tests/metrics tests/golden
CORES ?= Haswell Sandybridge Nehalem $(shell grep -qs avx512f /proc/cpuinfo && echo SkylakeX)
test-processors: $(STAMPS)/test
	set -e; for core in $(CORES); do \
		OPENBLAS_CORETYPE=$$core $(BIN)/python -m pytest -q -n auto --dist worksteal -m "not slow" $(wildcard $(NUMERIC)); done
	NUMBA_CPU_NAME=generic NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/build/generic-loops $(BIN)/python -m pytest -q -n auto \
		--dist worksteal -m "not slow" $(wildcard tests/numerics tests/learners tests/metrics tests/golden)

# The tests with the lowest versions that pyproject.toml allows, in an environment of their own.
test-oldest: $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(PYTHON) -m venv build/oldest
	$(BIN)/uv pip install --quiet --python build/oldest/bin/python --resolution lowest-direct --editable '.[plots,test]'
	NUMBA_CACHE_DIR=$(CURDIR)/build/oldest-loops build/oldest/bin/python -m pytest -q -n auto --dist worksteal -m "not slow"

# Exports inside real engines, which Maven fetches: Solr and OpenSearch nodes on this machine. Prints what differs.
ENGINES := solr opensearch
engines: $(STAMPS)/test $(ENGINES:%=build/engines/%.classpath)
	$(BIN)/python -m tests.export.engines

build/engines/%.classpath: tests/export/engines/%/pom.xml
	@{ command -v java && command -v mvn && command -v curl; } > /dev/null || { echo "make engines needs Java 17, Maven and curl; some of them are not installed."; exit 1; }
	@mkdir -p build/engines
	mvn -q -B -f $< dependency:build-classpath -Dmdep.outputFile=$(CURDIR)/$@

# Faults planted in a copy, one by one, and whether the tests notice; MODULES="io models/spec" plants some of them.
mutations: $(STAMPS)/test
	$(BIN)/python -m tests.mutations $(MODULES)

# What no change has to wait for: planted faults, the slow tests (studies on noise among them) with many more random cases,
# and real engines where they can be fetched.
long: mutations
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -q -n auto --dist worksteal -m slow
	if command -v java > /dev/null && command -v mvn > /dev/null && command -v curl > /dev/null; then $(MAKE) engines; \
		else echo "make engines was not run: it needs Java 17, Maven and curl."; fi

# Every table of the five papers for which DATA, a folder, has the data, beside the papers' figures.
replicate: $(STAMPS)/test
	$(BIN)/python -m papers.replicate $(if $(DATA),--data $(DATA))

# Fuzzing: hostile and random input for MINUTES. SEED repeats a run; TARGETS names some of the targets.
MINUTES ?= 4
fuzz: $(STAMPS)/test
	$(BIN)/python -m fuzzing.fuzz --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(if $(TARGETS),--targets $(TARGETS)) \
		--json fuzz-findings/table.json

# Kills, signals, full disks and closed pipes, for MINUTES.
faults: $(STAMPS)/test
	$(BIN)/python -m fuzzing.faults --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) --json fuzz-findings/faults.json

lint: $(STAMPS)/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMPS)/lint
	$(BIN)/mypy

imports: $(STAMPS)/lint
	$(BIN)/lint-imports

docs: $(STAMPS)/docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

# The tutorials of the guide as notebooks, which are part of the repository.
notebooks: $(BIN)/python
	$(BIN)/python docs/notebooks.py

bench: $(STAMPS)/bench
	$(BIN)/python -m benchmarks $(JOBS)

# Wheel and sdist; then the wheel alone, in an environment with nothing but its dependencies.
package: $(STAMPS)/package
	rm -rf dist build/bare
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m venv build/bare
	build/bare/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	build/bare/bin/python tests/packaging/bare.py

check: lint types imports test docs

clean:
	rm -rf $(VENV) build dist demo-output docs/_build docs/gallery docs/api/generated

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("rankrls needs Python 3.11 or newer; set PYTHON=...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

# One stamp for each set of extras, made anew when the dependencies change.
$(STAMPS)/demo: EXTRAS = plots
$(STAMPS)/test: EXTRAS = plots,test
$(STAMPS)/lint: EXTRAS = plots,test,lint
$(STAMPS)/docs: EXTRAS = docs
$(STAMPS)/bench: EXTRAS = bench
$(STAMPS)/package: EXTRAS = package
$(STAMPS)/%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRAS)]'
	@mkdir -p $(STAMPS)
	@touch $@
