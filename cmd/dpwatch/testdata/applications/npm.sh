# Installs npm packages, once: the directory, and the packages.
dir=$1; shift
[ "$(cat "$dir/installed" 2>/dev/null)" = "$*" ] && exit
rm -rf "$dir"; mkdir -p "$dir"; cd "$dir"; npm init -y >/dev/null
npm install --no-audit --no-fund --ignore-scripts "$@"
echo "$*" >installed
