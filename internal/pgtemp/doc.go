// Package pgtemp runs a throw-away PostgreSQL server: for the demo, for tests, and for whoever wants to try dpwatch
// without a database of their own.
//
// It owns finding the server's binaries, one private directory with everything in it, the server process, and the
// promise that both are gone afterwards: after Stop, after Ctrl-C, and after the parent was killed with SIGKILL. It
// does not own what is inside the databases, and it never downloads anything.
//
// In go Options; out comes a Cluster with connection strings, or one error that says what to do: a *NotFoundError when
// there are no binaries, a *StartError when they do not get going.
//
// # What is started
//
// initdb, then the server itself as a direct child (no pg_ctl), listening on 127.0.0.1 with SCRAM passwords and on a
// socket inside the directory. When the caller is root the two run as postgres, else nobody, else daemon. Durability is
// switched off: the data is not meant to outlive the process.
//
// # Who cleans up
//
// Stop does. Should the parent die before that, a watchdog does: a /bin/sh process that does nothing but wait on a pipe
// whose other end only the parent holds. The pipe closes when the parent ends, however it ends; the watchdog then stops
// the server and removes the directory. The same program works on Linux and macOS. Should the watchdog be killed too, the
// next Start in the same temporary directory sweeps what is left.
package pgtemp
