#!/bin/sh
# Installs gitlab-ci-local into bin/gitlab-ci-local, at the versions of hack/gitlab-ci-local/package-lock.json, unless they are installed. Only
# "make soak PART=ci" needs it. The lock file has checksums and no addresses, so npm's configuration chooses the registry.
set -eu

from=hack/gitlab-ci-local
to=bin/gitlab-ci-local
for program in node npm; do
	command -v "$program" >/dev/null || {
		echo "gitlab-ci-local needs $program, which is not installed: install Node.js 20 or later with npm" >&2
		exit 1
	}
done
if cmp -s "$from/package-lock.json" "$to/installed.json"; then exit 0; fi
rm -rf "$to"
mkdir -p "$to"
cp "$from/package.json" "$from/package-lock.json" "$to"
npm ci --prefix "$to" --ignore-scripts --no-audit --no-fund --loglevel=error
cp "$from/package-lock.json" "$to/installed.json"
