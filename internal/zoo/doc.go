// Package zoo holds mechanisms for testing auditors: a small differentially private engine in SQL, and broken variants
// of it with known privacy loss.
//
// It owns the SQL functions (sql/*.sql), their installation into a schema, and Functions, the table of their
// signatures. Its tests hold their privacy loss on the showcase data. It does not own that data (package showcase does)
// or verdicts.
//
// In: a connection. Out: functions named after Google's anon_func extension (anon_count, anon_sum, anon_avg, with
// epsilon as the last argument), plain noise (noisy, noisy_gauss), and a count that reads its epsilon from the session
// (dp_count). The noise is real, but in double precision and from PostgreSQL's random(): use it to test auditors, not
// to protect people.
package zoo
