package ledger_test

import (
	"errors"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/read"
)

// TestActions: only a violation can be accepted, until a date in the future; only what is accepted can be revoked; an
// end does not undo what an operator decided since; and the trail has everything.
func TestActions(t *testing.T) {
	t.Parallel()
	l, o := open(t)
	e := acquire(t, o, "e")
	save := func(key, verdict string) {
		t.Helper()
		a := ledger.Audit{Query: query(), State: "decided", Verdict: verdict, EngineEpoch: "v1"}
		a.Query.Key = key
		if err := e.Audits.Save(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	save("found", "violation")
	save("honest", "no_evidence")
	ctx, later := t.Context(), time.Now().Add(time.Hour)
	fails := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	fails("accept no violation", l.Actions.Accept(ctx, "e", "honest", "ann", "why", later), ledger.ErrNoViolation)
	fails("accept until the past", l.Actions.Accept(ctx, "e", "found", "ann", "why", time.Now().Add(-time.Hour)), ledger.ErrPast)
	fails("revoke nothing", l.Actions.Revoke(ctx, "e", "found", "ann", "why"), ledger.ErrNotAccepted)
	fails("reproduce", l.Actions.Reproduced(ctx, "e", "honest", "ann", "not confirmed"), nil)
	fails("accept", l.Actions.Accept(ctx, "e", "found", "ann", "first", later), nil)
	fails("reproduce", l.Actions.Reproduced(ctx, "e", "found", "ann", "confirmed"), nil)
	all, err := l.Acceptances(ctx, "")
	if err != nil || len(all) != 1 || all[0].Key != "found" || all[0].EngineEpoch != "v1" || !all[0].Open {
		t.Fatalf("%+v, %v", all, err)
	}
	first := all[0].ID
	fails("accept again", l.Actions.Accept(ctx, "e", "found", "bob", "second", later), nil)
	if ended, err := e.Audits.EndAcceptance(ctx, first, "its date has passed"); ended || err != nil {
		t.Errorf("the end of an acceptance that was replaced: %t, %v", ended, err)
	}
	all, err = e.Audits.Acceptances(ctx)
	if err != nil || len(all) != 1 || all[0].Operator != "bob" {
		t.Fatalf("%+v, %v", all, err)
	}
	if ended, err := e.Audits.EndAcceptance(ctx, all[0].ID, "its date has passed"); !ended || err != nil {
		t.Errorf("%t, %v", ended, err)
	}
	fails("revoke what has ended", l.Actions.Revoke(ctx, "e", "found", "ann", "why"), ledger.ErrNotAccepted)
	if all, err = l.Acceptances(ctx, "e"); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	found, err := l.Stored(ctx, "found", 2)
	if err != nil || len(found) != 1 || len(found[0].Actions) != 4 || found[0].Accepted != nil || found[0].Actions[0].Action != read.ActionEnd || found[0].Actions[0].Role == "" {
		t.Errorf("%+v, %v", found, err)
	}
}
