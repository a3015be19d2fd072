package pages

import (
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// TestGivesAway: a group is named where results have groups, otherwise the column.
func TestGivesAway(t *testing.T) {
	t.Parallel()
	public := withheld.Public
	parts := []analysis.Part{{Where: public("column total"), Share: .9}, {Where: public("column n"), Share: .1}}
	for _, c := range []struct {
		event *analysis.Event
		parts []analysis.Part
		want  string
	}{
		{nil, parts, ""},
		{&analysis.Event{Partition: public("()"), Column: "noisy"}, nil, "column noisy"},
		{&analysis.Event{Partition: public("group 3 of 60"), Column: "noisy"}, nil, "group 3 of 60"},
		{&analysis.Event{Partition: public("top")}, nil, "group top"},
		{&analysis.Event{}, parts, "column total"},
		{&analysis.Event{}, parts[1:], ""},
	} {
		if got := givesAway(c.event, c.parts); got != c.want {
			t.Errorf("%+v: %q, want %q", c.event, got, c.want)
		}
	}
}
