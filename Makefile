# kdx: `make` lists what there is.
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.venv/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

.venv/installed-dev: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: .venv/installed  ## run the quickstart grid and print its table (about two minutes)
	$(BIN)/kdx sweep experiments/quickstart.yaml
	$(BIN)/kdx report quickstart

# Without reordering, since else the few long tests of a file come last, alone.
PYTEST := $(BIN)/pytest -n auto --maxprocesses 8 --dist loadfile --no-loadscope-reorder

test: .venv/installed-dev  ## run the tests of every room (about five minutes on two cores)
	$(PYTEST)

test-all: .venv/installed-dev  ## run all tests: kills, faults, servers, Slurm, a browser, LaTeX, compilers, documentation
	$(PYTEST) -m 'not long'

lint: .venv/installed-dev  ## check format, style and types
	$(BIN)/ruff format --check kdx tests
	$(BIN)/ruff check kdx tests
	$(BIN)/mypy

faults: .venv/installed-dev  ## kill, stop, damage and fill up; longer by KILLS=500, or one of RUN_KILLS, TREE_KILLS, GRIDS …
	$(PYTEST) -m fault

endurance: .venv/installed-dev  ## break a run of 48 minutes off every few minutes (kdx data prepare iwslt14); FOLDER=long-run
	$(BIN)/python -m tests.faults.long_run --folder $(or $(FOLDER),long-run)

bench: .venv/installed-dev  ## measure what kdx promises of its speed; JSON on stdout
	$(BIN)/python -m tests.benchmarks

.venv-peers/installed: pyproject.toml constraints.txt
	test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e . \
	  hydra-core hydra-joblib-launcher 'ray[tune]' x-transformers
	touch $@

bench-peers: .venv-peers/installed  ## time short runs and attention beside other tools, and kill each at half (20 minutes)
	.venv-peers/bin/python -m tests.benchmarks.orchestration
	.venv-peers/bin/python -m tests.benchmarks.peers

calibration: .venv/installed-dev  ## simulate how often the report's statistics err (half an hour); quicker by DRAWS=100
	$(BIN)/python -m tests.report.calibration $(DRAWS)
	$(BIN)/python -m tests.report.until_calibration $(DRAWS)

evidence: .venv/installed  ## train what runs.db.example holds, in 21 hours of two cores (kdx data prepare multi30k; wikitext2 …)
	# Elsewhere, so that a sweep which was broken off resumes, and a database that is passed on misses no weights.
	mkdir -p build/evidence
	for table in table1 table2 table3 combination; do $(BIN)/kdx sweep shaw2018/$$table-mini --set seeds=5 --db build/evidence/runs.db; done
	for grid in extrapolation/mini recall/recall; do $(BIN)/kdx sweep $$grid --db build/evidence/runs.db; done
	for table in 1 2 3 4; do $(BIN)/kdx sweep modern/tsai2019-table$$table-mini --db build/evidence/runs.db; done
	$(BIN)/kdx sweep tsai2019/table1-mini-open --db build/evidence/runs.db
	$(BIN)/kdx sweep controlled/positions-tuned-mini --db build/evidence/runs.db
	for study in bases symmetry value layers kernel product; do $(BIN)/kdx sweep studies/$$study --db build/evidence/runs.db; done
	for table in 4 3 2 1; do $(BIN)/kdx sweep tsai2019/table$$table-mini --set seeds=5 --db build/evidence/runs.db; done
	$(BIN)/python -m tests.example build/evidence/runs.db

picture: .venv/installed-dev  ## draw the pictures of the README and of the findings
	$(BIN)/python -m tests.picture

words: .venv/installed-dev  ## write kdx/words/table.json and docs/reference/words.md from the classes
	$(BIN)/python -m tests.words_table
	$(BIN)/python -m tests.words

reference: words  ## write the other generated parts of docs/reference: commands, keys, Python, variables, database
	$(BIN)/python -m tests.reference

docs: .venv/installed-dev  ## build the documentation site in build/site
	# A copy, since in the checkout Zensical walks through all of .venv and runs.files, too.
	rm -rf build/pages && mkdir -p build/pages
	cp -r *.md CITATION.cff LICENSE docs build/pages
	find tests -name '*.py' -exec cp --parents -t build/pages {} +
	$(BIN)/zensical build --clean --strict

golden: .venv/installed-dev  ## write the golden set and the messages of wrong grids anew; SET=standing without training
	$(BIN)/python -m tests.golden $(SET)
	PYTHONPATH=tests $(BIN)/python tests/grid/test_messages.py

clean:  ## remove the environment and what was built
	rm -rf .venv .venv-peers build dist .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +

.PHONY: help demo test test-all lint faults endurance bench bench-peers calibration evidence picture words reference docs golden clean
