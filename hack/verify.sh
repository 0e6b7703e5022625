#!/bin/sh
# Fails if go.mod or go.sum of one of the given modules is not tidy, if Forgeplane and the control plane use different
# versions of a module, if Go code is not formatted, or if the working tree differs from the last commit. After
# generating, such a difference means that a generated file is not up to date.
set -eu

failed=0
for module in "$@"; do
	(cd "$module" && go mod tidy -diff) || {
		echo "verify: $module is not tidy: run \"go mod tidy\" in it"
		failed=1
	}
done

# versions lists the modules that packages of a module are built from.
versions() {
	(cd "$1" && shift && go list -deps -f '{{with .Module}}{{.Path}} {{with .Replace}}{{.Version}}{{else}}{{.Version}}{{end}}{{end}}' "$@")
}
work=$(mktemp)
trap 'rm -f "$work"' EXIT
versions . ./cmd/... ./hack/run >"$work"
versions hack/controlplane ./... >>"$work"
different=$(sort -u "$work" | cut -d' ' -f1 | uniq -d)
if [ -n "$different" ]; then
	echo "verify: different versions in go.mod and hack/controlplane/go.mod, so that what they share is compiled twice:"
	echo "$different"
	failed=1
fi

unformatted=$(git ls-files --cached --others --exclude-standard '*.go' | xargs gofmt -l)
if [ -n "$unformatted" ]; then
	echo "verify: not formatted: run \"gofmt -w\" on"
	echo "$unformatted"
	failed=1
fi

changed=$(git status --porcelain)
if [ -n "$changed" ]; then
	echo "verify: the tree is not clean: commit what \"make generate manifests\" made, and your own changes"
	echo "$changed"
	git --no-pager diff
	failed=1
fi
exit "$failed"
