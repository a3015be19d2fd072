#!/bin/sh
# Makes sure that PostgreSQL server binaries (initdb, postgres) are on this machine.
#
# Prints their directory on standard output, everything else on standard error. Looks where FindBinDir looks:
# $DPWATCH_PG_BINDIR, PATH, pg_config, the usual places with the newest major version first. When there are none it
# installs them if that needs no question: apt-get as root or with sudo that asks for no password, brew on macOS.
# Otherwise it says what to install and exits with status 1. Running it again changes nothing.
#
# DPWATCH_PG_INSTALL=no   only look
set -u

say() { printf '%s\n' "$*" >&2; }

# usable DIR: print DIR and end the script when it holds a server.
usable() {
	if [ -n "$1" ] && [ -f "$1/initdb" ] && [ -x "$1/initdb" ] && [ -f "$1/postgres" ] && [ -x "$1/postgres" ]; then
		printf '%s\n' "$1"
		exit 0
	fi
}

# newest_first: sort directories, one per line, by the first number in them that follows a name like PostgreSQL's.
newest_first() {
	sed -nE 's#.*([Pp]ostgre[Ss][Qq][Ll]|pgsql|Versions)[-@/]?([0-9]+).*#\2 &#p
		t
		s#^#0 #p' | sort -rn | cut -d' ' -f2-
}

look() {
	if [ -n "${DPWATCH_PG_BINDIR:-}" ]; then
		usable "$DPWATCH_PG_BINDIR"
		say "DPWATCH_PG_BINDIR, $DPWATCH_PG_BINDIR, does not hold initdb and postgres"
		exit 1
	fi
	found=$(command -v initdb 2>/dev/null) && usable "${found%/initdb}"
	found=$(pg_config --bindir 2>/dev/null) && usable "$found"
	for dir in \
		/usr/lib/postgresql/*/bin /usr/pgsql-*/bin /usr/lib/postgresql*/bin /usr/libexec/postgresql* \
		/opt/homebrew/opt/postgresql*/bin /usr/local/opt/postgresql*/bin \
		/home/linuxbrew/.linuxbrew/opt/postgresql*/bin /Applications/Postgres.app/Contents/Versions/*/bin \
		/Library/PostgreSQL/*/bin /opt/local/lib/postgresql*/bin /nix/store/*-postgresql-*/bin \
		/run/current-system/sw/bin "${HOME:-/nonexistent}/.nix-profile/bin" /usr/local/pgsql/bin /usr/bin /usr/local/bin; do
		[ -d "$dir" ] && printf '%s\n' "$dir"
	done | newest_first | while IFS= read -r dir; do
		(usable "$dir") && exit 0
	done
}

# outdated DIR: say so when the server there is of a Debian package of which apt offers another release. The tests run on either, and PostgreSQL
# changes catalogs and tools in minor releases.
outdated() {
	package=$(dpkg-query -S "$1/postgres" 2>/dev/null) || return 0
	package=${package%%: *}
	# shellcheck disable=SC2046 # two words
	set -- $(LC_ALL=C apt-cache policy "$package" 2>/dev/null | sed -n 's/^  \(Installed\|Candidate\): //p')
	[ $# -ne 2 ] || [ "$1" = "$2" ] || say "$package $1 is not the newest release, $2: apt-get install --only-upgrade $package"
}

# The loop above runs in a subshell: its one line of output is the answer.
find_dir() {
	answer=$(look) || exit 1
	answer=$(printf '%s\n' "$answer" | head -n 1)
	if [ -n "$answer" ]; then
		outdated "$answer"
		printf '%s\n' "$answer"
		exit 0
	fi
}

hint() {
	say 'PostgreSQL server binaries (initdb, postgres) not found. Install them (no service needs to run), one of:'
	say '  Debian, Ubuntu   apt-get install postgresql'
	say '  Alpine           apk add postgresql'
	say '  Fedora, RHEL     dnf install postgresql-server'
	say '  macOS            brew install postgresql@17'
	say 'or, when they are there already, name their directory: DPWATCH_PG_BINDIR=/path/to/bin'
}

# install_apt [SUDO...]: the server, without the cluster and the service that the package makes by itself.
install_apt() {
	say 'installing PostgreSQL with apt-get ...'
	only_binaries=/etc/postgresql-common/createcluster.d/dpwatch.conf
	{
		"$@" mkdir -p "${only_binaries%/*}" && echo 'create_main_cluster = false' | "$@" tee "$only_binaries"
		"$@" env DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends postgresql || {
			"$@" apt-get -q -y update
			"$@" env DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends postgresql
		}
		"$@" rm -f "$only_binaries"
	} >&2
}

find_dir
if [ "${DPWATCH_PG_INSTALL:-yes}" != no ]; then
	if [ "$(uname -s)" = Darwin ]; then
		if command -v brew >/dev/null 2>&1; then
			say 'installing PostgreSQL with brew ...'
			brew install postgresql@17 >&2 && find_dir
		fi
	elif command -v apt-get >/dev/null 2>&1; then
		if [ "$(id -u)" = 0 ]; then
			install_apt env && find_dir
		elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
			install_apt sudo -n && find_dir
		fi
	fi
fi
hint
exit 1
