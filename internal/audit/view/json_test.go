package view_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit/view"
)

// TestAppendJSON: the JSON form that reuses parts has the members of the plain one, whatever changes between two of
// them.
func TestAppendJSON(t *testing.T) {
	t.Parallel()
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	s := view.Status{At: at, Captured: 7, Warnings: []string{`a "quoted" one`}, Audits: []view.Entry{
		{ID: "1", State: view.Queued, Encoding: &view.Encoding{}, WaitingFor: &view.WaitingFor{Reason: "turn", Since: at, Position: 1, Of: 2}},
		{ID: "2", State: view.Decided, Encoding: &view.Encoding{}, Accepted: &view.Accepted{Operator: "ann", At: at}},
		{ID: "3", State: view.Decided, Encoding: &view.Encoding{}},
		{ID: "4", State: view.Decided, WaitingFor: &view.WaitingFor{Reason: "turn", Since: at}},
	}}
	for _, change := range []func(){
		func() {},
		func() { s.Audits[0].WaitingFor, s.Audits[1].Accepted = nil, nil },
		func() {
			s.Audits[0].Accepted, s.Audits[2].WaitingFor = &view.Accepted{At: at}, &view.WaitingFor{Since: at}
		},
		func() { s.Audits = s.Audits[:0] },
	} {
		change()
		plain, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		text, err := s.AppendJSON([]byte("  "))
		if err != nil {
			t.Fatal(err)
		}
		var want, got any
		if json.Unmarshal(plain, &want) != nil || json.Unmarshal(text, &got) != nil || !reflect.DeepEqual(want, got) {
			t.Errorf("\n%s\ninstead of\n%s", text, plain)
		}
	}
}
