# Every target prints what it does, can be repeated, and needs only Python ≥ 3.11 and make.
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
SHELL := /bin/bash
INSTALL := PYTHON=$(PYTHON) bash locks/pip_install.sh
# Without cached bytecode every pytest worker rewrites all tests again, and every process that they start compiles servetop.
unexport PYTHONDONTWRITEBYTECODE
# Python reads these before the tests can remove them: other modules, no assertions, other errors.
unexport PYTHONHOME PYTHONPATH PYTHONOPTIMIZE PYTHONWARNINGS

.PHONY: help demo audit-clients test test-slow slow-tests test-hostile test-lowest test-newest check format integration integration-all gpu-check chaos chaos-quick soak validate judge judge-watch judge-statements judge-rates judge-compare judge-cache judge-price judge-search judge-search-kills judge-search-noise judge-search-curves judge-search-aiperf judge-search-vllm judge-reconcile judge-wild lock audit sbom bench bench-client bench-compare bench-export bench-exporter bench-memory bench-report bench-tui bench-watch bench-watch-cost bench-watch-days bench-watch-vllm sample picture options evidence schema site clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

ifdef CI # exactly the locked versions and files
.venv/.product: pyproject.toml locks/ci.txt
	@echo "servetop: creating .venv from locks/ci.txt (two minutes the first time)"
	@$(INSTALL) .venv --no-deps --require-hashes -r locks/ci.txt
	@$(INSTALL) .venv --no-deps --no-build-isolation --editable . && .venv/bin/pip check && touch $@

.venv/.installed: .venv/.product
	@touch $@
else
.venv/.product: pyproject.toml
	@echo "servetop: installing servetop (less than a minute, 29 MB, the first time)"
	@$(INSTALL) .venv --editable . && touch $@

.venv/.installed: .venv/.product
	@echo "servetop: installing test and lint dependencies (two minutes the first time)"
	@$(INSTALL) .venv --editable '.[dev]' && touch $@
endif

.venv-audit/.installed: locks/audit.txt
	@echo "servetop: installing the tools that lock and audit (a minute the first time)"
	@$(INSTALL) .venv-audit --no-deps --require-hashes -r $< && .venv-audit/bin/pip check && touch $@

demo: .venv/.product  ## watch the simulator being overloaded until it preempts, and recovering (two minutes)
	@echo "servetop: opening the dashboard on the simulator (q quits, ? shows help)"
	$(BIN)/servetop --label demo --ramp '4:15s,4-16:40s,16:12s,4:38s' --goodput ttft:500 -- --kv-blocks 500

test: .venv/.installed  ## run the unit tests, except those that take long
	@echo "servetop: running the quick unit tests (3 minutes on two cores); make test-slow runs the others"
	$(BIN)/python -m pytest -q -n 3 --dist worksteal --quick

test-slow: .venv/.installed  ## run the other unit tests, those of tests/slow_tests.txt (10 minutes)
	@echo "servetop: running the slow unit tests (10 minutes on two cores)"
	$(BIN)/python -m pytest -q -n 4 --dist worksteal --slow

slow-tests: .venv/.installed  ## measure all unit tests, and write those that take half a second or more to tests/slow_tests.txt
	$(BIN)/python -m pytest -q -n 3 --dist worksteal --write-slow-tests

test-hostile: .venv/.installed  ## run tests where every variable that servetop reads has an odd value (TESTS: pytest arguments)
	@echo "servetop: running tests with odd environment variables"
	$(BIN)/python -m tests.hostile_environment -q -n 2 --dist worksteal $(TESTS)

test-lowest:  ## run the unit tests with the lowest versions that pyproject.toml allows (TESTS: pytest arguments)
	bash tests/bounds/run.sh lowest $(TESTS)

test-newest:  ## run the unit tests with the newest versions that it allows
	bash tests/bounds/run.sh newest $(TESTS)

check: .venv/.installed  ## check formatting, lint, types and import rules
	$(BIN)/ruff format --check . && $(BIN)/ruff check .
	$(BIN)/mypy && $(BIN)/vulture
	$(BIN)/lint-imports

