# `make` alone lists the targets. Those that need packages set up .venv first, when it is missing, half made, older than
# the locks, or made by another Python. Needed beforehand: Python with its venv module, and nothing else.

# A Python that was named once holds for later calls too: `make install PYTHON=python3.12`, then `make run`.
PYTHON ?= $(shell .venv/bin/python -c '' 2>/dev/null && echo .venv/bin/python || echo python3)
PYTHON := $(PYTHON)
VERSION := $(shell $(PYTHON) -c 'import sys; v = sys.version_info; print("%d.%d" % v[:2]) if v >= (3, 11) else sys.exit(1)' 2>/dev/null)

SIZE ?= 10000
SECONDS ?= 300
MINUTES ?= 3
MODULES ?= search terms cleanup context
COUNT ?= 20
SEED ?= 1
# One more than there are cores: a good part of their time tests wait for the processes that they have started.
PROCESSES ?= $(shell expr $$(nproc) + 1)
PYTEST := .venv/bin/python -m pytest -n $(PROCESSES) --dist worksteal
UV := uv==0.13.8

# One line says what is missing, before anything is made.
define need_python
$(if $(VERSION),,$(error Snaplore needs Python 3.11 or newer and found none as "$(PYTHON)": say which, like make $(MAKECMDGOALS) PYTHON=python3.12))
$(if $(shell $(PYTHON) -c 'import ensurepip, venv; print("there")' 2>/dev/null),,$(error $(PYTHON) has no venv module: install the \
package python$(VERSION)-venv (Debian, Ubuntu: sudo apt install python$(VERSION)-venv)))
endef

# The stamps carry the version of Python, since packages with compiled parts fit no other.
RUN_READY := .venv/.ready-$(VERSION)
DEV_READY := .venv/.ready-dev-$(VERSION)

# What checks the page's scripts, in the versions of its lock.
NPM := $(shell command -v npm 2>/dev/null)
PAGE_LINT := tests/page-lint
PAGE_READY := $(PAGE_LINT)/node_modules/.ready

# Wheels only: an install runs no code of a package, and needs no compiler.
PIP_INSTALL := .venv/bin/python -m pip --disable-pip-version-check install -qq --require-hashes --only-binary :all:

LOCK := .venv-lock/bin/uv pip compile --quiet --no-config --universal --python-version 3.11 --only-binary :all: \
	--fork-strategy fewest --generate-hashes --no-emit-index-url --custom-compile-command 'make lock' $(ARGS)

.PHONY: help install run test test-all faults mutants fuzz bench load docs pictures lint lock clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' Makefile | while IFS='	' read -r name text; do printf 'make %-8s %s\n' "$$name" "$$text"; done

install: $(RUN_READY) ## set up .venv with what the service needs

run: $(RUN_READY) ## start the service; prints its address and the key (settings: SNAPLORE_... in the environment)
	@exec .venv/bin/gunicorn --env SHOW_API_KEY=1

test: $(DEV_READY) ## run the tests, some minutes of slow ones left out (ARGS="-k name" goes to pytest)
	@$(PYTEST) -m "not slow" $(ARGS)

test-all: $(DEV_READY) ## run all tests: also the slow ones, every power cut, and more examples of each property
	@FAULTS=all $(PYTEST) --hypothesis-profile=full $(ARGS)

faults: $(DEV_READY) ## cut the power at every write, which takes some minutes, and not at a few of them
	@FAULTS=all .venv/bin/python -m pytest -s tests/test_power_cut.py $(ARGS)

mutants: $(DEV_READY) ## plant COUNT=20 small mistakes in each of MODULES="search lexicon", and show which no test notices (SEED=1)
	@.venv/bin/python -m tests.mutants --seed $(SEED) --count $(COUNT) $(MODULES) $(ARGS)

fuzz: $(DEV_READY) ## attack a running service for SECONDS=300, by its contract, and the properties with more examples
	@.venv/bin/python -m pytest tests/test_fuzz.py --fuzz-seconds=$(SECONDS) $(ARGS)
	@.venv/bin/python -m pytest -m hypothesis --hypothesis-profile=fuzz $(ARGS)

bench: $(DEV_READY) ## measure against the budgets (SIZE=100000: photos in the database; ARGS for more)
	@.venv/bin/python -m benchmarks --size $(SIZE) $(ARGS)

load: $(DEV_READY) ## let phones, browsers, chats and jobs all come at once (MINUTES=3: for so long; ARGS for more)
	@.venv/bin/python -m benchmarks.load --minutes $(MINUTES) $(ARGS)

docs: $(DEV_READY) ## generate docs/api.md, docs/configuration.md and the layer table in ARCHITECTURE.md
	@.venv/bin/python -m docs.generate

pictures: $(DEV_READY) ## make the README's pictures of the dashboard again (needs Chromium)
	@.venv/bin/python -m tests.readme_pictures

lint: $(DEV_READY) $(if $(NPM),$(PAGE_READY)) ## check code and formatting (the page's scripts where npm is there)
	@.venv/bin/ruff check
	@.venv/bin/ruff format --check
ifeq ($(NPM),)
	@echo "Skipped: the page's scripts are checked only where npm is installed."
else
	@$(PAGE_LINT)/node_modules/.bin/tsc --project $(PAGE_LINT)
	@$(PAGE_LINT)/node_modules/.bin/eslint --config $(PAGE_LINT)/eslint.config.js web/templates/script $(PAGE_LINT)
	@echo "The page's scripts: all checks passed."
endif

lock: ## make the locks again from the .in files (ARGS=--upgrade: newest versions)
	$(need_python)
	@$(PYTHON) -m venv --clear .venv-lock
	@.venv-lock/bin/python -m pip --disable-pip-version-check install -qq $(UV)
	$(LOCK) requirements.in --output-file requirements.txt
	$(LOCK) requirements-dev.in --output-file requirements-dev.txt

clean: ## remove what make and the checks have made; never data
	rm -rf .venv .venv-lock .pytest_cache .ruff_cache .hypothesis $(PAGE_LINT)/node_modules
	find . -path ./data -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

# Always from nothing: pip takes a package for installed whose files an interrupted run has laid down in part, and it keeps
# packages that have left the lock.
$(RUN_READY): requirements.txt
	$(need_python)
	@echo "Installing into .venv (Python $(VERSION)) ..."
	@$(PYTHON) -m venv --clear .venv
	@$(PIP_INSTALL) -r requirements.txt
	@touch $@
	@echo "Installed."

# While packages are being laid down .venv counts as half made (its stamp is away), so an interrupted run is begun anew.
$(DEV_READY): requirements-dev.txt $(RUN_READY)
	@echo "Installing into .venv what tests and checks need ..."
	@mv $(RUN_READY) .venv/.half-made
	@$(PIP_INSTALL) -r requirements-dev.txt
	@mv .venv/.half-made $(RUN_READY)
	@touch $@
	@echo "Installed."

$(PAGE_READY): $(PAGE_LINT)/package-lock.json
	@echo "Installing into $(PAGE_LINT) what checks the page's scripts ..."
	@$(NPM) ci --prefix $(PAGE_LINT) --ignore-scripts --no-audit --no-fund --silent
	@touch $@
