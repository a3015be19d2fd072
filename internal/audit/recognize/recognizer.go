package recognize

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dpwatch/dpwatch/internal/audit/inbox"
	"github.com/dpwatch/dpwatch/internal/audit/recent"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/rewrite"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// Recognized is the result of Analyze for a statement.
type Recognized struct {
	Edition  uint64 // of the catalogs with which the statement was analysed, see Recognizer.Edition
	Key      string // of the plan
	Shape    string
	Query    ledger.Query  // what the ledger stores of the plan; of a refused statement its claim alone, if it is known
	Reason   string        // of the refusal; "" = it can be audited
	Unlisted string        // the table or function for which it is refused, if the configuration may have to name it, and what is wrong with it
	Detail   string        // what the refusal found; no constants
	Advice   string        // what to do about it; "" = what the reason says
	Plan     *rewrite.Plan // only if it was just analysed
	Look     inbox.Look    // only if it was just analysed or passed
	Passed   bool          // the text was turned away without being parsed
	Before   bool          // an execution was turned away before without being parsed; only the ledger's count of the query lacks it

	Unclaimed Policy // "" = it is no unclaimed read
}

// RememberedTexts is the minimal number of statements that are recognized without being parsed again. How often clients
// ran queries without an audit is stored for four times as many.
const RememberedTexts = 4096

// Recognizer recognizes captured queries: it parses each text once as long as it remembers it, and only some of the
// texts of a flood. It is safe for concurrent use.
type Recognizer struct {
	rules     []UnclaimedRule
	announce  func(sql string) (done func())
	recovered func(r any) // of a panic
	evaluate  Evaluate
	present   atomic.Pointer[edition]

	mu       sync.Mutex                                // guards the fields below
	values   recent.Map[string, rewrite.Value]         // answers to questions about claims
	known    recent.Map[[sha256.Size]byte, Recognized] // results of the present rewriter, by everything that Analyze reads
	outlines recent.Map[uint64, int]                   // numbers of texts turned away in a row, by outline
	glimpses recent.Map[uint64, uint64]                // texts of such outlines; the statement if it was turned away without being parsed, or 0
}

// edition is one Rewriter, with its number.
type edition struct {
	*rewrite.Rewriter
	n uint64
}

// New returns a recognizer. announce is called before SQL is parsed, and what it returns afterwards; recovered receives
// what a panic of the parser gave. evaluate may be nil: then claims that are expressions are rejected.
func New(rewriter *rewrite.Rewriter, rules []UnclaimedRule, announce func(sql string) (done func()), recovered func(any), evaluate Evaluate) *Recognizer {
	r := &Recognizer{
		rules: rules, announce: announce, recovered: recovered, evaluate: evaluate, values: recent.Map[string, rewrite.Value]{N: RememberedTexts},
		known:    recent.Map[[sha256.Size]byte, Recognized]{N: RememberedTexts},
		outlines: recent.Map[uint64, int]{N: RememberedTexts}, glimpses: recent.Map[uint64, uint64]{N: glimpsed},
	}
	r.present.Store(&edition{rewriter, 1})
	return r
}

// Use replaces the Rewriter and forgets the results of the previous one; it returns false if it is the same one. Only
// one goroutine calls it.
func (r *Recognizer) Use(to *rewrite.Rewriter) bool {
	before := r.present.Load()
	if before.Rewriter == to {
		return false
	}
	r.present.Store(&edition{to, before.n + 1})
	r.Forget()
	return true
}

// Forget forgets the results of statements, and what the engine has stated about them.
func (r *Recognizer) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known.Clear()
	r.values.Clear()
}

// Edition returns the number of the present Rewriter: each has other catalogs than the one before.
func (r *Recognizer) Edition() uint64 { return r.present.Load().n }

// Recognize returns the remembered result for a statement, or parses it, unless it belongs to a flood.
func (r *Recognizer) Recognize(q capture.Query, l inbox.Look) Recognized {
	id := r.textOf(q)
	r.mu.Lock()
	known, ok := r.known.Get(id)
	r.mu.Unlock()
	if ok && known.Edition == r.Edition() {
		return known
	}
	over, before := r.passOver(l, id)
	if over {
		return Recognized{Passed: true, Look: l}
	}
	result := r.Parse(q)
	remembered := result
	remembered.Plan = nil
	result.Look, result.Before = l, before
	if result.Reason == SkippedUnevaluated {
		return result
	}
	r.mu.Lock()
	r.known.Put(id, remembered)
	r.mu.Unlock()
	return result
}

