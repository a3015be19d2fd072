// Package setup has what the rooms of internal/app share: the environment of the process, the logger, limits, the
// configuration file, the opening of ledgers, and the options of what does not parse SQL. See package stages for the
// others.
package setup
