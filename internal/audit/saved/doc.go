// Package saved has the form in which the ledger keeps the progress of an audit, and reads reports and figures from it
// without an auditor.
package saved
