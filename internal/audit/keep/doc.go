// Package keep writes to the ledger what must outlive the process: the states of audits, and what was observed. While
// the ledger is away, both wait in memory and in the spool.
package keep
