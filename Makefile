# `make` lists the targets. Targets that need packages first set up .venv if it is missing, incomplete, older than the
# locks, or made by another Python. The only requirement is Python with its venv module.

# .venv keeps its Python for later calls: `make install PYTHON=python3.12`, then `make run`.
PYTHON ?= $(shell .venv/bin/python -c '' 2>/dev/null && echo .venv/bin/python || echo python3)
PYTHON := $(PYTHON)
VERSION := $(shell $(PYTHON) -c 'import sys; v = sys.version_info; print("%d.%d" % v[:2]) if v >= (3, 11) else sys.exit(1)' 2>/dev/null)

SIZE ?= 10000
SECONDS ?= 300
MINUTES ?= 3
MODULES ?= search terms cleanup context
COUNT ?= 20
AGAINST ?= main
KILLS ?= 1000
SEED ?= 1
ARCH ?= amd64
# More than the number of cores, because tests often wait for the processes that they have started; among the slow ones,
# which are killed in the middle and measured, fewer.
PROCESSES ?= $(shell expr 2 '*' $$(nproc) + 1)
PROCESSES_ALL ?= $(shell expr $$(nproc) + 1)
PYTEST := .venv/bin/python -m pytest --dist worksteal
# Bytecode is kept also where the environment says otherwise, as in many images: tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

# One line says what is missing, before anything is made.
define need_python
$(if $(VERSION),,$(error Snaplore needs Python 3.11 or newer and found none as "$(PYTHON)": name one, for example make $(MAKECMDGOALS) PYTHON=python3.12))
$(if $(shell $(PYTHON) -c 'import ensurepip, venv; print("there")' 2>/dev/null),,$(error $(PYTHON) has no venv module: install the \
package python$(VERSION)-venv (Debian, Ubuntu: sudo apt install python$(VERSION)-venv)))
endef

# The names contain the version of Python, because compiled packages work with no other.
RUN_READY := .venv/.ready-$(VERSION)
DEV_READY := .venv/.ready-dev-$(VERSION)

# The linters of the page's scripts, in the versions of their lock file.
NPM := $(shell command -v npm 2>/dev/null)
PAGE_LINT := tests/page-lint
PAGE_READY := $(PAGE_LINT)/node_modules/.ready

# The official clients of the Model Context Protocol: two releases of the Python SDK, and the npm packages.
MCP_CLIENTS := tests/mcp-clients
MCP_READY := $(MCP_CLIENTS)/.venv-handshake/.ready-$(VERSION) $(MCP_CLIENTS)/.venv-stateless/.ready-$(VERSION) \
	$(if $(NPM),$(MCP_CLIENTS)/node_modules/.ready)

# Wheels only: an install runs no code of a package, and needs no compiler.
PIP_OPTIONS := --disable-pip-version-check install -qq --require-hashes --only-binary :all:
PIP_INSTALL := .venv/bin/python -m pip $(PIP_OPTIONS)

LOCK := .venv/bin/uv pip compile --quiet --no-config --universal --python-version 3.11 --only-binary :all: \
	--fork-strategy fewest --generate-hashes --no-emit-index-url --custom-compile-command 'make lock' $(ARGS)

.PHONY: help install run client wheel deb site release-test test test-all test-anywhere faults kills mutants fuzz bench bench-pi compare judge train load docs pictures lint lock mcp-clients clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' Makefile | while IFS='	' read -r name text; do printf 'make %-8s %s\n' "$$name" "$$text"; done

install: $(RUN_READY) ## set up .venv with the packages of the service

run: $(RUN_READY) ## start the service; prints its address and key (settings: SNAPLORE_... in the environment)
	@exec ./snaplore serve

client: $(RUN_READY) ## make snaplore.pyz, the client in one file, for other machines with Python 3.11 or newer
	@.venv/bin/python -m terminal.bundle snaplore.pyz
	@echo "Made snaplore.pyz: copy it to another machine, and run \"python3 snaplore.pyz login http://...\" there."

wheel: $(DEV_READY) ## make dist/snaplore-...whl, for pipx and uv
	@.venv/bin/python -m hatchling build -t wheel

