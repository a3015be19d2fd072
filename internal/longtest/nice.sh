#!/bin/sh
# How make starts a test binary (go test -exec): simulations, which only compute, yield the processor to the
# tests of running programs, which wait for a program that yields it, too.
case ${1##*/} in
analysis.test | calibrate.test | evidence.test) exec nice -n 19 "$@" ;;
*) exec "$@" ;;
esac
