#!/bin/sh
# Starts the example of compose.yaml with passwords of its own: sh deploy/compose/start.sh. Arguments go to "compose up" (default: --build --detach --wait).
# CONTAINER_ENGINE is docker or podman. Running it again keeps the passwords; "docker compose down --volumes" removes the data.
set -eu
cd "$(dirname "$0")"

umask 077
mkdir -p secrets
for name in postgres app replay ledger grafana; do
	file=secrets/${name}_password
	[ -s "$file" ] || od -An -N 24 -t x1 /dev/urandom | tr -d ' \n' >"$file"
	# The users in the containers read the file itself; nobody else on this machine can enter the directory.
	chmod 644 "$file"
done
[ "$#" -gt 0 ] || set -- --build --detach --wait
exec "${CONTAINER_ENGINE:-docker}" compose up "$@"