format: .venv/.installed  ## format the code and apply the fixes of ruff
	$(BIN)/ruff format . && $(BIN)/ruff check --fix .

# Real engines need both cores, and their tests measure: one after the other, after all others.
ONE_BY_ONE = $(wildcard tests/integration/test_real_*.py) tests/integration/test_containers.py

integration: .venv/.installed  ## test the whole command with real vLLM, llama.cpp, Triton, podman, Prometheus and a browser (installs them once, 15 minutes)
	bash tests/integration/install.sh && bash tests/integration/install_browser.sh && bash tests/integration/install_prometheus.sh
	$(BIN)/python -m pytest -q -rs -n 4 --dist worksteal -m integration tests/integration tests/cli tests/tui tests/engines $(addprefix --ignore=,$(ONE_BY_ONE))
	$(BIN)/python -m pytest -q -rs --durations 12 -m integration $(ONE_BY_ONE)

integration-all:  ## the same with transformers serve, Ray Serve LLM and the loaders of AIPerf and guidellm (6 more minutes to install, 3 to run)
	SERVETOP_INTEGRATION=all $(MAKE) integration

gpu-check: .venv/.installed  ## test llama-2-7b with random weights on vLLM and an NVIDIA GPU (needs both; 8 minutes)
	$(BIN)/python -m pytest -q -rs -s -m gpu tests/gpu

chaos: .venv/.installed  ## inject faults and write docs/reliability.md (an hour)
	$(BIN)/python -m tests.chaos --report docs/reliability.md

chaos-quick: .venv/.installed  ## inject a fixed selection of faults (5 minutes)
	$(BIN)/python -m tests.chaos --quick --seed 10 --minutes 6

soak: .venv/.installed  ## run an hour at 200 requests/s, check that no process grows, and write docs/reliability.md
	$(BIN)/python -m tests.chaos.soak --report docs/reliability.md

validate: .venv/.product  ## compare the simulator with the published tables
	$(BIN)/servetop validate

judge: .venv/.installed  ## judge simulated runs with known causes and rates, and write docs/judgement.md (15 minutes; SEEDS: other draws)
	$(BIN)/python -m tests.judgement --judge --seed $(or $(SEEDS),11 12 13) $(if $(SEEDS),,--report docs/judgement.md)

judge-watch: .venv/.installed  ## judge the same runs as a watch of their servers sees them, and write docs/judgement.md (9 minutes; SEEDS: other draws)
	$(BIN)/python -m tests.judgement.judge_watch --seed $(or $(SEEDS),401 402 403) $(if $(SEEDS),,--report docs/judgement.md)

judge-statements: .venv/.installed  ## check every sentence about 1,000 simulated runs, observed in 9 ways, and write docs/judgement.md (25 minutes; SEEDS: other draws)
	$(BIN)/python -m tests.judgement.judge_statements --seed $(or $(SEEDS),93 94 95 96 97 98) $(if $(SEEDS),,--report docs/judgement.md)

judge-rates: .venv/.installed  ## measure the errors of estimated rates, and write the factors of their intervals (5 minutes; FRESH=1: the true rates again, 20 minutes)
	$(BIN)/python -m tests.judgement.rate_errors --write docs/judgement.md $(if $(FRESH),--fresh)

judge-compare: .venv/.installed  ## compare simulated runs whose difference is known, and write docs/explanation/ (hours; SEEDS: another draw)
	$(BIN)/python -m tests.comparisons --seed $(or $(SEEDS),11) $(if $(SEEDS),,--report docs/explanation/comparison.md)
	$(BIN)/python -m tests.judgement.contaminations --seed $(or $(SEEDS),11) $(if $(SEEDS),,--report docs/explanation/confounders.md)

judge-cache: .venv/.installed  ## judge asked hit rates and planted prefix caches, and write docs/how-to/prefix-cache.md (2 minutes)
	$(BIN)/python -m tests.judgement.cache_honesty --report docs/how-to/prefix-cache.md

