package recognize

import (
	"context"
	"errors"
	"fmt"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/rewrite"
)

// Evaluate returns the number to which a server evaluates the SQL text of an expression, or why it has none. An error
// is one of the connection.
type Evaluate func(ctx context.Context, expression string) (number float64, fault string, err error)

// mostExpressions bounds the different expressions in the claims of one statement.
const mostExpressions = 16

// errUnevaluated is wrapped by the error of a statement whose claim could not be evaluated now.
var errUnevaluated = errors.New("the shadow database, which evaluates the claim, is away")

// withValues analyzes a statement. Expressions in its claims are evaluated, each once as long as its value is
// remembered.
func (r *Recognizer) withValues(rewriter *rewrite.Rewriter, q capture.Query) (*rewrite.Plan, error) {
	plan, err := rewriter.Analyze(q)
	var values map[string]rewrite.Value
	for len(values) < mostExpressions {
		var refusal *rewrite.UnsupportedError
		if !errors.As(err, &refusal) || refusal.Expression() == "" || r.evaluate == nil {
			break
		}
		value, fault := r.value(refusal.Expression())
		if fault != nil {
			return nil, fmt.Errorf("%w: %w", errUnevaluated, fault)
		}
		if values == nil {
			values = map[string]rewrite.Value{}
		}
		values[refusal.Expression()] = value
		plan, err = rewriter.AnalyzeWith(q, values)
	}
	return plan, err
}

// value returns the value of an expression.
func (r *Recognizer) value(expression string) (rewrite.Value, error) {
	r.mu.Lock()
	v, known := r.values.Get(expression)
	r.mu.Unlock()
	if known {
		return v, nil
	}
	var err error
	if v.Number, v.Fault, err = r.evaluate(context.Background(), expression); err != nil {
		return v, err
	}
	r.mu.Lock()
	r.values.Put(expression, v)
	r.mu.Unlock()
	return v, nil
}
