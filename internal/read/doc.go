// Package read has the read model: an audit as people see it. A list of audits is sorted, filtered and paged here, and
// text, JSON, pages and reports are written from the same values.
//
// It reads no ledger and no evidence, and parses no SQL: see packages ledger, internal/app/records and
// internal/app/findings.
package read
