#!/bin/sh
# Before the package is removed. The argument is "upgrade" (deb) or a number (rpm) above 0 in an upgrade, where the units go on.
set -e
case "${1-}" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now dpwatch.service dpwatch-worker.service
	fi
	;;
esac
