// Package check has the checks of `doctor`.
package check
