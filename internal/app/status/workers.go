package status

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/audit/view"
)

// workersLine sums up the workers on other machines.
func workersLine(a *view.Status) string {
	slots := 0
	for _, w := range a.Workers {
		slots += w.Slots
	}
	return fmt.Sprintf("%d with %d slots; turns: %d in progress, %d delivered, %d dropped", len(a.Workers), slots, a.Turns.Out, a.Turns.Delivered, a.Turns.Dropped)
}

// writeWorkers writes a table of the workers on other machines, if there are any.
func writeWorkers(b *strings.Builder, workers []view.WorkerState) {
	if len(workers) == 0 {
		return
	}
	b.WriteString("\n")
	table := show.NewTable(b)
	table.Row("WORKER", "HOST", "VERSION", "SINCE", "SLOTS", "TURNS", "LAST HEARD", "REFUSED TURNS BECAUSE")
	for _, w := range workers {
		table.Row(w.ID, w.Host, w.Version, show.Moment(w.Since), fmt.Sprint(w.Slots), fmt.Sprint(w.Turns), w.Silent.Round(time.Second).String()+" ago", cmp.Or(w.Refused, "-"))
	}
	table.Flush()
}
