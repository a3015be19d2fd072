#!/bin/sh
# Assembles the root file system of the image, for the Dockerfile and for machines without a container engine:
#
#	rootfs.sh PROGRAM DIR    DIR must not exist. PROGRAM is dpwatch, statically linked. As root, the directories get the image's user.
#	rootfs.sh --check DIR    as root, on Linux: runs dpwatch in a chroot at DIR, as the image's user, without rights to write
#
# It holds the program, the certificates of the public authorities (CERTIFICATES overrides the file), and a user with a passwd entry; no shell.
set -eu
user=65532
source=$(cd "$(dirname "$0")/../.." && pwd)

assemble() {
	program=$1
	root=$2
	[ ! -e "$root" ] || { echo "rootfs.sh: $root exists; remove it or choose another directory" >&2; exit 1; }
	umask 022
	mkdir -p "$root/etc/ssl/certs" "$root/etc/dpwatch" "$root/usr/local/bin" "$root/licenses" "$root/run" "$root/var/lib"
	cp "${CERTIFICATES:-/etc/ssl/certs/ca-certificates.crt}" "$root/etc/ssl/certs/ca-certificates.crt"
	echo "dpwatch:x:$user:$user:dpwatch:/:/sbin/nologin" >"$root/etc/passwd"
	echo "dpwatch:x:$user:" >"$root/etc/group"
	cp "$source/LICENSE" "$root/licenses/dpwatch"
	cp "$program" "$root/usr/local/bin/dpwatch"
	chmod 755 "$root/usr/local/bin/dpwatch"
	mkdir -m 1777 "$root/tmp"
	mkdir -m 555 "$root/proc" "$root/dev"
	# The admin socket, and the spool of a ledger that is away. A volume that is mounted here gets their owner.
	mkdir -m 700 "$root/run/dpwatch" "$root/var/lib/dpwatch"
	[ "$(id -u)" != 0 ] || chown "$user:$user" "$root/run/dpwatch" "$root/var/lib/dpwatch"
}

# check runs what the image's ENTRYPOINT and HEALTHCHECK run, with the root file system mounted read-only in a mount namespace of its own, which ends with it.
# The engine need not exist: dpwatch is alive without one.
check() {
	root=$1
	mount --make-rprivate /
	mount --bind "$root" "$root"
	mount -t proc proc "$root/proc"
	mount --rbind /dev "$root/dev"
	mount -t tmpfs tmpfs "$root/etc/dpwatch"
	for dir in run/dpwatch var/lib/dpwatch; do
		mount -t tmpfs -o "uid=$user,gid=$user,mode=700" tmpfs "$root/$dir"
	done
	mount -o remount,bind,ro "$root"
	cat >"$root/etc/dpwatch/dpwatch.yaml" <<-END
		proxy: {listen: "unix:/run/dpwatch/proxy.sock", upstream: "unix:/run/dpwatch/engine.sock"}
		admin: {listen: "unix:/run/dpwatch/admin.sock"}
		shadow: {dsn: "postgres://replay@127.0.0.1:1/shadow", d0: d0, d1: [d1]}
		privacy: {protected: [public.users]}
		ledger: {dsn: memory, spool: {dir: /var/lib/dpwatch/spool}}
	END
	set -- --config /etc/dpwatch/dpwatch.yaml
	inside() { chroot --userspec="$user:$user" "$root" /usr/local/bin/dpwatch "$@"; }
	inside version
	inside config check "$@"
	chroot --userspec="$user:$user" "$root" /usr/local/bin/dpwatch run "$@" &
	running=$!
	until inside status --alive "$@" 2>/dev/null && inside status "$@" | grep 'auditor  *running'; do
		kill -0 "$running" 2>/dev/null || { echo "rootfs.sh: dpwatch run ended before its auditor ran" >&2; exit 1; }
		sleep 0.2
	done
	kill "$running"
	wait "$running" || { echo "rootfs.sh: dpwatch run ended with status $? after SIGTERM" >&2; exit 1; }
}

case "${1-} $#" in
"--check 2") exec unshare --mount sh "$0" --checked "$2" ;;
"--checked 2") check "$2" ;;
*" 2") assemble "$1" "$2" ;;
*) echo "usage: rootfs.sh PROGRAM DIR, or rootfs.sh --check DIR" >&2; exit 1 ;;
esac
