// Package oneoff runs what needs no running dpwatch: the audit of one query, and the analysis of recorded results.
package oneoff