judge-price: .venv/.installed  ## judge the intervals of costs on simulated runs, and write docs/how-to/price.md (4 minutes; SEED: another draw)
	$(BIN)/python -m tests.judgement.cost_intervals --seed $(or $(SEED),11) $(if $(SEED),,--report docs/how-to/price.md)

judge-search: .venv/.installed  ## judge searches of simulated servers with known largest loads, and write docs/how-to/search.md (12 minutes; SEEDS: other arrivals)
	$(BIN)/python -m tests.judgement.judge_search $(if $(SEEDS),--seeds $(SEEDS),--report docs/how-to/search.md)

judge-search-kills: .venv/.installed  ## kill searches at 120 drawn moments and resume them, and write docs/how-to/search.md (4 minutes; SEED: other arrivals and moments)
	$(BIN)/python -m tests.judgement.judge_search_kills $(if $(SEED),--seed $(SEED),--report docs/how-to/search.md)

judge-search-noise: .venv/.installed  ## judge searches of simulated servers whose speed varies, and write docs/how-to/search.md (12 minutes; SEEDS: other arrivals)
	$(BIN)/python -m tests.judgement.judge_search_noise $(if $(SEEDS),--seeds $(SEEDS),--report docs/how-to/search.md)

judge-search-curves: .venv/.installed  ## judge searches of 60 synthetic curves, and write docs/how-to/search.md (4 minutes; SEED: other requests)
	$(BIN)/python -m tests.judgement.judge_search_curves $(if $(SEED),--seed $(SEED),--report docs/how-to/search.md)

judge-search-aiperf: .venv/.installed  ## compare searches with those of AIPerf 0.13, and write docs/how-to/search.md (8 minutes; AIPERF: the Python of its environment; SEED: other requests)
	$(BIN)/python -m tests.judgement.judge_search_aiperf --aiperf $(or $(AIPERF),python) $(if $(SEED),--seed $(SEED),--report docs/how-to/search.md)

judge-search-vllm: .venv/.installed  ## repeat searches of a real vLLM on the CPU, and write docs/how-to/search.md (an hour, with nothing else on the machine)
	bash tests/integration/install_vllm.sh
	$(BIN)/python -m tests.judgement.judge_search_vllm --report docs/how-to/search.md

judge-reconcile: .venv/.installed  ## reconcile servetop and other load generators at one simulator, and write docs/how-to/reconcile.md (15 minutes; installs them once)
	$(BIN)/python -m tests.judgement.judge_reconcile --report docs/how-to/reconcile.md

judge-wild: .venv/.installed  ## compare how other clients read tests/corpus, and write docs/reference/compatibility.md (3 minutes)
	$(BIN)/python -m tests.corpus.peers --report docs/reference/compatibility.md

audit-clients: .venv/.installed  ## audit servetop and other load generators with two loads, and write docs/how-to/audit.md (25 minutes, on an idle machine; installs them once)
	$(BIN)/python -m tests.judgement.audit_clients $(if $(CLIENT),--client $(CLIENT),--report docs/how-to/audit.md)

bench: .venv/.installed  ## measure performance and write docs/performance.md
	$(BIN)/python bench/run.py

bench-client: .venv/.installed  ## compare with other load generators, profile the sender, find its limits (45 minutes; needs gcc)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(BIN)/python bench/run.py --only duel.py --only beside.py --only steps.py --only limits.py

bench-compare: .venv/.installed  ## measure the comparison of two recordings of 1,000,000 requests (3 minutes)
	$(BIN)/python bench/run.py --only compare.py

bench-exporter: .venv/.installed  ## measure the processor time that --prometheus-port takes in a run and in a watch (6 minutes)
	PYTHONPATH=. $(BIN)/python bench/exporter.py

bench-watch: .venv/.installed  ## measure CPU and memory of a watch of 50 servers (a minute)
	PYTHONPATH=. $(BIN)/python bench/watch.py

