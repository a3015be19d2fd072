// Package admin opens listeners and serves the admin port on them.
package admin
