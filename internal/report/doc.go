// Package report writes reports about audits for an auditor: HTML, PDF, and the signed manifest that says what a report
// was made from. In: a document of sections, tables and plots. Out: the bytes of files. It does no I/O and computes no
// statistics. The caller withholds what must not be shown.
package report
