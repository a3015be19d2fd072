package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/ledger"
)

// TestSamples: at most five samples of a reason are stored, of as many clients as possible, the latest of each; the
// same statement is stored once.
func TestSamples(t *testing.T) {
	t.Parallel()
	l, o := open(t)
	e := acquire(t, o, "e")
	now := time.Now().UTC().Truncate(time.Second)
	seq := int64(0)
	record := func(samples ...ledger.Sample) {
		t.Helper()
		seq++
		if err := e.Record(t.Context(), ledger.Batch{Term: e.Term(), Seq: seq, Samples: samples}); err != nil {
			t.Fatal(err)
		}
	}
	sample := func(user string, i int) ledger.Sample {
		return ledger.Sample{Reason: "bad_claim", User: user, Database: "d", Shape: fmt.Sprint("shape ", i), Detail: "d", Advice: "a", Text: "SELECT 'x'", At: now.Add(time.Duration(i) * time.Second)}
	}
	record(sample("ann", 1))
	for i := range 20 {
		record(sample("flood", i))
	}
	record(sample("flood", 19), ledger.Sample{Reason: "other", User: "bob", At: now})
	v, err := l.Volumes(t.Context(), "", now)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, s := range v.Samples {
		got += s.Reason + " " + s.User + " " + s.Shape + " " + s.Text + "; "
	}
	const x = " SELECT 'x'; "
	if want := "bad_claim flood shape 19" + x + "bad_claim flood shape 18" + x + "bad_claim flood shape 17" + x + "bad_claim flood shape 16" + x + "bad_claim ann shape 1" + x + "other bob  ; "; got != want {
		t.Errorf("stored:\n%s\nwant:\n%s", got, want)
	}
	if v, err := l.Volumes(t.Context(), "", now.Add(2*time.Hour)); err != nil || len(v.Samples) > 0 {
		t.Errorf("later: %+v, %v", v.Samples, err)
	}
}
