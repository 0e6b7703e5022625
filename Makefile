# Nothing but Go, git and make is needed: every tool is a Go module at a pinned version.

GO ?= go
# How long "make fuzz" runs each fuzz target.
FUZZTIME ?= 3s

# Tests on PostgreSQL run where FORGEPLANE_TEST_POSTGRES names a server, as within "sh hack/postgres.sh make test".
ifeq ($(FORGEPLANE_TEST_POSTGRES),)
BUT := , but those on PostgreSQL
SKIPPED := echo "SKIPPED: the tests on PostgreSQL; this runs them: sh hack/postgres.sh make $(or $(MAKECMDGOALS),test)"
else
SKIPPED := true
endif

TOOL := $(GO) tool -modfile=hack/tools/go.mod
CONTROLLER_GEN := $(TOOL) controller-gen
MODULES := . hack/controlplane hack/helm hack/tools

# Programs that need no C library run everywhere, and one build cache serves all targets.
export CGO_ENABLED = 0
# A checkout that git does not trust, or none at all, is to build as well.
export GOFLAGS := $(filter-out -buildvcs=%,$(GOFLAGS)) -buildvcs=false

.DEFAULT_GOAL := help

##@ Use

.PHONY: help
help: ## Show the targets.
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@printf '\nVariables of run: HTTP_PORT KUBE_PORT TLS_PORT HEALTH_PORT DEV_DIR RUN_FLAGS RUN_SPLIT. KUBEBUILDER_ASSETS: see README.md.\n'

.PHONY: run
run: build controlplane ## Run Forgeplane on this machine, with a control plane of its own and samples.
	@exec bin/run

.PHONY: test
test: build controlplane helm ## Run every test, then each fuzz target for a few seconds.
	@begun=$$(date +%s); \
	if $(MAKE) --no-print-directory suites && $(MAKE) --no-print-directory fuzz; \
	then echo "PASSED: every test and fuzz target$(BUT), in $$(($$(date +%s) - begun)) s"; \
	else echo "FAILED: see the lines above that begin with FAIL or ---"; exit 1; fi

.PHONY: bench
bench: build controlplane ## Measure, and compare with the floors.
	@$(ASSETS) $(GO) run ./test/bench

##@ Develop

.PHONY: build
build: ## Build Forgeplane into bin.
	@$(GO) run ./hack/build forgeplane

.PHONY: helm
helm: ## Build Helm, which tests the chart, into bin.
	@$(GO) build -modfile=hack/helm/go.mod -ldflags='-s -w' -o bin/ helm.sh/helm/v4/cmd/helm

.PHONY: controlplane
controlplane: ## Build the control plane into bin/k8s, where it is missing or not up to date.
	@$(GO) run ./hack/build controlplane

.PHONY: generate
generate: ## Generate Go code from the API types.
	@$(CONTROLLER_GEN) object paths=./api/...

.PHONY: manifests
manifests: ## Generate the custom resource definitions, the permissions, and the chart's copy of config.
	@$(CONTROLLER_GEN) crd paths=./api/... output:crd:dir=config/crd
	@go run ./hack/kinds
	@$(CONTROLLER_GEN) rbac:roleName=forgeplane-manager paths=./cmd/... paths=./controllers/... paths=./apiserver/... paths=./internal/... output:rbac:dir=config/rbac
	@rm -rf charts/forgeplane/files && mkdir charts/forgeplane/files && cp -R config/crd config/rbac config/admission charts/forgeplane/files

.PHONY: clean
clean: ## Remove what was built. The data of "make run" stays in .dev.
	rm -rf bin

##@ Check

.PHONY: verify
verify: generate manifests ## Fail when generated files, formatting or go.mod are not what they should be, or the tree is not clean.
	@sh hack/verify.sh $(MODULES)

.PHONY: lint
lint: ## Run the linters, for code and for prose.
	@$(GO) run ./hack/prose
	@$(TOOL) golangci-lint run

.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities of the dependencies; VULNDB names a copy of the database.
	@sh hack/vulncheck.sh $(MODULES)

# The tests take the control plane that was built, or the one that the caller names.
ASSETS = KUBEBUILDER_ASSETS="$${KUBEBUILDER_ASSETS:-$(CURDIR)/bin/k8s}"

# Memory is cheaper than time here: garbage is collected a quarter as often, of the control planes as well. What go vet would say,
# lint does.
.PHONY: suites
suites: ## Run every test, without the fuzz targets; needs build, controlplane and helm.
	@$(SKIPPED)
	@$(ASSETS) GOGC=400 sh hack/memory.sh $(GO) test -p 3 -vet=off -timeout 20m ./...

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME.
	@sh hack/fuzz.sh $(FUZZTIME)

.PHONY: race
race: build controlplane helm ## Run every test with the race detector, which needs a C compiler.
	@$(SKIPPED)
	@CGO_ENABLED=1 $(ASSETS) $(GO) test -race -p 2 -timeout 40m ./...
