#!/bin/sh
# Tests packages, as in "sh hack/suites.sh 'internal/git internal/job' -timeout 8m". Tests that fail run once more. Tests that pass then are
# printed as FLAKY with their failure, and listed in bin/flaky.
set -eu

[ $# -gt 0 ] || {
	echo "usage: hack/suites.sh <packages> [argument of go test ...]" >&2
	exit 2
}
export SUITES="$1"
shift

code=0
# gotestsum adds a test that failed and its package to the arguments of another run, which must not take an earlier result from Go's cache.
go tool -modfile=hack/tools/go.mod gotestsum --format=standard-quiet --hide-summary=skipped --jsonfile=bin/tests.json \
	--rerun-fails=1 --rerun-fails-max-failures=10 --raw-command -- sh -c '
	case "$*" in
	*-test.run=*) exec go test -json -count=1 "$@" ;;
	*) exec go test -json "$@" $SUITES ;;
	esac' suites "$@" || code=$?
go run ./hack/flaky bin/tests.json go test -count=1 "$@" >bin/flaky || code=1
cat bin/flaky
exit "$code"
