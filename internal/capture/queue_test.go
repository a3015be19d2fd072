package capture_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
)

func ExampleQueue() {
	queue := capture.NewQueue(2, 1<<20)
	for _, sql := range []string{"SELECT 1", "SELECT 2", "SELECT 3"} {
		fmt.Println(sql, queue.Offer(capture.Query{SQL: sql}))
	}
	q, err := queue.Take(context.Background())
	fmt.Println(q.SQL, err)
	// Output:
	// SELECT 1 true
	// SELECT 2 true
	// SELECT 3 false
	// SELECT 1 <nil>
}

func TestQueueOrderAcrossWrap(t *testing.T) {
	t.Parallel()
	queue := capture.NewQueue(3, 0)
	var got []string
	for i := range 10 {
		if !queue.Offer(capture.Query{SQL: fmt.Sprint(i)}) {
			t.Fatalf("offer %d was dropped", i)
		}
		if i%3 != 2 {
			continue
		}
		for range 3 {
			q, err := queue.Take(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, q.SQL)
		}
	}
	want := []string{"0", "1", "2", "3", "4", "5", "6", "7", "8"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestQueueDrops(t *testing.T) {
	t.Parallel()
	big := capture.Query{SQL: string(make([]byte, 1000))}
	tests := []struct {
		name            string
		capacity, bytes int
		offers          int
		want            capture.QueueStats
	}{
		{"by length", 2, 0, 5, capture.QueueStats{Offered: 5, Dropped: 3, Length: 2, Bytes: 2 * big.Size()}},
		{"by bytes", 10, 3*big.Size() + 1, 5, capture.QueueStats{Offered: 5, Dropped: 2, Length: 3, Bytes: 3 * big.Size()}},
		{"one too big", 10, 100, 1, capture.QueueStats{Offered: 1, Dropped: 1}},
		{"capacity below one", 0, 0, 2, capture.QueueStats{Offered: 2, Dropped: 1, Length: 1, Bytes: big.Size()}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			queue := capture.NewQueue(test.capacity, test.bytes)
			for range test.offers {
				queue.Offer(big)
			}
			if diff := cmp.Diff(test.want, queue.Stats()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestQueueBytesAreGivenBack(t *testing.T) {
	t.Parallel()
	q := capture.Query{SQL: "SELECT 1", Params: []capture.Param{{Value: make([]byte, 500)}}}
	queue := capture.NewQueue(10, q.Size())
	for i := range 20 {
		if !queue.Offer(q) {
			t.Fatalf("offer %d was dropped though the queue was empty", i)
		}
		if _, err := queue.Take(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestQueueTakeEnds(t *testing.T) {
	t.Parallel()
	t.Run("context", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		queue := capture.NewQueue(1, 0)
		queue.Offer(capture.Query{})
		if _, err := queue.Take(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Take gave %v, want context.Canceled", err)
		}
	})
	t.Run("closed", func(t *testing.T) {
		t.Parallel()
		queue := capture.NewQueue(2, 0)
		queue.Offer(capture.Query{SQL: "left"})
		queue.Close()
		queue.Close()
		if queue.Offer(capture.Query{}) {
			t.Error("a closed queue took a query")
		}
		if q, err := queue.Take(t.Context()); err != nil || q.SQL != "left" {
			t.Errorf("Take gave %q, %v; want what was left", q.SQL, err)
		}
		for range 2 {
			if _, err := queue.Take(t.Context()); !errors.Is(err, capture.ErrClosed) {
				t.Errorf("Take gave %v, want ErrClosed", err)
			}
		}
	})
}

// TestQueueConcurrent uses several producers and consumers: no query is lost or duplicated.
func TestQueueConcurrent(t *testing.T) {
	t.Parallel()
	const givers, takers, each = 4, 3, 500
	queue := capture.NewQueue(16, 0)
	var mu sync.Mutex
	seen := map[uint64]int{}
	var taking, giving sync.WaitGroup
	for range takers {
		taking.Go(func() {
			for {
				q, err := queue.Take(t.Context())
				if err != nil {
					return
				}
				mu.Lock()
				seen[q.SessionID]++
				mu.Unlock()
			}
		})
	}
	for g := range givers {
		giving.Go(func() {
			for i := range each {
				queue.Offer(capture.Query{SessionID: uint64(g*each + i)})
			}
		})
	}
	giving.Wait()
	queue.Close()
	taking.Wait()
	stats := queue.Stats()
	if stats.Offered != givers*each {
		t.Errorf("offered %d, want %d", stats.Offered, givers*each)
	}
	if uint64(len(seen)) != stats.Offered-stats.Dropped {
		t.Errorf("%d queries came out, want %d - %d", len(seen), stats.Offered, stats.Dropped)
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("query %d came out %d times", id, n)
		}
	}
}

// A flood of some shapes does not keep others out: while nobody takes queries, the first half fills with the flood, and
// the second half still has room for a shape that was seen rarely.
func TestQueueKeepsRoom(t *testing.T) {
	t.Parallel()
	for name, flood := range map[string]func(i int) string{
		"one text":                      func(int) string { return "SELECT abalance FROM log_orders" },
		"one shape, different texts":    func(i int) string { return fmt.Sprintf("SELECT abalance FROM orders WHERE aid = %d", i) },
		"some shapes":                   func(i int) string { return fmt.Sprintf("SELECT c%d FROM orders", i%20) },
		"a flood longer than the count": func(i int) string { return "SELECT abalance FROM orders" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			queue := capture.NewQueue(4096, 0)
			for i := range 300_000 {
				queue.Offer(capture.Query{SQL: flood(i)})
			}
			for i := range 100 {
				if sql := fmt.Sprintf("SELECT broken(count(*), 0.5) AS c%d FROM orders", i); !queue.Offer(capture.Query{SQL: sql}) {
					t.Fatalf("dropped: %s; %+v", sql, queue.Stats())
				}
			}
		})
	}
}

// Bytes are shared like places.
func TestQueueKeepsRoomForBytes(t *testing.T) {
	t.Parallel()
	queue := capture.NewQueue(1<<20, 1<<20)
	for range 10_000 {
		queue.Offer(capture.Query{SQL: "SELECT abalance FROM orders /*" + strings.Repeat("x", 1000) + "*/"})
	}
	if !queue.Offer(capture.Query{SQL: "SELECT broken(count(*), 0.5) FROM orders"}) {
		t.Errorf("dropped; %+v", queue.Stats())
	}
}
