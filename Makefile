# Only Go, git and make are needed: every tool is a Go module at a pinned version, except gitlab-ci-local of "make soak".

GO ?= go
# The time for which "make fuzz" runs each fuzz target.
FUZZTIME ?= 3s

# Tests on PostgreSQL run if FORGEPLANE_TEST_POSTGRES names a server, as within "sh hack/postgres.sh make test".
ifeq ($(FORGEPLANE_TEST_POSTGRES),)
BUT := , but those on PostgreSQL
SKIPPED := echo "SKIPPED: the tests on PostgreSQL; this runs them: sh hack/postgres.sh make $(or $(MAKECMDGOALS),test)"
else
SKIPPED := true
endif

TOOL := $(GO) tool -modfile=hack/tools/go.mod
CONTROLLER_GEN := $(TOOL) controller-gen
MODULES := . hack/client hack/controlplane hack/gitops hack/helm hack/images hack/node hack/runner hack/tools

# Programs that need no C library run everywhere, and one build cache serves all targets.
export CGO_ENABLED = 0
# The build must also work in a checkout that git does not trust, and outside of any checkout. Without the paths of the checkout in it, what
# one checkout has compiled serves the others. Debuggers need DWARF, but nothing here does, and without it, linking takes a fifth less time.
# The caller's -gcflags replace that flag. The flags that are always set come last, so that make within make does not change the value.
export GOFLAGS := $(strip $(filter-out -buildvcs=% -trimpath,$(GOFLAGS)) \
	$(if $(findstring -gcflags,$(GOFLAGS)),,-gcflags=all=-dwarf=false) -buildvcs=false -trimpath)

.DEFAULT_GOAL := help

##@ Use

.PHONY: help
help: ## Show the targets.
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@printf '\nVariables of run: HTTP_PORT KUBE_PORT TLS_PORT HEALTH_PORT METRICS_PORT DEV_DIR RUN_FLAGS RUN_SPLIT RUN_SAMPLES. KUBEBUILDER_ASSETS: see README.md.\nVariables of image: IMAGE PUSH OUT ARCH.\n'

.PHONY: run
run: build controlplane ## Run Forgeplane on this machine, with its own control plane and samples.
	@exec bin/run

.PHONY: runner
runner: gitlab-runner ## Run a CI runner on this machine that executes the jobs of "make run" with a shell.
	@. "$(abspath $(or $(DEV_DIR),.dev))/env" && exec bin/runner -data "$(abspath $(or $(DEV_DIR),.dev))/runner"

.PHONY: test
test: build controlplane helm gitlab-runner ## Run all tests, those that are random or long in part, with a control plane.
	@begun=$$(date +%s); \
	if $(MAKE) --no-print-directory suites; \
	then echo "PASSED: all tests$(BUT), in $$(($$(date +%s) - begun)) s"; \
	else echo "FAILED: see the lines above that begin with FAIL or ---"; exit 1; fi

.PHONY: bench
bench: build controlplane ## Measure, and compare with the floors.
	@$(ASSETS) $(GO) run ./test/bench

##@ Develop

.PHONY: build
build: ## Build Forgeplane into bin.
	@$(GO) run ./hack/build forgeplane

.PHONY: helm
helm: ## Build Helm and kubeconform, which test the chart, into bin.
	@$(GO) build -modfile=hack/helm/go.mod -ldflags='-s -w' -o bin/ helm.sh/helm/v4/cmd/helm github.com/yannh/kubeconform/cmd/kubeconform

.PHONY: gitlab-runner
gitlab-runner: ## Build the CI runner, which the tests execute jobs with, and what starts it for "make runner", into bin.
	@$(GO) build -C hack/runner -ldflags='-s -w' -o ../../bin/ . gitlab.com/gitlab-org/gitlab-runner

.PHONY: gitops
gitops: ## Build the engines of Argo CD and Flux, which "make soak PART=e2e" declares a team with, into bin.
	@$(GO) build -C hack/gitops -ldflags='-s -w' -o ../../bin/ .

.PHONY: gitlab-ci-local
gitlab-ci-local: ## Install gitlab-ci-local, which "make soak PART=ci" compares with, into bin. It needs node and npm.
	@sh hack/gitlab-ci-local.sh

IMAGE ?= localhost/forgeplane
OUT ?= bin/image

.PHONY: image
image: ## Build the image into OUT without a container engine; PUSH=1 pushes it as IMAGE. See docs/development/image.md.
	@$(GO) run ./hack/image -image='$(IMAGE)' -output='$(OUT)' $(if $(ARCH),-architectures='$(ARCH)') $(if $(filter 1,$(PUSH)),-push)

