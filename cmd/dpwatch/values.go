package main

import (
	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/internal/withheld"
)

// valuesFlag adds --values, for commands whose user holds the data or the credentials.
func valuesFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("values", true, "show values of rows: group keys, texts, thresholds, the server's messages; false withholds them")
}

// revealedError is an error for readers who are authorized to see the raw data.
type revealedError struct{ cause error }

func (e *revealedError) Error() string { return withheld.Reveal(e.cause) }
func (e *revealedError) Unwrap() error { return e.cause }

// revealed returns an error with the full messages of the server; nil for nil.
func revealed(err error) error {
	if err == nil {
		return nil
	}
	return &revealedError{err}
}

// deterministicUsage is the help of --deterministic.
const deterministicUsage = "what it means that answers never vary and differ between D0 and D1: violation, warning (inconclusive), or\nignore (inconclusive, and not mentioned)"
