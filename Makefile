# `make up` starts a broker, `make test` runs every test. Both install their requirements.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# Processes that run tests: of Spark or computing, and of nodes, which mostly wait for each other.
WORKERS ?= 2
NODE_WORKERS ?= 3
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Stamps of installations: the broker and its tools, and the requirements of the tests.
BROKER := $(VENV)/.broker
STAMP  := $(VENV)/.installed

.PHONY: help up check test java kerberos chromium prometheus simulate lint interop bench bench-cluster bench-pipelines bench-streams bench-services bench-mirror bench-connect bench-console bench-quick clean

help:
	@echo "make up       start a broker on localhost:9092 and the web console on http://localhost:8080 (data in ./data, Ctrl-C stops both)"
	@echo "make test     install the requirements, then lint, type check and run all tests"
	@echo "make check    lint, type check, unit and architecture tests in about three minutes"
	@echo "make simulate SEEDS=1000 JOBS=2  simulate clusters with faults (KIND=cluster|quorum|node|tiered; SEED=17 replays one)"
	@echo "make interop  test with Java and Go clients and Apache Kafka (needs Java, Maven, Go)"
	@echo "make bench    measure Moldau, and Apache Kafka if Maven is installed"
	@echo "make bench-cluster  compare three nodes with three of Apache Kafka: failover, throughput, memory"
	@echo "make bench-pipelines  compare the Spark connector with Spark's own (needs Java, Maven)"
	@echo "make bench-streams  compare the streams API and SQL with Kafka Streams (needs Java, Maven)"
	@echo "make bench-services  measure the schema registry and the REST proxy (needs wrk)"
	@echo "make bench-mirror  compare connect-mirror-maker with MirrorMaker 2 (needs Java, Maven)"
	@echo "make bench-connect  compare Connect workers: Moldau's and Apache Kafka's (needs Java, Maven, PostgreSQL)"
	@echo "make bench-console  measure the web console on a large cluster"
	@echo "make bench-quick  make bench in a minute or two, with less precision"
	@echo "make clean    remove the virtual environment and caches"

$(BROKER): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Moldau needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Choose another one: make PYTHON=python3.12 ...")'
	@$(BIN)/python -m pip --version > /dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV) || { rm -rf $(VENV); echo "Python's venv module is missing or incomplete; on Debian or Ubuntu: apt-get install python3-venv"; exit 1; }
	@echo "Installing Moldau into $(VENV) (once) ..."
	@$(PIP) --editable .
	@touch $(BROKER)

$(STAMP): $(BROKER)
	@echo "Installing the requirements of the tests into $(VENV) (once) ..."
	@$(PIP) --editable ".[dev]"
	@touch $(STAMP)

up: $(BROKER)
	@exec $(BIN)/moldau dev --console

lint: $(STAMP)
	$(BIN)/ruff check src tests tools benchmarks examples
	$(BIN)/ruff format --check src tests tools benchmarks examples
	$(BIN)/mypy

# The fast part of `make test`: without node processes and Spark.
check: lint
	$(BIN)/python -m pytest -q -m "not interop and not spark" -n $(WORKERS) tests/architecture tests/unit tests/wire tests/scenarios

test: lint java kerberos chromium prometheus
	$(BIN)/python -m pytest -m "not interop and not spark" -n $(NODE_WORKERS) --dist loadfile
	$(BIN)/python -m pytest -m "spark and not interop" -n $(WORKERS) --dist loadfile tests/pipelines tests/docs

# Spark needs Java; install one from PyPI if the machine has none. Without Java, the tests of pipelines are skipped
# with a message.
java: $(STAMP)
	@$(BIN)/python -m moldau.pipelines.spark.java > /dev/null 2>&1 || { \
	  echo "Java 17 or newer is needed for Spark and was not found: installing one into $(VENV) ..."; \
	  $(PIP) --editable ".[dev,java]" || true; }
	@$(BIN)/python -m moldau.pipelines.spark.java || true

# SASL GSSAPI needs a package that is compiled with the Kerberos headers (Debian: libkrb5-dev). Without it, its tests
# are skipped with a message.
kerberos: $(STAMP)
	@$(BIN)/python -c "import gssapi" > /dev/null 2>&1 || { \
	  echo "Installing the package for Kerberos into $(VENV) ..."; \
	  $(PIP) --editable ".[dev,kerberos]" > /dev/null 2>&1 || echo "The package for Kerberos could not be installed."; }

# The stories of the web console run in Chromium. Install Debian's where that is possible without a password; without it,
# they are skipped with a message.
chromium: $(STAMP)
	@command -v chromium > /dev/null 2>&1 || command -v google-chrome > /dev/null 2>&1 || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null 2>&1; then \
	    echo "Installing Chromium for the tests of the web console ..."; \
	    { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium fonts-dejavu-core; } > /dev/null 2>&1 \
	      || echo "Chromium could not be installed."; \
	  else echo "Chromium was not found: the tests of the web console in a browser are skipped."; fi; }

# The alert rules are tested with Prometheus. Its programs are taken out of Debian's package, which is not installed:
# that would start a server. Without them, the tests are skipped with a message.
prometheus: $(STAMP)
	@PATH="$(abspath $(BIN)):$$PATH"; { command -v prometheus && command -v promtool; } > /dev/null 2>&1 || { \
	  if command -v apt-get > /dev/null 2>&1 && command -v dpkg-deb > /dev/null 2>&1; then \
	    echo "Unpacking Prometheus for the tests of metrics into $(VENV) ..."; \
	    folder="$$(mktemp -d)" && chmod 755 "$$folder" && { cd "$$folder" && \
	      { apt-get download prometheus || { [ "$$(id -u)" = 0 ] && apt-get update && apt-get download prometheus; }; } && \
	      dpkg-deb -x prometheus_*.deb . && cp usr/bin/prometheus usr/bin/promtool "$(abspath $(BIN))"; } > /dev/null 2>&1 \
	      || echo "Prometheus could not be unpacked: the tests with it are skipped."; \
	    rm -rf "$$folder"; \
	  else echo "Prometheus was not found: the tests of alert rules with it are skipped."; fi; }

SEEDS ?= 1000
JOBS  ?= $(shell nproc 2> /dev/null || echo 2)
KIND  ?= cluster
simulate: $(STAMP)
	$(BIN)/python -m tests.simulation.simulate --kind $(KIND) $(if $(SEED),--seed $(SEED),--seeds $(SEEDS) --jobs $(JOBS))

interop: $(STAMP)
	$(BIN)/python -m pytest -m interop tests/interop

bench: $(STAMP)
	$(BIN)/python -m benchmarks $(ARGUMENTS)

bench-cluster: $(STAMP)
	$(BIN)/python -m benchmarks.cluster $(ARGUMENTS)

bench-pipelines: $(STAMP)
	$(BIN)/python -m benchmarks.pipelines $(ARGUMENTS)

bench-streams: $(STAMP)
	$(BIN)/python -m benchmarks.streams $(ARGUMENTS)

bench-services: $(STAMP)
	$(BIN)/python -m benchmarks.services $(ARGUMENTS)

bench-mirror: $(STAMP)
	$(BIN)/python -m benchmarks.mirror $(ARGUMENTS)

bench-connect: $(STAMP)
	$(BIN)/python -m benchmarks.connect $(ARGUMENTS)

bench-console: $(STAMP)
	$(BIN)/python -m benchmarks.console $(ARGUMENTS)

bench-quick: $(STAMP)
	$(BIN)/python -m benchmarks --quick

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .interop build dist
