// Package calibrate audits the functions of a differentially private engine with known data, without a proxy, and the
// auditor with mechanisms that are known to be right or wrong (package zoo).
//
// It owns the templates of functions, the data sets that it makes in the engine's database, the battery of audits, and
// the report. It does not own trials (replay), evidence (internal/audit) or goodness of fit (analysis/noise).
//
// In: a connection string and templates such as count=my_count($value, $epsilon). Out: for each function, number of
// rows and epsilon, a verdict with its probable cause, and how well the noise fits its law. The rows are made here, so
// reports may show what an engine answers.
package calibrate
