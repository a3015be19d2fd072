// Package auditor runs the auditor process of an engine, the workers on other machines, and the delivery of alerts.
package auditor