bench-watch-cost: .venv/.installed  ## measure what a watch costs the server it watches, and what --on-episode costs the watch (20 minutes)
	PYTHONPATH=. $(BIN)/python bench/watch_cost.py
	PYTHONPATH=. $(BIN)/python bench/watch_hook.py

bench-watch-vllm: .venv/.installed  ## watch a real vLLM under vLLM's own client: do all count the same? (MINUTES: 10)
	PYTHONPATH=. $(BIN)/python bench/watch_vllm.py --minutes $(or $(MINUTES),10)

bench-watch-days: .venv/.installed  ## measure the recording of a watch of 24 hours in virtual time: size, memory, opening (10 minutes; HOURS: 168 are a week)
	PYTHONPATH=. $(BIN)/python bench/watch_days.py $(if $(HOURS),--hours $(HOURS))

bench-export: .venv/.installed  ## measure the export of a recording of 1,000,000 requests to Parquet and as a trace (5 minutes; needs pyarrow)
	$(BIN)/python bench/export.py

bench-memory: .venv/.installed  ## measure the memory of reading a recording of 5,000,000 requests (20 minutes, 1 GB in the temporary folder)
	$(BIN)/python bench/run.py --only memory.py

bench-report: .venv/.installed  ## measure the pages of recordings of 100,000 and 1,000,000 requests (5 minutes)
	PYTHONPATH=. $(BIN)/python bench/report.py

bench-tui: .venv/.installed  ## measure the dashboard: frames, CPU, judging, an hour with 1,000,000 requests (8 minutes)
	$(BIN)/python bench/run.py --only tui.py --only tui_hour.py

sample: .venv/.product  ## record the shipped recording again (two minutes on an idle machine)
	bash tests/golden/record_sample.sh

picture: .venv/.installed  ## draw docs/dashboard.svg and its animation from the shipped recording
	$(BIN)/python -m tests.tui.picture docs/dashboard.svg

options: .venv/.product  ## write docs/reference/options.md and the man page from the declared options
	$(BIN)/python -m servetop.cli.option_reference docs/reference/options.md
	$(BIN)/python -m servetop.cli.man_page docs/servetop.1

evidence: .venv/.product  ## write docs/reference/evidence.md from the statements of the verdict and what they need
	$(BIN)/python -m tests.docs.evidence_page docs/reference/evidence.md

schema: .venv/.product  ## write docs/schema/*.json, docs/reference/exported-tables.md and prometheus.md from the types and declarations
	$(BIN)/python -m servetop.reports.export.exported_tables docs/reference/exported-tables.md
	$(BIN)/python -m servetop.run.exporter.metrics_page docs/reference/prometheus.md
	@for each in reports.schema.summary reports.schema.comparison reports.schema.watch reports.schema.watch_comparison reports.schema.shape run.search.search run.audit.audit run.reconcile.reconcile; do \
		$(BIN)/python -m servetop.$${each}_schema > docs/schema/$${each##*.}.json; done

site:  ## build the site of the docs into site/, for reading without a network
	@set -e; home=$$(bash tests/corpus/peers/install.sh site | tail -1); $$home/bin/mkdocs build --strict --quiet; echo site/index.html

lock: .venv-audit/.installed  ## pin the newest versions of what CI installs, and of the real engines (locks/)
	PYTHON=$(PYTHON) bash locks/lock.sh .venv-audit/bin/uv

audit: .venv-audit/.installed  ## check the locked packages against published advisories, where reachable
	.venv-audit/bin/python locks/audit.py locks/ci.txt locks/audit.txt

sbom: .venv-audit/.installed  ## write the SBOM of what CI installs (CycloneDX, dist/sbom.json)
	@mkdir -p dist
	.venv-audit/bin/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible --output-file dist/sbom.json locks/ci.txt

clean:  ## remove what the other targets created here
	rm -rf .venv .venv-audit .venv-lowest .venv-newest .mypy_cache .ruff_cache .pytest_cache .hypothesis dist
