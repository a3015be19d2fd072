#!/bin/sh
# Builds the image dpwatch:VERSION and verifies it with the example of deploy/compose: the broken queries must become violations in it, the honest one must not,
# and Alertmanager must have the alert. Arguments go to the build:
#
#	sh deploy/image/build.sh [--build-arg GO_IMAGE=NAME:TAG@sha256:...]
#
# CONTAINER_ENGINE is docker or podman (with compose), VERSION the version (default: git describe). The example must not be running. With syft in PATH it writes
# the bill of materials of the image to bin/. It prints the digest that names this image.
set -eu
cd "$(dirname "$0")/../.."
engine=${CONTAINER_ENGINE:-docker}
command -v "$engine" >/dev/null || { echo "build.sh: no $engine; set CONTAINER_ENGINE, or use deploy/image/rootfs.sh, which needs none" >&2; exit 1; }
version=${VERSION:-$(git describe --tags --always --dirty)}
image=dpwatch:$version

"$engine" build --build-arg "VERSION=$version" "$@" --tag "$image" .
said=$("$engine" run --rm --read-only --cap-drop ALL --network none "$image" version)
case $said in
"dpwatch $version "*) ;;
*) echo "build.sh: the image's dpwatch version prints: $said" >&2; exit 1 ;;
esac
user=$("$engine" image inspect --format '{{.Config.User}}' "$image")
[ "$user" = 65532:65532 ] || { echo "build.sh: the image's user is $user" >&2; exit 1; }

compose() { DPWATCH_VERSION=$version "$engine" compose --project-name dpwatch-verify --file deploy/compose/compose.yaml "$@"; }
[ -z "$(compose ps --all --quiet)" ] || { echo "build.sh: a verification is running or was interrupted: $engine compose --project-name dpwatch-verify down --volumes" >&2; exit 1; }
trap 'compose down --volumes >/dev/null 2>&1' EXIT
trap 'exit 1' INT TERM
DPWATCH_VERSION=$version CONTAINER_ENGINE=$engine COMPOSE_PROJECT_NAME=dpwatch-verify sh deploy/compose/start.sh --no-build --detach --wait
audits() { compose exec -T dpwatch /usr/local/bin/dpwatch audits list --config /etc/dpwatch/dpwatch.yaml "$@"; }
violations() { audits --verdict violation -o json | grep -c '"verdict": *"violation"' || :; }
alerts() { compose exec -T alertmanager wget -q -O - 'http://127.0.0.1:9093/api/v2/alerts' | grep -c '"violation"' || :; }
tries=0
until [ "$(violations)" -ge 2 ] && [ "$(alerts)" -ge 1 ]; do
	tries=$((tries + 1))
	[ "$tries" -lt 120 ] || { audits >&2; echo "build.sh: two violations and an alert were expected within 10 minutes" >&2; exit 1; }
	sleep 5
done
audits
[ "$(violations)" = 2 ] || { echo "build.sh: the honest query is called a violation" >&2; exit 1; }

if command -v syft >/dev/null; then
	mkdir -p bin
	syft scan "$engine:$image" --output "spdx-json=bin/dpwatch-image.spdx.json"
fi
"$engine" image inspect --format 'verified: {{.Id}}' "$image"
