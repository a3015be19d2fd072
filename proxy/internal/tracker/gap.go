package tracker

// passGap discards the unmatched records before a gap, once both directions have reached the gap; false if they have not.
// Prepared statements are discarded, and settings are uncertain until the client runs DISCARD, because statements in the gap
// can have changed anything. What the server reported remains certain.
func (t *Tracker) passGap() bool {
	client, server := t.client.gap(), t.server.gap()
	if client == 0 || server == 0 {
		return false
	}
	for end := len(t.server.buf) - server; len(t.server.buf) > end; {
		r, n, _ := t.server.peek()
		if r.typ == 'S' {
			t.gate.report(r.body, !r.cut)
		}
		t.server.drop(n)
	}
	t.client.drop(client)
	t.typ, t.copyIn, t.skipping, t.copyFailed, t.started = 0, false, false, false, true
	clear(t.query.done)
	t.query, t.ext = simpleQuery{done: t.query.done[:0]}, extendedMessage{}
	t.forgetStatements()
	t.forgetPortals()
	t.preparedSetter = true
	t.settings.end(false, false)
	t.settings.poison()
	t.gate.ready(true)
	t.cfg.Counts.Off[OffOverflow]++
	return true
}
