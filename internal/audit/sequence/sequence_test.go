package sequence_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/audit/sequence"
)

// run adds queries, "session key second", and returns the groups found.
func run(t *testing.T, queries ...string) (found []string) {
	t.Helper()
	tracker := sequence.New[string](time.Minute)
	for _, text := range queries {
		word := strings.Fields(text)
		session, _ := strconv.Atoi(word[0])
		second, err := strconv.Atoi(word[2])
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range tracker.Add(sequence.Query[string]{
			Session: sequence.Session{ID: uint64(session)}, At: time.Unix(int64(second), 0), Key: word[1], Value: word[1],
		}) {
			found = append(found, strings.Join(group, " "))
		}
	}
	return found
}

func TestTracker(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		queries []string
		want    []string
	}{
		{"once", []string{"1 a 0", "1 b 1", "1 a 200"}, nil},
		{"again_in_the_session", []string{"1 a 0", "1 b 1", "1 a 2", "1 b 3", "1 a 4"}, []string{"a b"}},
		{"every_time_from_then_on", []string{"1 a 0", "1 b 1", "1 a 2", "1 b 3", "1 a 4", "1 b 5", "1 a 6"}, []string{"a b", "a b"}},
		{"in_another_session", []string{"1 a 0", "2 a 1", "1 b 2", "2 b 3", "3 c 100"}, []string{"a b"}},
		{"another_order", []string{"1 a 0", "1 b 1", "2 b 2", "2 a 3", "3 c 100"}, []string{"a b"}},
		{"window_ends_a_group", []string{"1 a 0", "1 b 61", "1 a 122", "1 b 183", "1 c 300"}, nil},
		{"a_single_query", []string{"1 a 0", "1 a 1", "1 a 2", "1 a 3"}, nil},
		{"at_most_eight", []string{
			"1 a 0", "1 b 1", "1 c 2", "1 d 3", "1 e 4", "1 f 5", "1 g 6", "1 h 7", "1 i 8",
			"2 a 10", "2 b 11", "2 c 12", "2 d 13", "2 e 14", "2 f 15", "2 g 16", "2 h 17", "2 i 18",
		}, []string{"a b c d e f g h"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, run(t, c.queries...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Sessions, and texts, are bounded: with too many open sessions the oldest group ends, and a group that is too large is
// not returned.
func TestTrackerBounds(t *testing.T) {
	t.Parallel()
	tracker := sequence.New[int](time.Hour)
	found := 0
	add := func(session int, key string, bytes int) {
		found += len(tracker.Add(sequence.Query[int]{Session: sequence.Session{ID: uint64(session)}, At: time.Unix(0, 0), Key: key, Bytes: bytes}))
	}
	for i := range 2000 {
		add(i, "a", 1)
		add(i, "b", 1)
	}
	if found < 1000 {
		t.Errorf("%d groups ended, want all but those of the latest sessions", found)
	}
	add(0, "other", 1) // ends the oldest group
	found = 0
	for range 5 {
		add(0, "large", 20<<10)
		add(0, "larger", 20<<10)
	}
	if found != 0 {
		t.Errorf("%d groups, want none of 40 kB", found)
	}
}
