#!/bin/sh
# Runs the linters of .golangci.yml on this checkout. They keep their results by the paths of the files, so all checkouts of a user are linted at
# one path, one after another: packages that have not changed since another checkout was linted are not linted again.
set -eu

cache=${XDG_CACHE_HOME:-$HOME/.cache}/forgeplane
mkdir -p "$cache"
exec 9>"$cache/lint.lock"
flock 9
ln -sfn "$(pwd -P)" "$cache/checkout"
cd "$cache/checkout"
exec go tool -modfile=hack/tools/go.mod golangci-lint run "$@"
