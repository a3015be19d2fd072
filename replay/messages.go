package replay

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/outcome"
)

// This file keeps what a server says beside its answers: errors, warnings and notices. A client reads them, too.

// failure returns the outcome of a trial of a world that failed in the shadow database, or the error of classify. Names that
// are missing are an outcome here: see confirmRefusals.
func (x *executor) failure(conn *pgconn.PgConn, world int, err error) (outcome.Outcome, error) {
	state, fault := x.classify(conn, world, err)
	if code := refusedName(err); code != "" {
		state, fault = code, nil
	}
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

// message returns what the server says of a failure.
func (p *Player) message(state string, err error) string {
	pg := serverError(err)
	if pg == nil || pg.Code != state {
		return ""
	}
	return p.sameCopy.Replace(lines(pg))
}

// lines returns the fields of an error or a notice that a client gets, one in a line: each with its letter in the protocol,
// but for the message. Left out are the positions in the text of the statement, which differs between the copies, and
// those in the server's source code.
func lines(e *pgconn.PgError) string {
	b := []byte(e.Message)
	for _, field := range [...]struct{ letter, value string }{
		{"V", e.SeverityUnlocalized},
		{"C", e.Code},
		{"D", e.Detail},
		{"H", e.Hint},
		{"q", e.InternalQuery},
		{"W", e.Where},
		{"s", e.SchemaName},
		{"t", e.TableName},
		{"c", e.ColumnName},
		{"d", e.DataTypeName},
		{"n", e.ConstraintName},
	} {
		if field.value != "" {
			b = append(append(append(b, '\n'), field.letter...), field.value...)
		}
	}
	return string(b)
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

// noticeKey is where a connection keeps what the server said since the last trial: *saying.
const noticeKey = "dpwatch.notices"

// maxNotices bounds the bytes of notices that are kept of a trial. What is beyond counts by its length and a hash.
const maxNotices = 256 << 10

// saying is what a server says beside an answer.
type saying struct {
	strings.Builder
	cut      int    // bytes beyond the bound
	hash     uint64 // of these
	settings [len(reported)]string
}

// reported are the settings whose changes a server reports to its clients and that a statement can change.
var reported = [...]string{
	"application_name", "client_encoding", "DateStyle", "default_transaction_read_only", "IntervalStyle", "search_path",
	"session_authorization", "standard_conforming_strings", "TimeZone",
}

func sayingOf(conn *pgconn.PgConn) *saying {
	kept, ok := conn.CustomData()[noticeKey].(*saying)
	if !ok {
		kept = new(saying)
		conn.CustomData()[noticeKey] = kept
	}
	return kept
}

// keep keeps a text.
func (s *saying) keep(text string) {
	if s.Len()+len(text) <= maxNotices {
		s.WriteString(text)
		s.WriteByte('\n')
		return
	}
	h := fnv.New64a()
	_, _ = h.Write(strconv.AppendUint([]byte(text), s.hash, 16))
	s.cut, s.hash = s.cut+len(text), h.Sum64()
}

// compareSettings keeps which reported settings have changed.
func (s *saying) compareSettings(conn *pgconn.PgConn, changes bool) {
	for i, name := range reported {
		value := conn.ParameterStatus(name)
		if changes && value != s.settings[i] {
			s.keep("S" + name + "=" + value)
		}
		s.settings[i] = value
	}
}

// notice keeps what a server sends to a client of the default settings. It is called while messages are read, so that
// what came before the end of a result belongs to it.
func notice(conn *pgconn.PgConn, n *pgconn.Notice) {
	hearLastWord(conn, n)
	switch n.SeverityUnlocalized {
	case "WARNING", "NOTICE", "INFO":
	default:
		return
	}
	sayingOf(conn).keep(lines((*pgconn.PgError)(n)))
}

// forgetNotices forgets what came before the next trial of a connection.
func forgetNotices(conn *pgconn.PgConn) {
	kept := sayingOf(conn)
	kept.Reset()
	kept.cut, kept.hash = 0, 0
	kept.compareSettings(conn, false)
}

// said adds the notices of a trial that has just been read to its outcome.
func (p *Player) said(o *outcome.Outcome, conn *pgconn.PgConn) {
	kept := sayingOf(conn)
	kept.compareSettings(conn, true)
	if kept.Len() == 0 {
		return
	}
	if kept.cut > 0 {
		kept.WriteString(strconv.Itoa(kept.cut) + " " + strconv.FormatUint(kept.hash, 16) + "\n")
	}
	o.Message = p.sameCopy.Replace(kept.String()) + o.Message
	kept.Reset()
	kept.cut, kept.hash = 0, 0
}
