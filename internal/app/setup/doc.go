// Package setup translates the configuration into the options of each stage, and has what the rooms of internal/app
// share: the environment of the process, the logger, and the opening of ledgers.
package setup
