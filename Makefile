# Every target makes the virtual environment it needs.

PYTHON ?= python3
VENV := .venv
VLLM_VENV := .venv-vllm
BIN := $(VENV)/bin
VLLM_BIN := $(VLLM_VENV)/bin
ROOMS := spec reference reference/row conformance conformance/kinds conformance/miniatures conformance/mutants conformance/producers optimized optimized/gpu tests/proofs
OPTIMIZED := logitsproc.optimized
PRODUCERS := logitsproc.conformance.producers
SEEDS ?= 100
VLLM := vllm.v1.sample.logits_processor

export OMP_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help check test check-gpu judge-gpu device prove verdicts proofs-again lint format check-vllm vllm-table worth check-engine engine-table bench bench-fast bench-vllm usage record upstream check-gates site check-site tutorial field mutants mutants-again mutants-generic alarms readme clean

help:
	@echo "make check         judge the bundled processors and the reference producer"
	@echo "make test          lint, types and tests"
	@echo "make check-gpu     the GPU's kernels without a GPU: interpreted under the suite, and compiled"
	@echo "make judge-gpu     every class of the GPU backend interpreted, with all histories of the quick tier: hours"
	@echo "make device        on a machine with a GPU, in minutes: checks, the suite, races, and the table of figures"
	@echo "make prove         prove the lemmas and check small scopes, and compare with what the spec says of it"
	@echo "make verdicts      the same, and write it: tests/proofs/verdicts.json, the spec and README.md"
	@echo "make proofs-again  a second solver, mutants of the code under proof, CrossHair"
	@echo "make check-vllm    install vLLM's CPU build and judge its processors and its sampler"
	@echo "make vllm-table    the same, and the table of README.md"
	@echo "make worth         the fast processors in vLLM beside its own stages: the table of optimized/README.md"
	@echo "make check-engine  a real vLLM engine, judged at every step while it runs (make engine-table: its table)"
	@echo "make bench         benchmarks, and the figures of README.md and of tests/benchmarks/ (make bench-fast: the fast path)"
	@echo "make bench-vllm    the fast path beside vLLM V1's own code, under two allocators, and the figures of it"
	@echo "make usage         the table of what recordings and generated histories reach, in tests/recordings/README.md"
	@echo "make record        the tables of public faults, in spec/track-record.md"
	@echo "make field         install public processors from PyPI and judge them, in ten minutes: tests/field/field.json, spec/field.md"
	@echo "make upstream      pins of the vLLM source that the clauses rest on: spec/upstream.json, and README.md on drift"
	@echo "make check-gates   the action and the pre-commit hook, each installed as others have it: minutes"
	@echo "make site          the spec as a site, build/site (make check-site: built, and looked at in Chromium)"
	@echo "make tutorial      the output that spec/writing-a-processor.md shows"
	@echo "make mutants       every mutant with SEEDS seeds (100), which takes hours: tests/mutants/kills.json, and its tables"
	@echo "make mutants-again every mutant that dies with its first seed again, and whether the record says so"
	@echo "make mutants-generic  generic mutants of what has changed in reference/ and in optimized/'s bookkeeping: tests/mutants/generic.json"
	@echo "make alarms        everything that is right for 1,000 seeds, on two cores: tests/mutants/alarms.json"
	@echo "make readme        the output that README.md shows"

# A strict editable install links file by file, so a room that gains a file is installed again.
$(VENV)/installed: pyproject.toml constraints.txt $(ROOMS)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt torch setuptools
	$(BIN)/pip install --quiet --constraint constraints.txt --no-build-isolation \
		--config-settings editable_mode=strict --editable '.[dev]'
	touch $@

check: $(VENV)/installed
	$(BIN)/logitsproc check $(OPTIMIZED):AllowedTokenIdsLogitsProcessor --as allowed_token_ids
	$(BIN)/logitsproc check $(OPTIMIZED):BadWordsLogitsProcessor --as bad_words
	$(BIN)/logitsproc check $(OPTIMIZED):MinTokensLogitsProcessor --as min_tokens
	$(BIN)/logitsproc check $(OPTIMIZED):LogitBiasLogitsProcessor --as logit_bias
	$(BIN)/logitsproc check $(OPTIMIZED):RepetitionPenaltyLogitsProcessor --as repetition_penalty
	$(BIN)/logitsproc check $(OPTIMIZED):FrequencyPenaltyLogitsProcessor --as frequency_penalty
	$(BIN)/logitsproc check $(OPTIMIZED):PresencePenaltyLogitsProcessor --as presence_penalty
	$(BIN)/logitsproc check $(OPTIMIZED):TemperatureLogitsProcessor --as temperature
	$(BIN)/logitsproc check $(OPTIMIZED):MinPLogitsProcessor --as min_p
	$(BIN)/logitsproc check $(OPTIMIZED):TopKLogitsProcessor --as top_k
	$(BIN)/logitsproc check $(OPTIMIZED):TopPLogitsProcessor --as top_p
	$(BIN)/logitsproc check $(OPTIMIZED):Pipeline --as pipeline
	$(BIN)/logitsproc check $(OPTIMIZED):AdapterLogitsProcessor --as adapter
	$(BIN)/logitsproc check --producer $(PRODUCERS).reference:Elided $(PRODUCERS).reference:Explicit

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/pytest --numprocesses 2 --dist worksteal

