// Package zoo holds mechanisms to try an auditor on: a small differentially private engine in SQL, and broken variants
// of it whose true privacy loss is known.
//
// It owns the SQL functions (sql/*.sql), their installation into a schema, and two tables: Functions, what each function
// is called with, and Mechanisms, what each does to the showcase data. It does not own that data (package showcase does)
// nor any verdict.
//
// In goes a connection; out come functions named after Google's anon_func extension (anon_count, anon_sum, anon_avg,
// epsilon as the last argument), plain noise (noisy, noisy_gauss), and a count that reads its epsilon from the session
// (dp_count). The noise is real, but in double precision and from PostgreSQL's random(): it is there to test auditors,
// not to protect people.
package zoo
