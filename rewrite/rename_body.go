package rewrite

import (
	"errors"
	"strings"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/body"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// maxRenamedBytes is the longest body that RenameBody changes.
const maxRenamedBytes = 1 << 20

// RenameBody is a body.Renamer. Names are resolved as in queries, and an *UnsupportedError rejects a body like a query.
// User functions may be called.
func RenameBody(text, schema string, scope body.Scope) (renamed string, reads bool, err error) {
	r, err := New(Options{
		Protected: scope.Moved, Public: scope.Public, Others: scope.Others, SearchPath: scope.SearchPath,
		AllowFunctions: []string{AnyFunction}, MaxBytes: maxRenamedBytes,
	})
	if err != nil {
		return "", false, err
	}
	query := capture.Query{SQL: strings.TrimRight(strings.TrimSpace(text), "; \n\t")}
	if scope.Arguments > 0 {
		query.Protocol, query.Params = capture.Extended, make([]capture.Param, scope.Arguments)
	}
	plan, err := r.Analyze(query)
	var refused *UnsupportedError
	switch {
	case errors.As(err, &refused) && (refused.Reason == reasons.NoProtectedTable || refused.Reason == reasons.SystemCatalogOnly):
		return "", false, nil
	case err != nil:
		return "", true, err
	}
	renamed, err = plan.For(schema)
	return renamed, true, err
}
