# Every target makes the virtual environment it needs.

PYTHON ?= python3
VENV := .venv
VLLM_VENV := .venv-vllm
BIN := $(VENV)/bin
VLLM_BIN := $(VLLM_VENV)/bin
ROOMS := spec reference reference/row conformance conformance/miniatures optimized
OPTIMIZED := logitsproc.optimized
VLLM := vllm.v1.sample.logits_processor

export OMP_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help check test lint format check-vllm bench readme clean

help:
	@echo "make check       judge the bundled processors against the reference"
	@echo "make test        lint, types and tests"
	@echo "make check-vllm  install vLLM's CPU build and judge its own processors"
	@echo "make bench       benchmarks, and the figures of README.md"
	@echo "make readme      the output that README.md shows"

# A strict editable install links file by file, so a room that gains a file is installed again.
$(VENV)/installed: pyproject.toml constraints.txt $(ROOMS)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt torch setuptools
	$(BIN)/pip install --quiet --constraint constraints.txt --no-build-isolation \
		--config-settings editable_mode=strict --editable '.[dev]'
	touch $@

check: $(VENV)/installed
	$(BIN)/logitsproc check $(OPTIMIZED):MinPLogitsProcessor --as min_p
	$(BIN)/logitsproc check $(OPTIMIZED):LogitBiasLogitsProcessor --as logit_bias
	$(BIN)/logitsproc check $(OPTIMIZED):MinTokensLogitsProcessor --as min_tokens

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/pytest

format: $(VENV)/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/installed
	mkdir -p .benchmarks
	$(BIN)/pytest tests/benchmarks/bench_steps.py --benchmark-json=.benchmarks/latest.json
	$(BIN)/python tests/benchmarks/figures.py .benchmarks/latest.json README.md

readme: $(VENV)/installed
	$(BIN)/python tests/readme.py README.md

$(VLLM_VENV)/installed: .ci/vllm-requirements.txt pyproject.toml constraints.txt
	test -x $(VLLM_BIN)/python || $(PYTHON) -m venv $(VLLM_VENV)
	$(VLLM_BIN)/pip install --quiet --no-deps --requirement .ci/vllm-requirements.txt
	$(VLLM_BIN)/pip install --quiet --constraint constraints.txt --no-build-isolation --editable .
	touch $@

check-vllm: $(VLLM_VENV)/installed
	$(VLLM_BIN)/logitsproc check $(VLLM):MinPLogitsProcessor --as min_p
	$(VLLM_BIN)/logitsproc check $(VLLM):LogitBiasLogitsProcessor --as logit_bias
	$(VLLM_BIN)/logitsproc check $(VLLM):MinTokensLogitsProcessor --as min_tokens
	$(VLLM_BIN)/logitsproc check $(VLLM):MinPLogitsProcessor $(VLLM):LogitBiasLogitsProcessor $(VLLM):MinTokensLogitsProcessor
	$(VLLM_BIN)/python -m pytest tests/real_vllm

clean:
	rm -rf $(VENV) $(VLLM_VENV) build dist *.egg-info