deb: $(DEV_READY) ## make dist/snaplore_..._amd64.deb (ARCH=arm64 for a Raspberry Pi), with all that it needs (280 MB)
	@.venv/bin/python -m release.deb dist --arch $(ARCH) $(ARGS)

site: release/.venv-site/.ready-$(VERSION) ## make a site of the documents in dist/site, with a search and without network
	@release/.venv-site/bin/python -m release.pages dist/site
	@echo "Made dist/site: open dist/site/index.html."

release-test: $(DEV_READY) ## test what is released: the wheel, the documents' commands, and as root the Debian package in fresh Debians and the image (an hour)
	@release/test-all

test: $(DEV_READY) ## run the tests except the slow ones (ARGS="-k name" goes to pytest)
	@$(PYTEST) -n $(PROCESSES) -m "not slow" $(ARGS)

test-all: $(DEV_READY) ## run all tests: also slow ones, 60 simulated power cuts of each kind, and more examples of each property
	@FAULTS=60 $(PYTEST) -n $(PROCESSES_ALL) --hypothesis-profile=full $(ARGS)

test-anywhere: $(DEV_READY) ## run the quick tests on other days, in other zones, in Chinese, and with other fonts (an hour; x86-64 Linux)
	@.venv/bin/python -m tests.anywhere -n $(PROCESSES_ALL) --dist worksteal $(ARGS)

mcp-clients: $(MCP_READY) ## install the official MCP clients (270 MB), without which their tests are skipped

faults: $(DEV_READY) ## simulate a power cut at every write (minutes; `make test` samples)
	@FAULTS=all .venv/bin/python -m pytest -s tests/test_power_cut.py $(ARGS)

kills: $(DEV_READY) ## kill backups into a bucket and moves of originals KILLS=1000 times, and rotations as often (an hour; `make test-all`: 36)
	@KILLS=$(KILLS) $(PYTEST) -n $(PROCESSES_ALL) -rP tests/test_bucket_kills.py tests/test_rotation_kills.py $(ARGS)

mutants: $(DEV_READY) ## plant COUNT=20 mistakes in each of MODULES="search lexicon", and show those that no test notices (SEED=1)
	@.venv/bin/python -m tests.mutants --seed $(SEED) --count $(COUNT) $(MODULES) $(ARGS)

fuzz: $(DEV_READY) ## attack a running service with requests, slow clients and a hostile model for SECONDS=300; test properties with more examples
	@.venv/bin/python -m pytest -rP tests/test_fuzz.py --fuzz-seconds=$(SECONDS) $(ARGS)
	@.venv/bin/python -m pytest -rP tests/test_mcp_server.py -k thousands --fuzz-bodies=100000 $(ARGS)
	@.venv/bin/python -m pytest -m hypothesis --hypothesis-profile=fuzz $(ARGS)

bench: $(DEV_READY) ## measure speed and memory against budgets (SIZE=100000: photos in the database; ARGS for more)
	@.venv/bin/python -m benchmarks --size $(SIZE) $(ARGS)

bench-pi: $(DEV_READY) ## measure a few made-up screens on this machine, and print a small table to send (a Raspberry Pi, for example)
	@.venv/bin/python -m benchmarks.pi

compare: $(DEV_READY) ## measure this working tree against AGAINST=main, an earlier commit, by turns (SIZE=10000; ARGS for more)
	@.venv/bin/python -m benchmarks.compare $(AGAINST) --size $(SIZE) $(ARGS)

judge: $(DEV_READY) ## judge what the embedded analyser understands, on made-up screens and on CORPUS=folder (ARGS for more)
	@.venv/bin/python -m benchmarks.judge $(ARGS)

train: $(DEV_READY) ## learn the weights of the votes from the labelled screenshots in CORPUS=folder:folder (ARGS for more)
	@.venv/bin/python -m benchmarks.train $(ARGS)

load: $(DEV_READY) ## run phones, browsers, chats and jobs all at once (MINUTES=3; ARGS for more)
	@.venv/bin/python -m benchmarks.load --minutes $(MINUTES) $(ARGS)

docs: $(DEV_READY) ## generate docs/api.md, docs/configuration.md and the table of storeys in ARCHITECTURE.md
	@.venv/bin/python -m docs.generate

