#!/bin/sh
# After the installation of the package, and after an upgrade. It starts and restarts nothing: a restart ends the sessions of clients, so you choose when.
set -e
if command -v systemd-sysusers >/dev/null 2>&1; then
	systemd-sysusers dpwatch.conf
fi
if getent group dpwatch >/dev/null; then
	chgrp dpwatch /etc/dpwatch
	chmod 750 /etc/dpwatch
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
