package tracker

// passGap leaves behind what came before a gap and has no counterpart, once both directions have shown the gap; false
// when they have not. What was prepared is forgotten, and the settings are uncertain until the client discards them: statements that
// nobody saw may have changed anything. What the server reported is still certain.
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
