#!/bin/sh
# Looks for known vulnerabilities in the code that the modules in the given directories use. The database is the public one, or the one
# that VULNDB names, such as file:///srv/vulndb. If the public one cannot be reached, the check is skipped and says so.
set -eu

limit=${VULNCHECK_TIMEOUT:-600}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

failed=0
for module in "${@:-.}"; do
	code=0
	timeout "$limit" go tool -modfile=hack/tools/go.mod govulncheck ${VULNDB:+-db "$VULNDB"} -C "$module" ./... >"$work/log" 2>&1 || code=$?
	case $code in
	0)
		echo "vulncheck: $module: no known vulnerabilities"
		;;
	3)
		cat "$work/log"
		echo "vulncheck: $module: FAILED: update the modules that are named above"
		failed=1
		;;
	*)
		if [ -z "${VULNDB:-}" ] && grep -q 'fetching vulnerabilities' "$work/log"; then
			echo "vulncheck: SKIPPED: the vulnerability database cannot be reached; set VULNDB to a copy, such as file:///srv/vulndb"
			exit 0
		fi
		cat "$work/log"
		echo "vulncheck: $module: FAILED with status $code, or after $limit s"
		failed=1
		;;
	esac
done
exit "$failed"
