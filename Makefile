# make demo | test | test-all | docs | conformance | fuzz | lint | typecheck | bench
# Each target sets up its environment in .venv first. Choose another wheel of torch with
#   make TORCH=torch==2.12.0 PIP_FLAGS="--index-url ..." test

TORCH ?= torch==2.13.0
PIP_FLAGS ?=
PYTHON ?= $(shell for p in python3.11 python3.12 python3; do \
	$$p -c "import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))" 2>/dev/null \
	&& echo $$p && break; done)
WORKERS ?= 2
SHARD ?= 0/1
FRACTION ?= 1.0
FUZZ_SEED ?= 0
BACKEND ?= irc
RESULTS ?= out/conformance-$(BACKEND)-$(subst /,-,$(SHARD)).jsonl

VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.ready
export OMP_NUM_THREADS ?= 1

.PHONY: env demo test test-all conformance fuzz lint typecheck bench versions docs docs-conformance

env: $(READY)

# torch first: the wheel asked for stays, whatever the other packages would choose.
$(READY): pyproject.toml Makefile
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet $(PIP_FLAGS) "$(TORCH)"
	$(PY) -m pip install --quiet $(PIP_FLAGS) -e ".[tools,test,lint]"
	touch $(READY)

versions: $(READY)
	@$(PY) -m tests.versions

demo: $(READY)
	$(PY) -m bench.demo --out out/demo

lint: $(READY)
	$(VENV)/bin/ruff check irc tests bench examples docs

typecheck: $(READY)
	$(VENV)/bin/mypy

test: lint typecheck
	$(PY) -m pytest -m "not slow" -n $(WORKERS) --dist worksteal

test-all: lint typecheck
	$(PY) -m pytest -n $(WORKERS) --dist worksteal
	$(PY) -m tests.conformance.report

# The site, into out/site; a link that leads nowhere fails.
$(VENV)/.docs: $(READY)
	$(PY) -m pip install --quiet $(PIP_FLAGS) -e ".[docs]"
	touch $(VENV)/.docs

docs: $(VENV)/.docs
	$(PY) -m irc.tools.docs --check
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict

conformance: $(READY)
	mkdir -p out
	$(PY) -m tests.conformance.ops --backend $(BACKEND) --shard $(SHARD) \
		--fraction $(FRACTION) --resume $(RESULTS)

docs-conformance: $(READY)
	$(PY) -m pytest tests/conformance -k seed -n $(WORKERS)
	$(PY) -m tests.conformance.report

fuzz: $(READY)
	MALLOC_PERTURB_=165 HYPOTHESIS_PROFILE=fuzz FUZZ_SEED=$(FUZZ_SEED) SHARD=$(SHARD) \
		$(PY) -m pytest -m fuzz tests/fuzz -n $(WORKERS)

bench: $(READY)
	$(PY) -m bench.kernels
	$(PY) -m bench.models
	$(PY) -m bench.compile_time
	$(PY) -m bench.ir_speed
