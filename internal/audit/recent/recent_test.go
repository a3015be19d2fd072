package recent

import (
	"testing"
)

func TestRecent(t *testing.T) {
	t.Parallel()
	r := Map[int, int]{N: 10}
	for i := range 1000 {
		r.Put(i, i)
		if _, ok := r.Get(0); !ok { // marks it as used
			t.Fatalf("after %d keys the one that is used is forgotten", i)
		}
		if len(r.young)+len(r.old) > 20 {
			t.Fatalf("%d keys", len(r.young)+len(r.old))
		}
	}
	if v, ok := r.Get(995); !ok || v != 995 {
		t.Error("a late key is forgotten")
	}
}
