package tracker

// beginCall begins a FunctionCall message, of which only the OID of the function is recorded.
func (t *Tracker) beginCall(r record) {
	t.call = FunctionCall
	b := reader{b: r.body}
	if isLargeObject(b.uint32()) {
		t.call = Unprotected
	}
}

// answerCall handles an answer to a FunctionCall: a result or an error ends the call.
func (t *Tracker) answerCall(r record) bool {
	switch r.typ {
	case 'V': // the effect of the function is not known
		t.session.settings.begin()
		t.session.settings.doubtAll()
	case 'E':
		if t.session.refused(t.out.failure(r), false) {
			return t.answerSync(r)
		}
	default:
		return t.answerSync(r)
	}
	t.out.skip(t.call, "")
	return r.typ == 'V' || t.answerSync(r)
}

// isLargeObject reports whether a function is one of those for which libpq and its relatives send FunctionCall: lo_open,
// lo_close, loread, lowrite, lo_lseek, lo_creat, lo_tell, lo_unlink, lo_create, lo_truncate and those with 64 bits
// (pg_proc.dat).
func isLargeObject(oid uint32) bool {
	switch oid {
	case 715, 952, 953, 954, 955, 956, 957, 958, 964, 1004, 3170, 3171, 3172:
		return true
	}
	return false
}
