// Package docs holds pages that the program shows itself.
package docs

import (
	_ "embed"
	"strings"
)

// Causes is causes.md, in Markdown.
//
//go:embed causes.md
var Causes []byte

// Cause returns the section of a cause in Causes without its heading, in Markdown; "" = there is none.
func Cause(code string) string {
	_, section, _ := strings.Cut(string(Causes), "\n## "+code+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	return strings.TrimSpace(section)
}
