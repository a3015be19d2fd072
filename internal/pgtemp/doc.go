// Package pgtemp runs a temporary PostgreSQL server: for the demo, for tests, and for trying dpwatch without a
// database.
//
// It owns the search for the server binaries, one private directory for everything, the server process, and the removal
// of both: after Stop, after Ctrl-C, and after SIGKILL of the parent. It does not own the content of the databases, and
// it never downloads anything.
//
// In: Options. Out: a Cluster with connection strings, or an error that says what to do: a *NotFoundError if there are
// no binaries, a *StartError if the server does not start.
//
// # What is started
//
// initdb, then the server itself as a direct child (no pg_ctl), listening on 127.0.0.1 with SCRAM passwords and on a
// socket inside the directory. If the caller is root, both run as postgres, or else nobody, or else daemon. Durability
// is switched off, because the data does not need to outlive the process.
//
// # Who cleans up
//
// Stop does. If the parent dies first, a watchdog does: a /bin/sh process that waits on a pipe whose other end only the
// parent holds. The pipe closes when the parent ends for any reason; the watchdog then stops the server and removes the
// directory. The same script works on Linux and macOS. If the watchdog is killed too, the next Start in the same
// temporary directory sweeps the remains.
package pgtemp
