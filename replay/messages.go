package replay

import (
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/outcome"
)

// This file keeps what a server says beside its answers: errors, warnings and notices. A client reads them, too.

// failure returns the outcome of a trial of a world that failed in the shadow database, or the error of classify.
func (x *executor) failure(conn *pgconn.PgConn, world int, err error) (outcome.Outcome, error) {
	state, fault := x.classify(conn, world, err)
	return outcome.Outcome{SQLState: state, Message: x.player.message(state, err)}, fault
}

// classify is that of the Player for an error of a trial; it notes the loss of a session.
func (x *executor) classify(conn *pgconn.PgConn, world int, err error) (state string, fault error) {
	state, fault = x.player.classify(err)
	x.by.noteOf(conn, world, fault)
	return state, fault
}

// engineFailure is failure of an engine beside the database, whose role and database are others.
func (p *Player) engineFailure(err error) (outcome.Outcome, error) {
	state, fault := classify(err)
	return outcome.Outcome{SQLState: state, Message: p.message(state, err)}, fault
}

// message returns what the server says of a failure, with detail and hint. Messages about names (class 42) depend on how
// a trial is run, and are left out.
func (p *Player) message(state string, err error) string {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != state || strings.HasPrefix(state, "42") {
		return ""
	}
	return p.sameCopy.Replace(lines(pg))
}

// lines returns message, detail and hint.
func lines(e *pgconn.PgError) string {
	return strings.TrimRight(strings.Join([]string{e.Message, e.Detail, e.Hint}, "\n"), "\n")
}

// sameCopyOf returns the replacer of the schemas of the copies by one name.
func sameCopyOf(schemas []string) *strings.Replacer {
	longest := func(a, b string) int { return len(b) - len(a) } // one may begin with another
	var pairs []string
	for _, schema := range slices.SortedFunc(slices.Values(schemas), longest) {
		if schema != "" {
			pairs = append(pairs, schema, "copy")
		}
	}
	return strings.NewReplacer(pairs...)
}

// noticeKey is where a connection keeps the notices that came since the last trial: a *strings.Builder.
const noticeKey = "dpwatch.notices"

// maxNotices bounds the bytes of notices that are kept of a trial.
const maxNotices = 4 << 10

// notice keeps what a server sends to a client of the default settings. It is called while messages are read, so that
// what came before the end of a result belongs to it.
func notice(conn *pgconn.PgConn, n *pgconn.Notice) {
	hearLastWord(conn, n)
	switch n.SeverityUnlocalized {
	case "WARNING", "NOTICE", "INFO":
	default:
		return
	}
	kept, ok := conn.CustomData()[noticeKey].(*strings.Builder)
	if !ok {
		kept = new(strings.Builder)
		conn.CustomData()[noticeKey] = kept
	}
	if kept.Len() < maxNotices {
		kept.WriteString(lines((*pgconn.PgError)(n)))
		kept.WriteByte('\n')
	}
}

// forgetNotices forgets what came before the next trial of a connection.
func forgetNotices(conn *pgconn.PgConn) {
	if kept, ok := conn.CustomData()[noticeKey].(*strings.Builder); ok {
		kept.Reset()
	}
}

// said adds the notices of a trial that has just been read to its outcome.
func (p *Player) said(o *outcome.Outcome, conn *pgconn.PgConn) {
	kept, ok := conn.CustomData()[noticeKey].(*strings.Builder)
	if !ok || kept.Len() == 0 {
		return
	}
	o.Message = p.sameCopy.Replace(kept.String()[:min(kept.Len(), maxNotices)]) + o.Message
	kept.Reset()
}
