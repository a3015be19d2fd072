package tap

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/proxy/internal/tracker"
)

// TestStating: only the numbers of claims leave the tap, and nothing of a notice stays in it. What is no claim as a
// whole states nothing, and a message that follows an empty one is not read.
func TestStating(t *testing.T) {
	t.Parallel()
	notice := func(fields ...string) []byte { return typed('N', strings.Join(fields, "\x00")+"\x00\x00") }
	said := func(message string) []byte {
		return notice("SINFO", "VINFO", "C00000", "M"+message, "Dsecret", "Wsecret")
	}
	status := func(name, value string) []byte { return typed('S', name+"\x00"+value+"\x00") }
	long := strings.Repeat("secret ", 100)
	for name, c := range map[string]struct {
		from   []byte
		want   capture.Stated
		unread uint64
	}{
		"a notice":               {from: said("dp.epsilon=2 dp.delta=1e-6"), want: capture.Stated{Epsilon: 2, Delta: 1e-6}},
		"a status report":        {from: join(status("dp.epsilon", "2"), status("dp.delta", "1e-6")), want: capture.Stated{Epsilon: 2, Delta: 1e-6}},
		"the largest":            {from: join(said("dp.epsilon=2"), said("dp.epsilon=3"), status("dp.epsilon", "1")), want: capture.Stated{Epsilon: 3}},
		"other fields first":     {from: notice("Dsecret dp.epsilon=9", "Mdp.rho=1"), want: capture.Stated{Rho: 1}},
		"a long detail":          {from: notice("Mdp.rho=1", "D"+long), want: capture.Stated{Rho: 1}},
		"only in the detail":     {from: notice("Msecret", "Ddp.epsilon=9")},
		"a long message":         {from: said(long)},
		"behind a long message":  {from: notice("D"+long, "Mdp.epsilon=1")},
		"a message with a claim": {from: said("the secret costs dp.epsilon=9")},
		"a quoted claim":         {from: said(`identifier "dp.epsilon=9 secret" will be truncated to "dp.epsilon=9"`)},
		"an unfinished message":  {from: typed('N', "Mdp.epsilon=9")},
		"a claim and more":       {from: said("dp.epsilon=1 secret"), unread: 1},
		"a claim and much more":  {from: said("dp.epsilon=1 " + long), unread: 1},
		"no number":              {from: join(said("dp.epsilon=secret"), status("dp.delta", "secret")), unread: 2},
		"an earlier claim stays": {from: join(said("dp.epsilon=1"), said("dp.epsilon=secret")), want: capture.Stated{Epsilon: 1}, unread: 1},
		"no claim any more":      {from: status("dp.epsilon", "")},
		"another setting":        {from: status("application_name", "dp.epsilon=9")},
		"a row":                  {from: join(typed('N', ""), typed('D', "Mdp.epsilon=9\x00\x00"))},
		"before the statement":   {from: join(said("dp.epsilon=9"), typed('2', ""))},
		"about the one before":   {from: join(said("dp.epsilon=9"), typed('C', "DO\x00"))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, chunk := range []int{1, 7, 1 << 20} {
				side := newTapped(64 << 10)
				_, w := side.Walkers()
				w.stamps = false
				for b := c.from; len(b) > 0; b = b[min(chunk, len(b)):] {
					w.Walk(b[:min(chunk, len(b))])
				}
				before := len(side.server.records())
				w.Walk(typed('C', "SELECT 1\x00"))
				records := side.server.records()[before:]
				want := append(tracker.AppendHeader(nil, 'C', 9), "SELECT 1\x00"...)
				if !c.want.None() {
					want = append(tracker.AppendStated(nil, c.want), want...)
				}
				if !bytes.Equal(records, want) {
					t.Errorf("records %q, want %q", records, want)
				}
				if n := side.drainer.UnreadClaims(); n != c.unread {
					t.Errorf("%d claims not read, want %d", n, c.unread)
				}
				if held := w.stating.body[:]; !bytes.Equal(held, make([]byte, len(held))) {
					t.Errorf("the tap still has %q", bytes.Trim(held, "\x00"))
				}
			}
		})
	}
}

// TestStatingNotices: notices are not recorded, so a flood of them takes no room.
func TestStatingNotices(t *testing.T) {
	t.Parallel()
	side := newTapped(4 << 10)
	_, w := side.Walkers()
	for range 10_000 {
		w.Walk(typed('N', "SINFO\x00Mdp.epsilon=2\x00Dsecret\x00\x00"))
	}
	if n := len(side.server.records()); n > 0 || side.server.lost {
		t.Errorf("%d bytes of records", n)
	}
}
