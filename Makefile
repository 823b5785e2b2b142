# Everything runs in a virtual environment of the project's own, made on first use.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# torch is pinned before the project is installed: a range would let pip choose a CUDA build.
TORCH ?= torch==2.13.0
# Processes of the tests; many tests wait for a server, so one more than there are cores pays.
WORKERS ?= auto
# A spinning OpenMP pool slows every engine step 20 to 100 times as soon as anything else runs.
export GOMP_SPINCOUNT := 0

.PHONY: conform test lint protos buf realservers clean

conform: $(VENV)/engine
	$(BIN)/oe-conform run --budget quick

test: $(VENV)/dev
	$(BIN)/python -m pytest -n $(WORKERS)

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/protos.py --check
	$(BIN)/python tools/runtimes_table.py --check

protos: $(VENV)/dev
	$(BIN)/python tools/protos.py

# Needs Node.js; the version of buf is pinned by package-lock.json.
buf:
	npm ci --ignore-scripts --no-audit --no-fund
	npx --no-install buf lint
	npx --no-install buf breaking --against proto/image.binpb

$(VENV)/engine: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet '$(TORCH)'
	$(BIN)/python -m pip install --quiet --editable '.[engine]'
	touch $@

$(VENV)/dev: $(VENV)/engine
	$(BIN)/python -m pip install --quiet --group dev
	touch $@

# Judges servers of other projects that are too large for every run; each in an environment of its own.
realservers: $(VENV)/dev
	$(PYTHON) -m venv $(VENV)-mlx
	$(VENV)-mlx/bin/python -m pip install --quiet 'mlx-lm==0.31.3' 'mlx[cpu]==0.31.2'
	REALSERVERS_PYTHON=$(VENV)-mlx/bin/python $(BIN)/python -m pytest tests/http/real/test_mlx_lm.py
	$(PYTHON) -m venv $(VENV)-transformers
	$(VENV)-transformers/bin/python -m pip install --quiet '$(TORCH)' 'transformers[serving]==5.24.0'
	REALSERVERS_PYTHON=$(VENV)-transformers/bin/python $(BIN)/python -m pytest tests/http/real/test_transformers_serve.py

clean:
	rm -rf $(VENV) build dist node_modules
