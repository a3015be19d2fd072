// Package report writes reports about audits for an auditor: HTML, and the signed manifest that says what a report was
// made from. In: a document of sections, tables and charts. Out: the bytes of files. It does no I/O and computes no
// statistics. The caller withholds what must not be shown.
package report
