// Package check has the checks of `config check --connect` and `doctor`.
package check
