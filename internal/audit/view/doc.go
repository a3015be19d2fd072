// Package view has what the auditor shows of itself: its Status and each audit in it, as data. Its JSON form is a
// contract with scripts.
package view