pictures: $(DEV_READY) ## make the README's pictures of the dashboard (needs Chromium)
	@.venv/bin/python -m tests.readme_pictures

lint: $(DEV_READY) $(if $(NPM),$(PAGE_READY)) ## check code and formatting (the page's scripts where npm is there)
	@.venv/bin/ruff check
	@.venv/bin/ruff format --check
	@.venv/bin/mypy
ifeq ($(NPM),)
	@echo "Skipped: the page's scripts are checked only where npm is installed."
else
	@$(PAGE_LINT)/node_modules/.bin/tsc --project $(PAGE_LINT)
	@$(PAGE_LINT)/node_modules/.bin/eslint --config $(PAGE_LINT)/eslint.config.js web/templates/script $(PAGE_LINT)
	@echo "The page's scripts: all checks passed."
endif

lock: $(DEV_READY) ## make the locks again from the .in files (ARGS=--upgrade: newest versions)
	$(LOCK) requirements.in --output-file requirements.txt
	$(LOCK) requirements-dev.in --output-file requirements-dev.txt
	$(LOCK) release/site/requirements.in --output-file release/site/requirements.txt
	$(LOCK) $(MCP_CLIENTS)/requirements-handshake.in --output-file $(MCP_CLIENTS)/requirements-handshake.txt
	$(LOCK) $(MCP_CLIENTS)/requirements-stateless.in --output-file $(MCP_CLIENTS)/requirements-stateless.txt

clean: ## remove what make and the checks have made; never data
	rm -rf .venv dist release/.wheels release/.venv-site .pytest_cache .ruff_cache .hypothesis snaplore.pyz $(PAGE_LINT)/node_modules tests/client-makers/node_modules
	rm -rf $(MCP_CLIENTS)/node_modules $(MCP_CLIENTS)/.venv-*
	find . -path ./data -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

# Always from scratch: pip would take a package that an interrupted run has installed in part for complete, and would
# keep packages that are no longer in the lock file.
$(RUN_READY): requirements.txt
	$(need_python)
	@echo "Installing into .venv (Python $(VERSION)) ..."
	@$(PYTHON) -m venv --clear .venv
	@$(PIP_INSTALL) -r requirements.txt
	@.venv/bin/python -m pip --disable-pip-version-check uninstall -qq -y setuptools 2>/dev/null
	@touch $@
	@echo "Installed."

# During the installation .venv counts as incomplete, because its stamp is renamed. So an interrupted run starts again.
$(DEV_READY): requirements-dev.txt $(RUN_READY)
	@echo "Installing the packages of tests and checks into .venv ..."
	@mv $(RUN_READY) .venv/.incomplete
	@$(PIP_INSTALL) -r requirements-dev.txt
	@mv .venv/.incomplete $(RUN_READY)
	@touch $@
	@echo "Installed."

$(PAGE_READY): $(PAGE_LINT)/package-lock.json
	@echo "Installing the linters of the page's scripts into $(PAGE_LINT) ..."
	@$(NPM) ci --prefix $(PAGE_LINT) --ignore-scripts --no-audit --no-fund --silent
	@touch $@

$(MCP_CLIENTS)/.venv-%/.ready-$(VERSION): $(MCP_CLIENTS)/requirements-%.txt
	$(need_python)
	@echo "Installing the MCP client $* ..."
	@$(PYTHON) -m venv --clear $(@D)
	@$(@D)/bin/python -m pip $(PIP_OPTIONS) -r $<
	@touch $@

release/.venv-site/.ready-$(VERSION): release/site/requirements.txt
	$(need_python)
	@echo "Installing what makes the site ..."
	@$(PYTHON) -m venv --clear $(@D)
	@$(@D)/bin/python -m pip $(PIP_OPTIONS) -r $<
	@touch $@

$(MCP_CLIENTS)/node_modules/.ready: $(MCP_CLIENTS)/package-lock.json
	@echo "Installing the MCP clients of npm ..."
	@$(NPM) ci --prefix $(MCP_CLIENTS) --ignore-scripts --no-audit --no-fund --silent
	@touch $@
