#!/bin/sh
# Makes sure that Prometheus, promtool and Alertmanager are on this machine, for the tests of alerts and rules.
#
# It installs Debian's packages if apt-get can be used as root or with a sudo that asks for no password. It starts no service, and leaves none that the
# packages start. Otherwise it says what to install and exits with status 1; the tests are then skipped. Running it again changes nothing.
set -u

there() { command -v promtool >/dev/null 2>&1 && command -v prometheus >/dev/null 2>&1 && command -v prometheus-alertmanager >/dev/null 2>&1; }

# install_apt [SUDO...]: the packages; policy-rc.d makes their scripts start no service.
install_apt() {
	policy=/usr/sbin/policy-rc.d
	mine=no
	if [ ! -e "$policy" ]; then
		mine=yes
		printf '#!/bin/sh\nexit 101\n' | "$@" tee "$policy" >/dev/null && "$@" chmod 755 "$policy"
	fi
	"$@" env DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends prometheus prometheus-alertmanager >&2 || {
		"$@" apt-get -q -y update >&2
		"$@" env DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends prometheus prometheus-alertmanager >&2
	}
	if [ "$mine" = yes ]; then "$@" rm -f "$policy"; fi
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
echo 'prometheus, promtool or prometheus-alertmanager is missing: apt-get install prometheus prometheus-alertmanager' >&2
exit 1
