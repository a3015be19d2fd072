#!/bin/sh
# Writes the man pages and the completions that packages contain: generate.sh DIR. The program of this build step has a command more, man.
set -eu
dir=$1
cd "$(dirname "$0")/../.."
rm -rf "$dir"
mkdir -p "$dir/man" "$dir/completions"
program=$dir/dpwatch
go build -trimpath -tags netgo,osusergo,man -ldflags "-X main.version=${VERSION:-devel}" -o "$program" ./cmd/dpwatch
"$program" man "$dir/man"
gzip -9 -n "$dir"/man/*.1
"$program" completion bash >"$dir/completions/dpwatch.bash"
"$program" completion zsh >"$dir/completions/_dpwatch"
"$program" completion fish >"$dir/completions/dpwatch.fish"
rm "$program"
