#!/bin/sh
# Runs tests that are random or long in full, as in "sh hack/soak.sh crash git". Without arguments, it runs all parts. A part takes at most 30
# minutes. All parts run even if one fails.
set -eu

parts="chart ci crash e2e fuzz git image moves node registry replicas rest tenancy toy vulncheck walkthrough"
export FORGEPLANE_SOAK=1 FORGEPLANE_TEST_SKOPEO=required
# The seed is printed, so that a failure can be repeated.
export FORGEPLANE_TEST_SEED="${FORGEPLANE_TEST_SEED:-$(date +%s)}"

# tests runs packages, with the files of tests in memory.
tests() { sh hack/memory.sh go test -count=1 -vet=off -ldflags=-s -p 2 -timeout 30m "$@"; }

soak() {
	case $1 in
	chart) tests ./test/chart ;;
	ci) make --no-print-directory gitlab-ci-local && tests ./test/expansion ;;
	crash) tests ./test/crash -ginkgo.skip-file moves_test.go ;;
	e2e) tests ./test/e2e/... ;;
	fuzz) sh hack/fuzz.sh 45s ;;
	git) tests ./internal/git/... ;;
	image) tests ./test/image -v -ginkgo.v ;;
	moves) tests ./controllers/storagemove ./internal/storagemove && tests ./test/crash -ginkgo.focus-file moves_test.go ;;
	node) tests ./test/node -v -ginkgo.v ;;
	registry) tests ./apiserver/registryhttp ./internal/registry/... ;;
	replicas) tests ./test/replicas ;;
	rest) tests ./apiserver ./apiserver/githttp ./apiserver/ratelimit ./apiserver/v4/... ./test/conformance/... ./internal/markdown ;;
	tenancy) tests ./test/tenancy ;;
	toy) tests ./test/toy ;;
	vulncheck) make --no-print-directory vulncheck ;;
	walkthrough) tests ./test/walkthrough ;;
	*)
		echo "$1 is not a part of make soak, which are: $parts" >&2
		return 2
		;;
	esac
}

echo "soak: FORGEPLANE_TEST_SEED=$FORGEPLANE_TEST_SEED repeats this run"
failed=
for part in ${*:-$parts}; do
	begun=$(date +%s)
	if soak "$part"; then
		echo "soak: $part passed in $(($(date +%s) - begun)) s"
	else
		echo "soak: $part FAILED after $(($(date +%s) - begun)) s"
		failed="$failed $part"
	fi
done
[ -z "$failed" ] || {
	echo "soak: FAILED:$failed"
	exit 1
}
