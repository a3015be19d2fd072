// Package status asks a running dpwatch for its status and shows it: its parts, its audits, its jobs.
package status
