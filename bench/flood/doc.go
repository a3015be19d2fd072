// Package flood sends many distinct texts of a few shapes through a real dpwatch run with a ledger, and then one broken
// query: it measures how soon that query has its first trials, the memory of the auditor and the size of the ledger,
// and compares the ledger with what was sent.
package flood
