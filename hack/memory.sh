#!/bin/sh
# Runs a command, as in "sh hack/memory.sh make suites", with its temporary files in memory, if the machine has enough of it.
# The files are removed after the command. Tests create thousands of small repositories, which takes a third less time in memory.
#
# The command and its processes end with this script, and with the process that FORGEPLANE_RUN names, even if these are killed. Files
# that were left nevertheless are removed by the next run.
set -eu

[ $# -gt 0 ] || {
	echo "usage: hack/memory.sh <command> [argument ...]" >&2
	exit 2
}

memory=/dev/shm
prefix=$memory/forgeplane-tests

# roomy reports whether there are 4 GiB for files and 8 GiB of memory.
roomy() {
	[ -d "$memory" ] && [ -w "$memory" ] && [ "$(awk '$1 == "MemAvailable:" {print int($2 / 1024 / 1024)}' /proc/meminfo)" -ge 8 ] &&
		[ "$(df -Pk "$memory" | awk 'NR == 2 {print int($4 / 1024 / 1024)}')" -ge 4 ]
}

# runs reports whether a program in a directory can be run. In containers, the mount options of the memory can prevent that.
runs() {
	printf '#!/bin/sh\n' >"$1/program" && chmod +x "$1/program" && "$1/program" 2>/dev/null && rm "$1/program"
}

# discard removes a directory, in which processes that are ending may still create files.
discard() {
	chmod -R u+w "$1" 2>/dev/null || true
	rm -rf "$1" || rm -rf "$1" || true
}

[ -d "$memory" ] || exec "$@"
# A run locks its directory, so what has no lock was left by a run that was killed. One run at a time looks at them and creates its own.
exec 8<"$memory"
flock 8
for left in "$prefix".*; do
	if [ -O "$left" ] && flock --nonblock "$left" true; then discard "$left"; fi
done
# A run that is alone always has the same directory. Go's cache knows a result only for the temporary directory of the test.
directory=
if roomy; then
	number=1
	while [ -e "$prefix.$number" ]; do number=$((number + 1)); done
	directory=$prefix.$number
	mkdir -m 700 "$directory"
	exec 9<"$directory"
	flock 9
	if runs "$directory"; then export TMPDIR="$directory"; fi
fi
exec 8<&-
group=
# stop ends the processes of the command that are left. The kernel ends the processes that they have started.
stop() {
	[ -z "$group" ] || kill -KILL "-$group" 2>/dev/null || true
	[ -z "$directory" ] || discard "$directory"
}
trap stop EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
# The processes are in a group of their own. A watcher in it ends the group when this script or the run has ended. A shell starts programs in the
# background with SIGINT ignored, which tests of interruptions must not inherit.
setsid env --default-signal=INT,QUIT sh -c '
	script=$1 run=$2
	shift 2
	while kill -0 "$script" && kill -0 "$run"; do sleep 1; done 2>/dev/null && kill -KILL 0 &
	exec "$@"' memory $$ "${FORGEPLANE_RUN:-$$}" "$@" 9<&- &
group=$!
wait "$group"
