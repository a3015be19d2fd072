// Package show has the forms in which people read numbers, times and tables.
package show
