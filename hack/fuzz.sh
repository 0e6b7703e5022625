#!/bin/sh
# Runs every fuzz target of the module, each for the given time. Targets are found by their names in the test files.
set -eu

fuzztime=${1:?usage: hack/fuzz.sh <time for each target>}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# fuzz runs one target, and shows what it did when that is worth seeing.
fuzz() {
	if go test -run '^$' -fuzz "^$2\$" -fuzztime "$fuzztime" "./$1" >"$work/log" 2>&1; then
		echo "fuzz: $1 $2: $(grep '^fuzz: elapsed' "$work/log" | tail -n 1 | sed 's/^fuzz: elapsed: //')"
		return 0
	fi
	# Go's fuzzer may take the end of its time for a failure; an input that does fail is written to a file.
	if grep -q '^ *context deadline exceeded$' "$work/log" && ! grep -q 'Failing input written' "$work/log"; then
		echo "fuzz: $1 $2: $fuzztime passed"
		return 0
	fi
	cat "$work/log"
	echo "FAIL: fuzz target $2 in $1"
	return 1
}

find . -name '.?*' -prune -o -name '*_test.go' -print | sort |
	xargs grep -HoE '^func Fuzz[A-Za-z0-9_]*' | sed 's/:func / /' >"$work/targets"
[ -s "$work/targets" ] || {
	echo "FAIL: no fuzz targets found"
	exit 1
}
while read -r file name; do
	fuzz "$(dirname "$file")" "$name" </dev/null
done <"$work/targets"
