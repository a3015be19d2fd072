package tap

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/proxy/internal/tracker"
)

// together drives the taps and the tracker of one session.
type together struct {
	t        *testing.T
	c        *conversation
	rnd      *rand.Rand
	drainer  *Drainer
	session  *Session
	cw, sw   *Walker
	captured []capture.Query
	longest  int // of a captured statement

	sent, walked       int // client bytes that the server has, and that the client's walker has seen
	answered, answersW int // server bytes that the client has, and that the server's walker has seen
	largest            int // chunk
	drains             int // one of so many moves drains; 0 = none
}

func (g *together) Offer(q capture.Query) bool {
	g.captured = append(g.captured, q)
	return true
}

func newTogether(t *testing.T, rnd *rand.Rand, c *conversation, budget, longest int) *together {
	g := &together{t: t, c: c, rnd: rnd, longest: longest, largest: 1 + rnd.IntN(5)*rnd.IntN(2000), drains: rnd.IntN(4) * rnd.IntN(20)}
	g.drainer = NewDrainer(Options{Sink: g, ClaimPrefix: "dp", BudgetBytes: budget, MaxStatementBytes: longest, Interval: time.Hour, Logger: zap.NewNop(), MaybeProtected: capture.Mentions([]string{"users"})})
	g.session = g.drainer.Open(1, tracker.Startup{Version: 3 << 16, User: "ann", Database: "bank", Settings: map[string]string{}})
	g.cw, g.sw = g.session.Walkers()
	c.back('S', "client_encoding\x00UTF8\x00")
	c.back('S', "standard_conforming_strings\x00on\x00")
	c.back('Z', "I")
	c.wait()
	return g
}

// limit returns how far a stream can go, given how far the other one is.
func limit(marks *[]mark, length, other int) int {
	for len(*marks) > 0 && (*marks)[0].need <= other {
		*marks = (*marks)[1:]
	}
	if len(*marks) > 0 {
		return min(length, (*marks)[0].at)
	}
	return length
}

// run plays the conversation to its end. The relay writes a chunk before it walks it, in each direction, so an answer
// can be walked before its question.
func (g *together) run() {
	c := g.c
	for g.walked < len(c.client) || g.answersW < len(c.server) {
		if g.drains > 0 && g.rnd.IntN(g.drains) == 0 {
			g.drainer.pass()
		}
		switch g.rnd.IntN(4) {
		case 0:
			if g.walked == g.sent {
				if n := g.chunk(limit(&c.waits, len(c.client), g.answered) - g.sent); n > 0 {
					g.cw.Sending()
					g.sent += n
				}
			}
		case 1:
			if g.walked < g.sent {
				g.cw.Walk(c.client[g.walked:g.sent])
				g.walked = g.sent
			}
		case 2:
			if g.answersW == g.answered {
				g.answered += g.chunk(limit(&c.needs, len(c.server), g.sent) - g.answered)
			}
		case 3:
			if g.answersW < g.answered {
				g.sw.Walk(c.server[g.answersW:g.answered])
				g.answersW = g.answered
			}
		}
	}
}

func (g *together) chunk(most int) int {
	if most <= 0 {
		return 0
	}
	return min(most, 1+g.rnd.IntN(g.largest))
}

// text returns a statement's parameters as the conversation writes them.
func text(params []capture.Param) string {
	values := make([]string, len(params))
	for i, p := range params {
		values[i] = string(p.Value)
	}
	return strings.Join(values, ",")
}

