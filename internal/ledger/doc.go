// Package ledger stores what an auditor must not forget, in one schema of a PostgreSQL database: the captured queries
// by identity, with who runs them and how often; the statements that were skipped; audits with their evidence, and
// their history. The auditors of many engines can share a ledger; an engine has one auditor at a time.
//
// It owns the schema and its migrations. It does not interpret evidence, replay or parse SQL.
//
// Errors give a server's SQLSTATE in place of its message, which may quote what was written (see sqlstate.Withhold).
//
// The role of the ledger owns the schema, and no other role has privileges on it. The replay role must not be able to
// read it: see Ledger.CheckHidden.
package ledger
