# Installs Python packages in a virtual environment, once: its directory, and the packages.
dir=$1; shift
[ "$(cat "$dir/installed" 2>/dev/null)" = "$*" ] && exit
rm -rf "$dir"; python3 -m venv "$dir"; "$dir/bin/pip" install -q --disable-pip-version-check "$@"
echo "$*" >"$dir/installed"