// check compares what was captured with what was run: nothing else is captured, in order, and all of it if all is
// wanted. It returns the number of statements that are missing.
func (g *together) check(all bool) {
	g.t.Helper()
	wants := g.c.wants
	for _, q := range g.captured {
		found := false
		for len(wants) > 0 && !found {
			w := wants[0]
			wants = wants[1:]
			found = w.sql == q.SQL && w.outcome == q.Outcome && w.state == q.SQLState && w.tag == q.Tag && w.params == text(q.Params) && w.extended == (q.Protocol == capture.Extended)
			switch {
			case found && q.Stated != w.stated:
				g.t.Errorf("%.60q: the engine states %+v, want %+v", q.SQL, q.Stated, w.stated)
			case found && !q.Doubt.Has("dp.epsilon") && q.Settings["dp.epsilon"] != w.epsilon:
				g.t.Errorf("%.60q: epsilon is certain to be %q, want %q", q.SQL, q.Settings["dp.epsilon"], w.epsilon)
			case !found && all && len(w.sql) <= g.longest && strings.Contains(w.sql, "users"):
				g.t.Errorf("not captured: %.60q %s", w.sql, w.outcome)
			}
		}
		if !found {
			g.t.Fatalf("captured, but not run so, or not at that time: %.60q %s %s %s %.20q", q.SQL, q.Outcome, q.SQLState, q.Tag, text(q.Params))
		}
	}
}

// converse plays a conversation and checks that the next simple statement is captured.
func converse(t *testing.T, seed uint64, budget, longest int) tracker.Counts {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, uint64(budget)))
	c := newConversation(rnd, budget < 1<<20)
	g := newTogether(t, rnd, c, budget, longest)
	blind := rnd.IntN(4) // how often the client waits before it sends the next exchange
	for range 1 + rnd.IntN(30) {
		c.add()
		if blind == 0 || rnd.IntN(1+blind) == 0 {
			c.wait()
		}
	}
	if c.saved != nil {
		c.control()
	}
	c.wait()
	g.run()
	g.drainer.pass()
	c.quiet = true // so that the bounds have room for it
	probe := fmt.Sprintf("SELECT 'probe %d' FROM users", seed)
	c.wants = append(c.wants, want{sql: probe, tag: "SELECT 1", epsilon: c.values["epsilon"]})
	c.front('Q', probe+"\x00")
	c.back('T', "\x00\x00")
	c.back('C', "SELECT 1\x00")
	c.back('Z', "I")
	g.run()
	g.drainer.pass()
	if n := len(g.captured); n == 0 || g.captured[n-1].SQL != probe {
		t.Error("the next simple statement after an idle ReadyForQuery was not captured")
	}
	g.session.End()
	g.drainer.pass()
	counts, _ := g.drainer.Counts()
	g.check(budget >= 1<<20)
	if counts.Off[tracker.OffPanic]+counts.Off[tracker.OffProtocol]+counts.Off[tracker.OffPairing] > 0 {
		t.Errorf("interruptions: %v", counts.Off)
	}
	return counts
}

// TestTogether: taps and tracker together capture what is right, whatever the interleaving and however small their
// bounds, and come back into step.
func TestTogether(t *testing.T) {
	t.Parallel()
	conversations := uint64(500)
	if testing.Short() {
		conversations = 100
	}
	for _, budget := range []int{1 << 10, 2 << 10, 4 << 10, 16 << 10, 1 << 20} {
		t.Run(fmt.Sprint(budget), func(t *testing.T) {
			t.Parallel()
			var gaps, captured uint64
			for seed := range conversations {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					counts := converse(t, seed, budget, 600)
					gaps, captured = gaps+counts.Off[tracker.OffOverflow], captured+counts.Captured
				})
			}
			if t.Logf("%d gaps, %d captured", gaps, captured); (gaps > 0) != (budget < 1<<20) {
				t.Errorf("%d gaps", gaps)
			}
		})
	}
}

// FuzzTogether is TestTogether for any seed and bounds.
func FuzzTogether(f *testing.F) {
	f.Add(uint64(1), uint16(1<<10), uint16(100))
	f.Add(uint64(2), uint16(9000), uint16(600))
	f.Fuzz(func(t *testing.T, seed uint64, budget, longest uint16) {
		converse(t, seed, 1<<10+int(budget), 60+int(longest))
	})
}
