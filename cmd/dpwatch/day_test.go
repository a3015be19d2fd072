package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// onCall is a receiver of webhooks that can be away.
type onCall struct {
	away     atomic.Bool
	mu       sync.Mutex // guards the field below
	received []alert.Message
}

func (o *onCall) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if o.away.Load() {
		http.Error(w, "away", http.StatusServiceUnavailable)
		return
	}
	var event struct{ Data alert.Message }
	if err == nil {
		err = json.Unmarshal(body, &event)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	event.Data.Delivery = r.Header.Get("webhook-id")
	o.mu.Lock()
	o.received = append(o.received, event.Data)
	o.mu.Unlock()
}

// states returns the statuses of the messages of each alert about a query, without repetitions, which have the id of
// the first one.
func (o *onCall) states() map[string][]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	all, seen := map[string][]string{}, map[string]bool{}
	for _, m := range o.received {
		if m.Query != "" && !seen[m.Delivery] {
			seen[m.Delivery] = true
			all[m.ID] = append(all[m.ID], m.Status)
		}
	}
	return all
}

// TestDay is a day of an operator in a minute: the queries of an ORM, an engine that breaks and is repaired, a
// reload, a restart, and a ledger and a receiver that are away. Every message arrives once, in order, every query of
// the day is audited at the end, and every alert has ended. That an honest query is called a violation has a
// probability of at most 1e-6, with audit.confidence.
func TestDay(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	const morning, evening = 4, 2 // queries
	duty := &onCall{}
	receiver := httptest.NewServer(duty)
	defer receiver.Close()
	s := startSidecar(t, "LEDGER ADMIN TOKEN\nalerts:\n  receivers:\n    - {name: duty, type: webhook, url: "+receiver.URL+", secret: key}\n")
	conn := pgtest.Connect(t, s.direct)
	sent := 0
	client := s.connect(t)
	send := func(n int) {
		for range n {
			sent++
			exec0(t, client, fmt.Sprintf(`SELECT noisy(count("people"."id"), 4) AS "n°%d" FROM "people" WHERE "people"."id" <> $1 /*dp_epsilon='0.5'*/`, sent), pgx.QueryExecModeExec, 10_000+sent)
		}
	}
	verdicts := func(want string) func() bool {
		return func() bool {
			r := call(t, "", "audits", "list", "--limit", "0", "-o", "json", "--address", s.admin, "--token-file", file(t, "token", s.token))
			var l struct {
				Audits []struct{ State, Verdict string }
			}
			if r.code != exitDone || json.Unmarshal([]byte(r.stdout), &l) != nil || len(l.Audits) != sent {
				return false
			}
			return !slices.ContainsFunc(l.Audits, func(a struct{ State, Verdict string }) bool { return a.State != "decided" || a.Verdict != want })
		}
	}
	deploy := func(label, body string) {
		t.Helper()
		pgtest.Exec(t, s.direct, "CREATE OR REPLACE FUNCTION noisy(value float8, scale float8) RETURNS float8 LANGUAGE sql VOLATILE AS '"+body+"'")
		if code, text := s.ask(t, http.MethodPost, "/api/engine?label="+label); code != http.StatusNoContent {
			t.Fatalf("%d %s", code, text)
		}
	}
	const right = "SELECT round((value + scale * ln((1 - random()) / (1 - random()))) * 1024) / 1024"

	send(morning)
	s.until(t, "the queries of the morning are audited", verdicts("no_evidence"))
	deploy("broken", "SELECT value")
	firing := func() (n int) {
		for _, states := range duty.states() {
			if states[len(states)-1] == alert.Firing {
				n++
			}
		}
		return n
	}
	s.until(t, "each query has an alert", func() bool { return firing() == morning })

	text, err := os.ReadFile(s.config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.config, []byte(strings.Replace(string(text), "share: 1,", "share: 0.9,", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	before := s.auditor(t, 0)
	if err := s.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	s.auditor(t, before)
	s.until(t, "the violations are there after the reload", verdicts("violation"))

	duty.away.Store(true)
	deploy("repaired", right)
	s.until(t, "the queries are right again", verdicts("no_evidence"))
	client.Close(t.Context()) //nolint:errcheck // the session ends
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-s.ended
	s.run(t, s.config)
	client = s.connect(t)
	s.until(t, "the audits are restored", verdicts("no_evidence"))
	exec0(t, conn, "ALTER SCHEMA dpwatch_ledger RENAME TO away")
	send(evening)
	time.Sleep(2 * time.Second) // for attempts of all that writes to the ledger
	exec0(t, conn, "ALTER SCHEMA away RENAME TO dpwatch_ledger")
	duty.away.Store(false)

	s.until(t, "every query of the day is audited", verdicts("no_evidence"))
	s.until(t, "every alert has ended", func() bool { return firing() == 0 && len(duty.states()) == morning })
	for id, states := range duty.states() {
		if !slices.Equal(states, []string{alert.Firing, alert.Ended}) {
			t.Errorf("alert %s: messages %v, want its beginning and its end", id, states)
		}
	}
	list := call(t, "", "alerts", "list", "--config", s.config)
	for line := range strings.Lines(list.stdout) {
		if strings.Contains(line, "firing") && !strings.Contains(line, "budget exceeded") { // the analyst has received more than the budget
			t.Errorf("an alert fires at the end of the day: %s", line)
		}
	}
}
