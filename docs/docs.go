// Package docs holds pages that the program shows itself.
package docs

import _ "embed"

// Causes is causes.md, in Markdown.
//
//go:embed causes.md
var Causes []byte
