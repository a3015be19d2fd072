package inbox

import (
	"fmt"
	"testing"

	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/capture"
)

func arrive(b *Inbox, user string, outline uint64, sql string) (dropped int) {
	return len(b.Put(schedule.Owner{User: user}, Arrival{Query: capture.Query{SQL: sql}, Look: Look{Outline: outline}}))
}

// A flood of one query with different constants delays another query of the same user, or of another user, by at most a
// turn, and only its own queries are dropped.
func TestInboxUnderAFlood(t *testing.T) {
	t.Parallel()
	b := New(100, 1<<20)
	dropped := 0
	for i := range 1000 {
		dropped += arrive(b, "hostile", 1, fmt.Sprint("flood ", i))
	}
	if dropped != 900 || b.n != 100 {
		t.Fatalf("%d dropped, %d left; want 900 and 100", dropped, b.n)
	}
	for _, x := range []struct {
		user    string
		outline uint64
		sql     string
	}{{"hostile", 2, "new"}, {"other", 3, "first"}, {"other", 3, "second"}} {
		if n := arrive(b, x.user, x.outline, x.sql); n != 1 {
			t.Errorf("%s: %d dropped, want one of the flood", x.sql, n)
		}
	}
	var got []string
	for range 6 {
		x, ok := b.Next()
		if !ok {
			t.Fatal("nothing left")
		}
		got = append(got, x.Query.SQL)
	}
	want := []string{"new", "first", "flood 0", "second", "flood 1", "flood 2"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A flood of different queries does not delay a new or repeated query by its whole length.
func TestInboxNewFirst(t *testing.T) {
	t.Parallel()
	b := New(100, 1<<20)
	flood := func(from, to uint64) {
		for i := from; i < to; i++ {
			b.Put(schedule.Owner{}, Arrival{Query: capture.Query{SQL: "flood"}, Look: Look{Outline: i, Text: i}})
		}
	}
	dashboard := Arrival{Query: capture.Query{SQL: "dashboard"}, Look: Look{Outline: 1, Text: 1}}
	flood(10, 50)
	b.Put(schedule.Owner{}, dashboard)
	if x, _ := b.Next(); x.Query.SQL != "dashboard" {
		t.Errorf("next is %q, want the new query", x.Query.SQL)
	}
	b.Put(schedule.Owner{}, dashboard)
	flood(50, 100)
	b.Put(schedule.Owner{}, dashboard)
	if x, _ := b.Next(); x.Query.SQL != "dashboard" {
		t.Errorf("next is %q, want the query that comes again", x.Query.SQL)
	}
}

// Every query that is put in and not dropped comes out once, and the sizes add up.
func TestInboxEmpties(t *testing.T) {
	t.Parallel()
	b := New(50, 1<<20)
	in, dropped := 0, 0
	for i := range 200 {
		dropped += arrive(b, fmt.Sprint("user ", i%7), uint64(i%11), fmt.Sprint(i))
		in++
	}
	seen := map[string]bool{}
	for x, ok := b.Next(); ok; x, ok = b.Next() {
		if seen[x.Query.SQL] {
			t.Errorf("%s twice", x.Query.SQL)
		}
		seen[x.Query.SQL] = true
	}
	if len(seen)+dropped != in || b.n != 0 || b.size != 0 || len(b.owners) != 0 {
		t.Errorf("%d out and %d dropped of %d; %d left of %d bytes and %d owners", len(seen), dropped, in, b.n, b.size, len(b.owners))
	}
}

// A query larger than the byte limit is accepted when it is alone, and never makes the inbox drop everything else
// permanently.
func TestInboxBytes(t *testing.T) {
	t.Parallel()
	b := New(100, 2000)
	large := string(make([]byte, 5000))
	if n := arrive(b, "a", 1, large); n != 0 {
		t.Errorf("%d dropped of one", n)
	}
	if n := arrive(b, "b", 2, "small"); n != 1 || b.n != 1 {
		t.Errorf("%d dropped, %d left; want one each", n, b.n)
	}
}
