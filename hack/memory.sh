#!/bin/sh
# Runs a command, as in "sh hack/memory.sh make suites", with its temporary files in memory, if the machine has enough of it.
# The files are removed after the command. Tests create thousands of small repositories, which takes a third less time in memory.
set -eu

[ $# -gt 0 ] || {
	echo "usage: hack/memory.sh <command> [argument ...]" >&2
	exit 2
}

memory=/dev/shm

# roomy reports whether there are 4 GiB for files and 8 GiB of memory.
roomy() {
	[ -d "$memory" ] && [ -w "$memory" ] && [ "$(awk '$1 == "MemAvailable:" {print int($2 / 1024 / 1024)}' /proc/meminfo)" -ge 8 ] &&
		[ "$(df -Pk "$memory" | awk 'NR == 2 {print int($4 / 1024 / 1024)}')" -ge 4 ]
}

# runs reports whether a program in a directory can be run. In containers, the mount options of the memory can prevent that.
runs() {
	printf '#!/bin/sh\n' >"$1/program" && chmod +x "$1/program" && "$1/program" 2>/dev/null && rm "$1/program"
}

if ! roomy; then exec "$@"; fi
directory=$(mktemp -d "$memory/XXXXXX")
trap 'chmod -R u+w "$directory"; rm -rf "$directory"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
if runs "$directory"; then export TMPDIR="$directory"; fi
"$@"
