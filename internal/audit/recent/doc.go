// Package recent has a map that forgets what was not used for long.
package recent
