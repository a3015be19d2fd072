package recognize

import (
	"context"
	"errors"
	"fmt"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/rewrite"
)

// Evaluate asks a server a question about the claim of a statement. A claim that has no value is one with a fault. An
// error is one of the connection.
type Evaluate func(ctx context.Context, q rewrite.Question) (rewrite.Value, error)

// mostQuestions bounds the different questions about the claims of one statement or sequence.
const mostQuestions = 16

// errUnevaluated is wrapped by the error of a statement whose claim could not be evaluated now.
var errUnevaluated = errors.New("the shadow database or the engine, which evaluates the claim, is away")

// Analyze analyzes a statement with the answers of a server to questions about its claim; evaluate may be nil: then a
// statement with questions is refused.
func Analyze(ctx context.Context, rewriter *rewrite.Rewriter, q capture.Query, evaluate Evaluate) (*rewrite.Plan, error) {
	plan, err := rewriter.Analyze(q)
	values := map[string]rewrite.Value{}
	for len(values) < mostQuestions {
		var refusal *rewrite.UnsupportedError
		if evaluate == nil || !errors.As(err, &refusal) || refusal.Question() == nil {
			break
		}
		question := *refusal.Question()
		value, fault := evaluate(ctx, question)
		if fault != nil {
			return nil, fmt.Errorf("%w: %w", errUnevaluated, fault)
		}
		values[question.SQL] = value
		plan, err = rewriter.AnalyzeWith(q, values)
	}
	return plan, err
}

// withValues analyzes a statement. Each question is asked once as long as its answer is remembered.
func (r *Recognizer) withValues(rewriter *rewrite.Rewriter, q capture.Query) (*rewrite.Plan, error) {
	if r.evaluate == nil {
		return rewriter.Analyze(q)
	}
	return Analyze(context.Background(), rewriter, q, r.value)
}

// value returns the answer to a question.
func (r *Recognizer) value(ctx context.Context, q rewrite.Question) (rewrite.Value, error) {
	key := q.SQL
	if q.Asked {
		key = fmt.Sprintf("%s %q %q", key, q.Settings, q.SearchPath)
	}
	r.mu.Lock()
	v, known := r.values.Get(key)
	r.mu.Unlock()
	if known {
		return v, nil
	}
	v, err := r.evaluate(ctx, q)
	if err != nil {
		return v, err
	}
	r.mu.Lock()
	r.values.Put(key, v)
	r.mu.Unlock()
	return v, nil
}
