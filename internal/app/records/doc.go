// Package records reads from the ledger what commands, pages and the admin API show: audits, coverage, budgets, alerts.
// It writes what operators decide.
package records