.PHONY: node
node: controlplane ## Run a cluster of one node on this machine, with the image in OUT. See docs/development/image.md.
	@$(GO) run ./hack/build node
	@exec bin/node/cluster -images='$(wildcard $(OUT)/oci)'

.PHONY: controlplane
controlplane: ## Build the control plane into bin/k8s, unless it is up to date.
	@$(GO) run ./hack/build controlplane

MACHINERY := k8s.io/apimachinery/pkg/apis/meta/v1 k8s.io/apimachinery/pkg/runtime k8s.io/apimachinery/pkg/version

.PHONY: generate
generate: ## Generate Go code from the API types.
	@$(CONTROLLER_GEN) object paths=./api/...
	@$(TOOL) openapi-gen --output-dir apiserver/activity --output-pkg github.com/forgeplane/forgeplane/apiserver/activity \
		--output-file zz_generated.openapi.go --output-model-name-file zz_generated.model_name.go --report-filename /dev/null \
		$(addprefix --readonly-pkg ,$(MACHINERY)) ./api/activity/v1alpha1 $(MACHINERY)

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
verify: generate manifests ## Fail if generated files, formatting or go.mod are not up to date, or if the tree is not clean.
	@sh hack/verify.sh $(MODULES)

.PHONY: lint
lint: ## Run the linters, for code and for prose.
	@$(GO) run ./hack/prose
	@sh hack/lint.sh
	@$(GO) build -tags s3,gcs,azure ./internal/blob ./internal/registry

.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities of the dependencies; VULNDB names a copy of the database.
	@sh hack/vulncheck.sh $(MODULES)

# The tests use the control plane that was built, or the one that the caller names.
ASSETS = KUBEBUILDER_ASSETS="$${KUBEBUILDER_ASSETS:-$(CURDIR)/bin/k8s}"

# Tests wait as long as test/patience says, because a busy machine is slow.
PATIENT = GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT=2m

# Packages without a control plane begin: they find most mistakes within minutes. The suites that mostly wait (of jobs, replicas, crashes and
# moves) are between others, which use the processors meanwhile.
FIRST := ./api/... ./cmd/... ./internal/job ./internal/... ./hack/... ./test/replicas ./apiserver/... ./test/conventions ./test/docs ./test/crash \
	./test/e2e/... ./test/conformance/... ./controllers/storagemove ./test/tenancy ./test/run ./test/chart ./test/walkthrough

# Memory is cheaper than time here, so garbage is collected a quarter as often, also in the control planes. The linters include go vet. Two suites
# wait for a third of the time, so three are run at once. A suite takes less than four minutes, and up to twice as long on a busy machine, hence
# the time-out. Nobody debugs the test binaries, and without symbols, linking them takes a third less time.
.PHONY: suites
suites: ## Run what make test runs, with the programs that were built before.
	@$(SKIPPED)
	@all=$$($(GO) list ./...) && first=$$($(GO) list $(FIRST)) && \
	packages=$$(echo $$first $$all | tr ' ' '\n' | awk '!seen[$$0]++' | tr '\n' ' ') && \
	$(ASSETS) $(PATIENT) GOGC=400 sh hack/memory.sh $(GO) run ./hack/pool sh hack/suites.sh "$$packages" -p 3 -vet=off -ldflags=-s -timeout 8m

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME.
	@sh hack/fuzz.sh $(FUZZTIME)

.PHONY: soak
soak: build controlplane ## Run the tests that are random or long in full; PART names some of the parts, which are in hack/soak.sh.
	@$(ASSETS) $(PATIENT) GOGC=400 sh hack/soak.sh $(PART)

# The packages that decide who can do what, and who holds what.
DECIDING := ./internal/claim ./internal/codeowners ./internal/ids ./internal/jobtoken ./internal/protection ./apiserver/auth

.PHONY: mutate
mutate: ## Change the code that decides, and fail if the tests miss more than 5 % of the changes. It takes 15 minutes.
	@failed=0; for package in $(DECIDING); do echo "$$package"; \
		$(TOOL) gremlins unleash --threshold-efficacy 95 --output-statuses lt $$package || failed=1; done; exit $$failed

.PHONY: race
race: build controlplane helm gitlab-runner ## Run every test with the race detector, which needs a C compiler.
	@$(SKIPPED)
	@CGO_ENABLED=1 $(ASSETS) $(PATIENT) $(GO) test -race -p 2 -timeout 40m ./...
