#!/bin/sh
# Makes sure that a Chromium is on this machine, for the tests of pages.
#
# It installs Debian's package if apt-get can be used as root or with a sudo that asks for no password. Otherwise it says what to install and exits with
# status 1; the tests are then skipped. Running it again changes nothing.
set -u

there() { command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1 || [ -x "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome" ]; }

# install_apt [SUDO...]: the package.
install_apt() {
	"$@" env DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends chromium fonts-dejavu-core >&2 || {
		"$@" apt-get -q -y update >&2
		"$@" env DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends chromium fonts-dejavu-core >&2
	}
}

there && exit 0
if command -v apt-get >/dev/null 2>&1; then
	if [ "$(id -u)" = 0 ]; then
		install_apt env
	elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
		install_apt sudo -n
	fi
fi
there && exit 0
echo 'no Chromium was found: apt-get install chromium, or install Google Chrome' >&2
exit 1
