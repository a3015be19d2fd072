// Package app connects the stages: it translates the configuration into the options of each, and runs the relay process, the
// auditor process, the audit of one query and the analysis of recorded results. Commands read flags, call it, and print.
package app
