package ident

import (
	"fmt"
	"strings"
)

// Each returns every name in a format, joined by a separator; in the format %[1]s is the quoted name and %[2]d its
// number from 1.
func Each(names []string, format, separator string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = fmt.Sprintf(format, Quote(name), i+1)
	}
	return strings.Join(all, separator)
}
