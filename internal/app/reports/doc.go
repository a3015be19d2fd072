// Package reports writes the report of an audit or a period with its signed manifest, and verifies and reproduces
// reports.
package reports
