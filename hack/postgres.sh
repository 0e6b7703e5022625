#!/bin/sh
# Runs a command, as in "sh hack/postgres.sh make suites", with its own PostgreSQL server, which
# FORGEPLANE_TEST_POSTGRES names. The server and its data are removed after the command.
set -eu

[ $# -gt 0 ] || {
	echo "usage: hack/postgres.sh <command> [argument ...]" >&2
	exit 2
}

fail() {
	echo "FAIL: PostgreSQL: $1" >&2
	exit 1
}

# Distributions install the programs of the server outside PATH, in a directory for each version.
initdb=$(find /usr/lib/postgresql /usr/pgsql-* -path '*/bin/initdb' 2>/dev/null | sort -V | tail -n 1)
initdb=${initdb:-$(command -v initdb)} || fail "there is no initdb; install your distribution's package, which is postgresql on Debian"
programs=$(dirname "$(readlink -f "$initdb")")

server=
directory=$(mktemp -d)
# stop uses the fastest way to stop PostgreSQL, because nobody needs the data.
stop() {
	[ -z "$server" ] || {
		kill -QUIT "$server" 2>/dev/null || true
		wait "$server" || true
	}
	rm -rf "$directory"
}
trap stop EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# PostgreSQL does not run as root. If this script is killed, the kernel signals the server.
as=
! command -v setpriv >/dev/null || as="setpriv --pdeathsig=QUIT"
if [ "$(id -u)" = 0 ]; then
	[ -n "$as" ] || fail "it does not run as root, and there is no setpriv to become somebody else"
	user=postgres
	id "$user" >/dev/null 2>&1 || user=nobody
	as="$as --reuid=$user --regid=$(id -g "$user") --clear-groups"
	chown "$user" "$directory"
fi

# The user of the server may not be allowed to enter the directory of the caller.
(cd / && $as "$programs/initdb" --pgdata="$directory/data" --username=forgeplane --auth=trust \
	--encoding=UTF8 --locale=C --no-sync) >"$directory/log" 2>&1 || {
	cat "$directory/log" >&2
	fail "initdb failed"
}
(cd / && exec $as "$programs/postgres" -D "$directory/data" -k "$directory" -c listen_addresses= -c fsync=off) \
	>>"$directory/log" 2>&1 &
server=$!
tries=300
until "$programs/pg_isready" -q -h "$directory"; do
	tries=$((tries - 1))
	if ! kill -0 "$server" 2>/dev/null || [ "$tries" = 0 ]; then
		cat "$directory/log" >&2
		fail "the server did not start"
	fi
	sleep 0.1
done
echo "PostgreSQL: $("$programs/postgres" --version)"

FORGEPLANE_TEST_POSTGRES="postgres://forgeplane@/postgres?host=$directory" "$@"
