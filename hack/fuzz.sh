#!/bin/sh
# Runs every fuzz target of the module, each for the given time. Targets are found by their names in the test files. The tests of
# a package are built once for all of its targets.
set -eu

fuzztime=${1:?usage: hack/fuzz.sh <time for each target>}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cache=$(go env GOCACHE)/fuzz/$(go list -m)

# fuzz runs one target of a directory, and shows its output if the output is of interest. By default, Go's fuzzer makes an input smaller for up to
# a minute, during which it tries nothing else.
fuzz() {
	if (cd "$1" && "$work/tests" -test.run='^$' -test.fuzz="^$2\$" -test.fuzztime="$fuzztime" -test.fuzzminimizetime=1s \
		-test.fuzzcachedir="$cache/$1") >"$work/log" 2>&1; then
		echo "fuzz: $1 $2: $(grep '^fuzz: elapsed' "$work/log" | tail -n 1 | sed 's/^fuzz: elapsed: //')"
		return 0
	fi
	# Go's fuzzer can report the end of its time as a failure. A real failure leaves a file with the input.
	if grep -q '^ *context deadline exceeded$' "$work/log" && ! grep -q 'Failing input written' "$work/log"; then
		echo "fuzz: $1 $2: $fuzztime passed"
		return 0
	fi
	cat "$work/log"
	echo "FAIL: fuzz target $2 in $1"
	return 1
}

find . -name '.?*' -prune -o -name '*_test.go' -print |
	xargs grep -HoE '^func Fuzz[A-Za-z0-9_]*' | sed 's|^\./\(.*\)/[^/]*:func |\1 |' | sort >"$work/targets"
[ -s "$work/targets" ] || {
	echo "FAIL: no fuzz targets found"
	exit 1
}
built=
while read -r directory name; do
	if [ "$built" != "$directory" ]; then
		go test -c -fuzz=. -o "$work/tests" "./$directory"
		built=$directory
	fi
	fuzz "$directory" "$name" </dev/null
done <"$work/targets"