// Inline returns a query with its temporary views as subqueries; see rewrite.Rewriter.Inline.
func (r *Recognizer) Inline(q capture.Query) (inlined capture.Query) {
	if len(q.Temps) == 0 {
		return q
	}
	defer r.contained(q.SQL, func() { inlined = q })()
	return r.present.Load().Inline(q)
}

// Parts returns the queries that a refused statement runs, as queries of their own; see rewrite.Rewriter.Parts.
func (r *Recognizer) Parts(q capture.Query) (parts []capture.Query) {
	defer r.contained(q.SQL, func() { parts = nil })()
	return r.present.Load().Parts(q)
}

// contained announces a text to be parsed. What it returns handles a panic of the parser.
func (r *Recognizer) contained(sql string, failed func()) (done func()) {
	parsed := r.announce(sql)
	return func() {
		if v := recover(); v != nil {
			failed()
			r.recovered(v)
		}
		parsed()
	}
}

// Parse analyzes a statement.
func (r *Recognizer) Parse(q capture.Query) Recognized {
	present := r.present.Load()
	result := Recognized{Edition: present.n}
	plan, err := r.analyzeWith(present.Rewriter, q)
	if err != nil {
		result.Reason, result.Unlisted = ReasonOf(err), Unlisted(err)
		var u *rewrite.UnsupportedError
		if errors.As(err, &u) {
			result.Detail, result.Advice = u.Detail, u.Hint
			result.Query.Claim = claimOf(u.Claim)
			if u.Reason == reasons.SettingsUncertain {
				settled, _ := present.Settle(q)
				result.Detail, result.Advice = explainDoubt(settled.Doubt, u.Detail, u.Hint)
			}
			result.Detail = result.Detail[:min(len(result.Detail), maxDetail)]
		}
		return result
	}
	result.Key, result.Shape, result.Query, result.Plan = plan.Key, plan.Shape, QueryOf(plan, []string{cmp.Or(plan.Destination, read.ToClient)}), plan
	result.Unclaimed = r.policyOf(q, plan)
	return result
}

// Analyze analyzes a statement with the present Rewriter, and returns its Edition.
func (r *Recognizer) Analyze(q capture.Query) (*rewrite.Plan, uint64, error) {
	present := r.present.Load()
	plan, err := r.analyzeWith(present.Rewriter, q)
	return plan, present.n, err
}

// analyzeWith calls rewrite and turns a panic into an error, so that no statement ends the auditor with a panic.
func (r *Recognizer) analyzeWith(rewriter *rewrite.Rewriter, q capture.Query) (plan *rewrite.Plan, err error) {
	defer r.contained(q.SQL, func() { err = ErrPanic })()
	return r.withValues(rewriter, q)
}

// textOf hashes everything of a query that Analyze reads.
func (r *Recognizer) textOf(q capture.Query) [sha256.Size]byte {
	var b []byte
	str := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	params := func(all []capture.Param) {
		b = binary.AppendUvarint(b, uint64(len(all)))
		for _, p := range all {
			b = binary.BigEndian.AppendUint32(b, p.OID)
			b = binary.BigEndian.AppendUint16(b, uint16(p.Format)) //nolint:gosec // only to tell values apart
			if p.Null {
				b = append(b, 0)
				continue
			}
			b = append(b, 1)
			str(string(p.Value))
		}
	}
	for _, s := range []string{q.SQL, q.User, q.Database, q.ApplicationName} {
		str(s)
	}
	flags := byte(q.Protocol)
	settled, assumed := r.present.Load().Settle(q)
	if assumed {
		flags |= 1 << 7
	}
	if rewrite.RanNothing(q.Tag) {
		flags |= 1 << 6
	}
	b = append(b, flags)
	b = capture.AppendBinary(b, capture.Query{Temporary: settled.Temporary, Temps: q.Temps, Doubt: settled.Doubt})
	params(q.Params)
	for _, name := range slices.Sorted(maps.Keys(q.Settings)) {
		str(name)
		str(q.Settings[name])
	}
	b = q.Stated.AppendBinary(b)
	for _, step := range q.Then {
		str(step.SQL)
		b = step.Stated.AppendBinary(b)
		b = append(b, byte(step.Protocol))
		params(step.Params)
	}
	return sha256.Sum256(b)
}

