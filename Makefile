# make run      compare methods on coding agents, SWE-bench Verified (light core, no torch)
#               make run DOLLARS=0.4   with your cost of one task, errors beside dollars
# make test     light notebooks, and what pytest finds in minutes (no network once installed)
# make book     the book in Jupyter
# make test-all then what takes long: kills, fuzzing, wheels, real harnesses, the site
# make format   formatted, cleaned, exported: what the tests ask for
# make notebooks NB=nbs/evaluation/compare.ipynb FLAGS="data slow"   run it, store its outputs
# make docs     the site, in _docs (Quarto, npm)
# make look     the site in Chromium: lengths, what is cut off, contrast, the explorer
# make harnesses   the programs of tools/harnesses.txt, beside this environment, for their tests
# make teachers the course with its blanks filled in, in out/teachers.zip
# make bench    speed report; with PEERS=1 other programs on the same data, side by side
# make hooks    nbdev's git hooks

# the first that is Python 3.11 or newer; or say it: make test PYTHON=/path/to/python
PYTHON ?= $(shell for p in python3.11 python3; do \
  $$p -c "import sys; sys.exit(sys.version_info < (3, 11))" 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
BIN = $(VENV)/bin
export POT_BACKEND_DISABLE_PYTORCH = 1
export MPLBACKEND = agg
export HF_HUB_OFFLINE = 1
export OMP_NUM_THREADS ?= 1
# hundreds of short processes: compiled once, not every time
unexport PYTHONDONTWRITEBYTECODE

# in an environment of their own, which sees the packages of this one: theirs ask for others
HARNESSES ?= .venv-harnesses
HARNESS_VERSIONS = $(shell grep -E '^(lm-eval|inspect_ai)==' tools/harnesses.txt)

.PHONY: harnesses run book test test-rest test-all teachers bench hooks notebooks format docs look clean

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: settings.ini setup.py | $(BIN)/python
	$(BIN)/pip install -q --disable-pip-version-check -e ".[plots,papers]"
	touch $@

# torch first: a wider range asked for first would pull gigabytes of CUDA
$(VENV)/.dev: settings.ini setup.py tools/requirements.lock | $(BIN)/python
	$(BIN)/pip install -q --disable-pip-version-check torch==2.13.0
	$(BIN)/pip install -q --disable-pip-version-check -c tools/requirements.lock -e ".[llm,dev]"
	touch $(VENV)/.core $@

$(HARNESSES)/.done: | $(VENV)/.dev
	$(BIN)/python -m venv $(HARNESSES)
	$(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))" \
	  > $$($(HARNESSES)/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/base.pth
	$(HARNESSES)/bin/python -m pip install -q --disable-pip-version-check $(HARNESS_VERSIONS)
	touch $@

harnesses: $(HARNESSES)/.done
	$(BIN)/python -m tools.programs

run: $(VENV)/.core
	@mkdir -p out
	$(BIN)/benchnb compare swebench_verified --split date --budgets 15,25,50 --trials 5 \
	  --methods "random,stratified,aipw,guarded_irt,kmeans,p_irt,guarded_irt(rounds=5),adaptive_irt" \
	  $(if $(DOLLARS),--dollars $(DOLLARS)) --jobs 2 --out out/agents.csv --plot out/agents.png

book: $(VENV)/.dev
	$(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) nbs/data/leaderboards.ipynb

PYTEST = $(BIN)/python -m pytest tests -q -n 2 --dist worksteal --durations=25

# as on a machine that has no other data than the package
test: $(VENV)/.dev
	env -u BENCHNB_DATA $(PYTEST)

# what `make test` leaves out; every night much more of the same
MORE = slow or data$(if $(BENCHNB_EXAMPLES), or night)

test-rest: $(VENV)/.dev
	$(PYTEST) -m "$(if $(BENCHNB_EXAMPLES),$(MORE),($(MORE)) and not night)"

test-all: test test-rest

teachers: $(VENV)/.core
	$(BIN)/python -m tools.teachers

bench: $(VENV)/.dev
	$(BIN)/python -m tools.$(if $(PEERS),peers,bench)

hooks: $(VENV)/.dev
	$(BIN)/nbdev_install_hooks

format: $(VENV)/.dev
	$(BIN)/python -m tools.tidy

notebooks: $(VENV)/.dev
	$(BIN)/python -m tools.run --flags "$(FLAGS)" $(NB)

docs: $(VENV)/.dev
	$(BIN)/python -m tools.docs

# needs Quarto or a site in _docs, Chromium or Chrome, and npm
look: $(VENV)/.dev
	test -e _docs/index.html || $(MAKE) docs
	$(BIN)/pip install -q --disable-pip-version-check "playwright>=1.40"
	$(BIN)/python -c "from tools.assets import install; install()"
	$(BIN)/python -m pytest -q -m slow tests/test_rendered.py

clean:
	rm -rf _proc _docs out build .pytest_cache
