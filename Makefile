# Two commands are the contract: `make demo` and `make test`. Each sets up what it needs in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEMO := $(VENV)/.demo
UV_VERSION := 0.13.8
UV := VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/uv pip

.PHONY: demo test lint types contracts check lock setup clean

setup: $(READY)

# The demo needs a tenth of what development does.
$(DEMO): pyproject.toml requirements-demo.lock | $(VENV)/.uv-$(UV_VERSION)
	@echo "Setting up $(VENV) for the demo ..."
	@$(UV) install --no-config --quiet --require-hashes --requirements requirements-demo.lock
	@$(UV) install --no-config --quiet --no-deps --editable .
	@touch $(DEMO)

$(READY): pyproject.toml requirements.lock | $(VENV)/.uv-$(UV_VERSION)
	@echo "Setting up $(VENV) ..."
	@$(UV) sync --quiet --require-hashes requirements.lock
	@$(UV) install --quiet --no-deps --editable .
	@touch $(READY)

$(VENV)/.uv-$(UV_VERSION):
	@$(PYTHON) -c 'import sys; sys.exit("Conspectus needs Python 3.11 or later; this is %d.%d. Try: make PYTHON=python3.11" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@touch $@

# One process a core; a test that fails is best looked at with $(BIN)/python -m pytest FILE.
# `make test` leaves out what takes more than a second, and tries few examples of each property;
# `make test-all` runs just that, and the properties with all their examples.
# Byte code is kept in .venv, whatever the environment says: many tests start processes of their own.
PYTEST := env -u PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX=$(CURDIR)/$(VENV)/byte-code \
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 8 --dist worksteal

test: $(READY)
	CONSPECTUS_PROFILE=$${CONSPECTUS_PROFILE:-fast} $(PYTEST) -m "not slow"

.PHONY: test-all
test-all: $(READY)
	$(PYTEST) -m "slow or hypothesis"

# What stands in agents, with the lowest and with the newest versions of LangChain, LangGraph and
# Deep Agents that pyproject.toml admits; all else is as in the lock. These move on by themselves.
MOVING := -e|conspectus|certifi|langchain|langgraph|deepagents
AGENTS := $(addprefix tests/test_,langchain_conformance.py middleware.py middleware_in_graphs.py guard.py \
	deep_agents.py preserved_history.py recall_tool.py summaries_in_streams.py short_term_agrees.py)
.PHONY: versions
versions: $(READY)
	@$(BIN)/uv pip freeze --python $(BIN)/python | grep -vE '^($(MOVING))' > $(VENV)/others.txt
	@for admitted in lowest-direct highest; do \
		made=$(CURDIR)/$(VENV)/$$admitted && $(BIN)/uv venv --quiet --clear --python $(BIN)/python $$made && \
		VIRTUAL_ENV=$$made $(BIN)/uv pip install --quiet --resolution $$admitted --group dev \
			--constraint $(VENV)/others.txt --editable '.[deepagents,openai,anthropic]' && \
		VIRTUAL_ENV=$$made $(BIN)/uv pip freeze | grep -E '^(langchain|langgraph|deepagents)==' && \
		CONSPECTUS_PROFILE=fast $$made/bin/python -m pytest -q --numprocesses auto --maxprocesses 8 \
			-p no:cacheprovider -m "not slow" $(AGENTS) || exit 1; \
	done

demo: $(DEMO)
	@$(BIN)/python examples/demo.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

contracts: $(READY)
	$(BIN)/lint-imports

# The site of docs/, into site/; a broken link, a page outside of `nav` or a bad docstring fails it.
.PHONY: docs
docs: $(READY)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

check: lint types contracts docs test test-all

# Resolve the dependencies; the locks name packages and hashes, never a host. `make lock UPGRADE=1` takes
# the newest version of each one that pyproject.toml admits.
COMPILE := $(UV) compile --quiet $(if $(UPGRADE),--upgrade) --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-emit-find-links --no-header pyproject.toml
lock: | $(VENV)/.uv-$(UV_VERSION)
	$(COMPILE) --all-extras --group dev --output-file requirements.lock
	$(COMPILE) --extra report --constraint requirements.lock --output-file requirements-demo.lock

# What LangChain's middleware does and ours does with the same call; `make test` checks the page.
.PHONY: conformance
conformance: $(READY)
	@PYTHONPATH=tests $(BIN)/python -m langchain_conformance.page

clean:
	rm -rf $(VENV) site demo-output .mypy_cache .ruff_cache .pytest_cache .hypothesis

# Speed beside LangChain's middleware and SQLite's FTS5: make bench [ONLY="loops steps"] [QUICK=1].
# What recorded sessions leave in view: make bench-views [WRITE=1], which writes docs/views.md.
# Archives, HTTP, kills, the endpoint, odd counters, a soak: make bench-faults [ONLY="stores soak"] [KILLS=1000]
# [MINUTES=1] [HISTORIES=500].
# Each fails where a value breaks its limit.
.PHONY: bench bench-views bench-faults
bench: $(READY)
	@$(BIN)/python -W ignore benchmarks/speed.py $(if $(ONLY),--only $(ONLY)) $(if $(QUICK),--quick)

bench-views: $(READY)
	@$(BIN)/python benchmarks/views.py $(if $(WRITE),--write)

bench-faults: $(READY)
	@$(BIN)/python benchmarks/faults.py $(if $(ONLY),--only $(ONLY)) $(if $(KILLS),--kills $(KILLS)) \
		$(if $(MINUTES),--minutes $(MINUTES)) $(if $(HISTORIES),--histories $(HISTORIES))

# Defects planted one at a time: PROMISE=3, NAME="some words" for some of them, WORKERS=4 at once
# rather than two.
.PHONY: mutants
mutants: $(READY)
	@PYTHONPATH=tests $(BIN)/python -m mutants $(if $(PROMISE),--promise "$(PROMISE)") \
		$(if $(NAME),--name "$(NAME)") $(if $(WORKERS),--workers $(WORKERS))