check-gpu: $(VENV)/installed
	$(BIN)/pytest tests/device --numprocesses 2 --dist worksteal

judge-gpu: $(VENV)/installed
	$(BIN)/python tests/device/judge.py

device:
	$(PYTHON) tests/device/run.py

prove: $(VENV)/installed
	mkdir -p .proofs
	$(BIN)/logitsproc prove --json .proofs/latest.json
	$(BIN)/python tests/verdicts.py .proofs/latest.json

verdicts: $(VENV)/installed
	mkdir -p .proofs
	$(BIN)/logitsproc prove --json .proofs/latest.json
	$(BIN)/python tests/verdicts.py .proofs/latest.json --write

proofs-again: $(VENV)/installed
	$(BIN)/python -m logitsproc.proofs.second
	$(BIN)/python -m logitsproc.proofs.confirmed
	$(BIN)/python -m logitsproc.proofs.one_update
	$(BIN)/python tests/mutants/proved.py

format: $(VENV)/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: bench-fast
	$(BIN)/pytest tests/benchmarks/bench_steps.py --benchmark-json=.benchmarks/latest.json
	$(BIN)/python tests/benchmarks/figures.py .benchmarks/latest.json README.md

bench-fast: $(VENV)/installed
	mkdir -p .benchmarks
	$(BIN)/pytest tests/benchmarks/bench_fast_path.py --benchmark-json=.benchmarks/fast.json
	$(BIN)/python tests/benchmarks/fast_figures.py .benchmarks/fast.json tests/benchmarks/README.md

KEEPS_PAGES := MALLOC_MMAP_THRESHOLD_=4294967296 MALLOC_TRIM_THRESHOLD_=4294967296

bench-vllm: $(VENV)/installed $(VLLM_VENV)/installed
	mkdir -p .benchmarks
	$(VLLM_BIN)/pip install --quiet --no-deps --constraint constraints.txt pytest-benchmark py-cpuinfo
	$(VLLM_BIN)/python -m pytest tests/benchmarks/bench_beside_v1.py --benchmark-json=.benchmarks/v1-stock.json
	$(KEEPS_PAGES) $(VLLM_BIN)/python -m pytest tests/benchmarks/bench_beside_v1.py --benchmark-json=.benchmarks/v1-kept.json
	$(BIN)/python tests/benchmarks/v1_figures.py .benchmarks/v1-stock.json .benchmarks/v1-kept.json \
		tests/benchmarks/README.md README.md

readme: $(VENV)/installed
	$(BIN)/python tests/readme.py README.md

mutants: $(VENV)/installed
	$(BIN)/logitsproc mutants --seeds $(SEEDS) --jobs 2 --json tests/mutants/kills.json --picture tests/mutants/kills.svg
	$(BIN)/python tests/mutants/page.py README.md

mutants-again: $(VENV)/installed
	$(BIN)/python tests/mutants/again.py

mutants-generic: $(VENV)/installed
	$(BIN)/python tests/mutants/generic.py
	$(BIN)/python tests/mutants/page.py README.md

alarms: $(VENV)/installed
	$(BIN)/python tests/alarms.py
	$(BIN)/python tests/mutants/page.py README.md

usage: $(VENV)/installed
	$(BIN)/python tests/usage.py tests/recordings/README.md

record: $(VENV)/installed
	$(BIN)/python tests/track_record.py spec/track-record.md

field: $(VLLM_VENV)/installed
	$(VLLM_BIN)/python tests/field/table.py spec/field.md

upstream: $(VLLM_VENV)/installed
	$(VLLM_BIN)/python tests/upstream.py spec/upstream.json README.md

check-gates: $(VENV)/installed
	$(BIN)/pytest tests/gates_live

site: $(VENV)/installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

check-site: site
	.ci/chromium
	$(BIN)/pytest tests/site

tutorial: $(VENV)/installed
	$(BIN)/python tests/tutorial.py spec/writing-a-processor.md

$(VLLM_VENV)/installed: .ci/vllm-requirements.txt pyproject.toml constraints.txt
	test -x $(VLLM_BIN)/python || $(PYTHON) -m venv $(VLLM_VENV)
	$(VLLM_BIN)/pip install --quiet --no-deps --requirement .ci/vllm-requirements.txt
	$(VLLM_BIN)/pip install --quiet --constraint constraints.txt --no-build-isolation --editable . pytest-xdist
	touch $@

check-vllm: $(VLLM_VENV)/installed
	$(VLLM_BIN)/logitsproc check $(VLLM):MinPLogitsProcessor $(VLLM):LogitBiasLogitsProcessor $(VLLM):MinTokensLogitsProcessor
	$(VLLM_BIN)/python tests/real_vllm/table.py README.md
	$(VLLM_BIN)/python -m pytest tests/real_vllm --numprocesses 2 --dist worksteal

vllm-table: $(VLLM_VENV)/installed
	$(VLLM_BIN)/python tests/real_vllm/table.py README.md --write

worth: $(VLLM_VENV)/installed
	$(VLLM_BIN)/python tests/real_vllm/worth.py optimized/README.md

check-engine: $(VLLM_VENV)/installed
	$(VLLM_BIN)/python tests/engine/table.py README.md

engine-table: $(VLLM_VENV)/installed
	$(VLLM_BIN)/python tests/engine/table.py README.md --write

clean:
	rm -rf $(VENV) $(VLLM_VENV) .field build dist *.egg-info