// ErrPanic is the error of a parser that panicked.
var ErrPanic = errors.New("panic")

// Reasons of this package for skipping a statement, besides those of rewrite and schedule.
const (
	SkippedPanic = "internal_error"
	SkippedOther = "other"
	// SkippedUnevaluated: the shadow database, which evaluates a claim, is away.
	SkippedUnevaluated = "claim_not_evaluated"
)

// ReasonOf returns the reason of a refusal, fit for a metric label.
func ReasonOf(err error) string {
	var u *rewrite.UnsupportedError
	switch {
	case errors.As(err, &u):
		return string(u.Reason)
	case errors.Is(err, ErrPanic):
		return SkippedPanic
	case errors.Is(err, errUnevaluated):
		return SkippedUnevaluated
	default:
		return SkippedOther
	}
}

// maxUnlisted bounds the length of what Unlisted returns: names come from clients.
const maxUnlisted = 200

// Unlisted returns which table or function of a refused statement the configuration or the shadow database lacks, as
// text; "" for other refusals.
func Unlisted(err error) string {
	var u *rewrite.UnsupportedError
	if !errors.As(err, &u) {
		return ""
	}
	switch u.Reason {
	case reasons.UnknownTable, reasons.UnknownFunction, reasons.NoCopy:
		return strings.ToValidUTF8(u.Detail[:min(len(u.Detail), maxUnlisted)], "")
	}
	return ""
}

// Parsing takes a hundred times as long as reading a text once. If many texts that look alike were turned away in a
// row, only a sample of them is parsed, and those that come again.
const (
	floodAfter  = 32      // texts turned away in a row
	floodSample = 16      // then one in floodSample is parsed
	glimpsed    = 1 << 16 // minimal number of texts that are remembered, to recognise repeated ones
)

// passOver reports whether a text is turned away without being parsed. id identifies the statement with its comments,
// parameters and settings. before reports that the same statement was turned away so, and is to be parsed now.
func (r *Recognizer) passOver(l inbox.Look, id [sha256.Size]byte) (over, before bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	turned, _ := r.outlines.Get(l.Outline)
	if turned < floodAfter {
		return false, false
	}
	statement := max(1, binary.BigEndian.Uint64(id[:]))
	if glimpse, again := r.glimpses.Get(l.Text); again {
		if before = glimpse == statement; before {
			r.glimpses.Put(l.Text, 0)
		}
		return false, before
	}
	r.outlines.Put(l.Outline, turned+1)
	if turned%floodSample == 0 {
		r.glimpses.Put(l.Text, 0)
		return false, false
	}
	r.glimpses.Put(l.Text, statement)
	return true, false
}

// Outcome records whether a text that was parsed was turned away.
func (r *Recognizer) Outcome(l inbox.Look, turnedAway bool) {
	if l.Outline == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	turned, _ := r.outlines.Get(l.Outline)
	switch {
	case !turnedAway:
		r.outlines.Put(l.Outline, 0)
	case turned < floodAfter:
		r.outlines.Put(l.Outline, turned+1)
	}
}

// AnalyzeStored is Analyze for the statement of a stored audit. Hostile SQL can crash the parser: the ledger records
// the attempt. An error that has no reason is that of the ledger.
func (r *Recognizer) AnalyzeStored(ctx context.Context, engine *ledger.Engine, key string, q capture.Query) (*rewrite.Plan, uint64, error) {
	if err := engine.Audits.Parsing(ctx, key, false); err != nil {
		return nil, 0, err
	}
	plan, edition, refused := r.Analyze(q)
	if err := engine.Audits.Parsing(ctx, key, true); err != nil {
		return nil, 0, err
	}
	return plan, edition, refused
}
