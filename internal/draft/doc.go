// Package draft guesses a configuration from the catalog of a database: the privacy unit, the protected tables, how
// their rows belong to units, and the functions that add noise. Every guess carries its reason, for the person who
// reviews it.
package draft
