package tap

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/capture"
)

// conversation is what a client and a server say, written by an independent model of the server. The model knows what
// each statement does, because it generates the statements.
type conversation struct {
	rnd   *rand.Rand
	quiet bool // no asynchronous messages
	tiny  bool // leave out what cannot be resolved in a gap: see step.go

	client []byte
	server []byte
	needs  []mark // the server sends its bytes from at on once the client has sent need bytes
	waits  []mark // the client sends its bytes from at on once the server has sent need bytes
	wants  []want
	next   int // number of the next statement

	// the server's state
	values   map[string]string // the settings that are now in force
	saved    map[string]string // those of the transaction's beginning; nil outside
	failed   bool              // the transaction has failed
	prepared map[string]string // texts
	said     capture.Stated    // about the answer in progress
}

// mark is a position in one stream that depends on the other.
type mark struct{ at, need int }

// want is one statement that was run.
type want struct {
	sql      string
	outcome  capture.Outcome
	state    string
	tag      string
	params   string
	epsilon  string // the setting when it ran
	extended bool
	stated   capture.Stated
}

func frame(typ byte, body string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{typ}, uint32(4+len(body))), body...)
}

func newConversation(rnd *rand.Rand, tiny bool) *conversation {
	return &conversation{rnd: rnd, tiny: tiny, values: map[string]string{}, prepared: map[string]string{}}
}

// wait makes the client read all answers so far before it sends more.
func (c *conversation) wait() { c.waits = append(c.waits, mark{len(c.client), len(c.server)}) }

func (c *conversation) front(typ byte, body string) { c.client = append(c.client, frame(typ, body)...) }

func (c *conversation) back(typ byte, body string) {
	c.needs = append(c.needs, mark{len(c.server), len(c.client)})
	if strings.IndexByte("123nZ", typ) >= 0 && c.rnd.IntN(6) == 0 { // about no statement
		c.notice("dp.epsilon=777")
	}
	c.server = append(c.server, frame(typ, body)...)
	if c.quiet || c.rnd.IntN(6) > 0 {
		return
	}
	switch c.rnd.IntN(3) { // asynchronous messages can come anywhere
	case 0:
		c.server = append(c.server, frame('N', "SNOTICE\x00C00000\x00\x00")...)
	case 1:
		c.server = append(c.server, frame('A', "\x00\x00\x00\x01channel\x00\x00")...)
	case 2:
		c.server = append(c.server, frame('S', "some_setting\x00"+strings.Repeat("x", c.rnd.IntN(3000))+"\x00")...)
	}
}

func (c *conversation) notice(message string) {
	pad := strings.Repeat("z", c.rnd.IntN(2)*c.rnd.IntN(500))
	c.server = append(c.server, frame('N', "SHINWEIS\x00VNOTICE\x00C00000\x00M"+message+"\x00D"+pad+"\x00\x00")...)
}

// state states claims about the answer in progress, or nothing. The largest one counts.
func (c *conversation) state() {
	for range c.rnd.IntN(3) {
		x := float64(1 + c.rnd.IntN(1000))
		switch c.rnd.IntN(3) {
		case 0:
			c.notice(fmt.Sprintf("dp.epsilon=%g", x))
			c.said.Epsilon = max(c.said.Epsilon, x)
		case 1:
			c.notice(fmt.Sprintf("dp.epsilon=%g, dp.delta=%g", x, x/2000))
			c.said.Epsilon, c.said.Delta = max(c.said.Epsilon, x), max(c.said.Delta, x/2000)
		case 2:
			c.server = append(c.server, frame('S', fmt.Sprintf("dp.rho\x00%g\x00", x))...)
			c.said.Rho = max(c.said.Rho, x)
		}
	}
	c.notice("dp.epsilon=many")
}

func (c *conversation) ready() {
	status := "I"
	if c.saved != nil {
		if status = "T"; c.failed {
			status = "E"
		}
	}
	c.back('Z', status)
}

func (c *conversation) errorResponse(state string) {
	fields := "SFEHLER\x00VERROR\x00C" + state + "\x00Ma message with 'values' of rows, P " + strings.Repeat("y", c.rnd.IntN(200)) + "\x00"
	if state == "42601" {
		fields += "P8\x00"
	}
	c.back('E', fields+"Fparse_x.c\x00\x00")
	if c.saved != nil {
		c.failed = true
	}
}

// statement is a generated statement and what the server does with it.
type statement struct {
	sql    string
	params int
	tag    string // of success
	state  string // of an error
	bad    bool   // the error comes from parsing
	rows   bool   // it returns rows
	does   func()
}

// statement returns a new one. Its text is unique, so that a wrong pairing shows.
func (c *conversation) statement(params bool) statement {
	c.next++
	n := c.next
	tag := fmt.Sprintf("SELECT %d", n)
	pad := ""
	if c.rnd.IntN(8) == 0 {
		pad = " /*" + strings.Repeat("p", c.rnd.IntN(900)) + "*/"
	}
	if c.failed {
		return statement{sql: fmt.Sprintf("SELECT %d FROM users", n), state: "25P02"}
	}
	switch k := c.rnd.IntN(12); {
	case k == 0:
		return statement{sql: fmt.Sprintf("SELEC %d FROM users", n), state: "42601", bad: true}
	case k == 1:
		return statement{sql: fmt.Sprintf("SELECT f(%d) FROM users%s", n, pad), state: "2201E", rows: true}
	case k == 2:
		return statement{sql: fmt.Sprintf("SELECT sleep(%d) FROM users", n), state: "57014", rows: true}
	case k == 3:
		return statement{sql: fmt.Sprintf("SET dp.epsilon = '%d'", n), tag: "SET", does: func() { c.values["epsilon"] = fmt.Sprint(n) }}
	case k == 4:
		return statement{sql: fmt.Sprintf("INSERT INTO t VALUES (%d)%s", n, pad), tag: "INSERT 0 1"}
	case k == 5 && params:
		return statement{sql: fmt.Sprintf("SELECT %d, $1, $2 FROM users%s", n, pad), params: 2, tag: tag, rows: true}
	}
	return statement{sql: fmt.Sprintf("SELECT %d FROM users%s", n, pad), tag: tag, rows: true}
}

func (c *conversation) ran(s statement, params []string, extended, suspended bool) {
	said := c.said
	c.said = capture.Stated{}
	w := want{sql: s.sql, stated: said, params: strings.Join(params, ","), epsilon: c.values["epsilon"], tag: s.tag, state: s.state, extended: extended}
	switch {
	case s.bad || s.state == "25P02":
		return
	case s.state == "57014":
		w.outcome, w.tag = capture.Cancelled, ""
	case s.state != "":
		w.outcome, w.tag = capture.Failed, ""
	case suspended:
		w.outcome, w.tag = capture.Suspended, ""
	case s.does != nil:
		s.does()
	}
	w.stated.Unclear = w.outcome != capture.Complete && said.None()
	c.wants = append(c.wants, w)
}

// simple is a Query of n statements: one implicit transaction.
func (c *conversation) simple(n int) {
	texts := make([]string, n)
	statements := make([]statement, n)
	before := map[string]string{"epsilon": c.values["epsilon"]}
	for i := range statements {
		statements[i] = c.statement(false)
		texts[i] = statements[i].sql
	}
	first := len(c.wants)
	broken := slices.ContainsFunc(statements, func(s statement) bool { return s.bad })
	c.front('Q', strings.Join(texts, "; ")+"\x00")
	for _, s := range statements {
		if broken {
			s = statement{state: "42601", bad: true}
		}
		if s.rows {
			c.back('T', "\x00\x00")
			for range c.rnd.IntN(3) {
				c.back('D', "\x00\x00")
			}
		}
		if !s.bad && s.state != "25P02" {
			c.state()
		}
		c.ran(s, nil, false, false)
		if s.state != "" {
			c.errorResponse(s.state)
			if c.saved == nil {
				c.values["epsilon"] = before["epsilon"]
			}
			break
		}
		c.back('C', s.tag+"\x00")
	}
	if ran := c.wants[first:]; n > 1 && slices.ContainsFunc(ran, func(w want) bool { return w.stated != capture.Stated{Unclear: w.stated.Unclear} }) {
		for i := range ran {
			ran[i].stated = capture.Stated{Unclear: true}
		}
	}
	c.ready()
}

// control is BEGIN, COMMIT or ROLLBACK.
func (c *conversation) control() {
	verb := "BEGIN"
	if c.saved != nil {
		verb = [...]string{"COMMIT", "ROLLBACK"}[c.rnd.IntN(2)]
	}
	c.front('Q', verb+"\x00")
	tag := verb
	if verb == "BEGIN" {
		c.saved = map[string]string{"epsilon": c.values["epsilon"]}
	} else {
		if verb == "ROLLBACK" || c.failed {
			tag = "ROLLBACK"
			c.values = c.saved
		}
		c.saved, c.failed = nil, false
	}
	c.back('C', tag+"\x00")
	c.ready()
}

func parseBody(name, sql string) string { return name + "\x00" + sql + "\x00\x00\x00" }

func bindBody(portal, name string, params []string) string {
	b := []byte(portal + "\x00" + name + "\x00\x00\x00")
	b = binary.BigEndian.AppendUint16(b, uint16(len(params)))
	for _, v := range params {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
	}
	return string(append(b, 0, 0))
}

// extended is n statements with one Sync at the end.
func (c *conversation) extended(n int) {
	skipping := false
	before := c.values["epsilon"]
	answer := func(typ byte, body string) {
		if !skipping {
			c.back(typ, body)
		}
	}
	for range n {
		s := c.statement(true)
		name, portal := "", ""
		if c.rnd.IntN(3) == 0 {
			name = fmt.Sprintf("s%d", c.next)
		}
		if c.rnd.IntN(4) == 0 {
			portal = fmt.Sprintf("p%d", c.next)
		}
		params := make([]string, s.params)
		for i := range params {
			if params[i] = fmt.Sprintf("v%d", c.next); c.rnd.IntN(5) == 0 {
				params[i] += strings.Repeat("w", c.rnd.IntN(3000))
			}
		}
		limit := "\x00\x00\x00\x00"
		suspended := s.rows && s.state == "" && c.rnd.IntN(5) == 0
		c.front('P', parseBody(name, s.sql))
		if s.bad || s.state == "25P02" {
			if !skipping {
				c.errorResponse(s.state)
			}
			skipping = true
		}
		answer('1', "")
		if c.rnd.IntN(3) == 0 {
			c.front('D', "S"+name+"\x00")
			answer('t', "\x00\x00")
			answer('n', "")
		}
		c.front('B', bindBody(portal, name, params))
		if !skipping && c.rnd.IntN(10) == 0 { // it fails when it is planned
			c.ran(statement{sql: s.sql, state: "22003"}, params, true, false)
			c.errorResponse("22003")
			skipping = true
		}
		answer('2', "")
		if c.rnd.IntN(2) == 0 {
			c.front('D', "P"+portal+"\x00")
			answer('T', "\x00\x00")
		}
		if suspended {
			limit = "\x00\x00\x00\x01"
		}
		c.front('E', portal+"\x00"+limit)
		if !skipping {
			c.state()
			c.ran(s, params, true, suspended)
			switch {
			case s.state != "":
				c.errorResponse(s.state)
				skipping = true
			case suspended:
				c.back('s', "")
			default:
				c.back('D', "\x00\x00")
				c.back('C', s.tag+"\x00")
			}
		}
		if c.rnd.IntN(4) == 0 {
			c.front('H', "")
			if c.rnd.IntN(2) == 0 && !skipping {
				c.wait()
			}
		}
		if portal != "" {
			c.front('C', "P"+portal+"\x00")
			answer('3', "")
		}
		if name != "" && c.rnd.IntN(2) == 0 {
			c.front('C', "S"+name+"\x00")
			answer('3', "")
		}
		if !c.tiny && c.rnd.IntN(8) == 0 { // a Query before Sync: ignored after an error
			c.next++
			sql := fmt.Sprintf("SELECT 'within', %d FROM users", c.next)
			c.front('Q', sql+"\x00")
			if !skipping {
				c.ran(statement{sql: sql, tag: "SELECT 7"}, nil, false, false)
				c.back('T', "\x00\x00")
				c.back('C', "SELECT 7\x00")
				c.ready()
				before = c.values["epsilon"]
			}
		}
	}
	c.front('S', "")
	if skipping && c.saved == nil {
		c.values["epsilon"] = before
	}
	c.ready()
	if c.rnd.IntN(6) == 0 {
		c.front('S', "")
		c.ready()
	}
}

// copyIn is a COPY FROM STDIN. A client that sends Sync early does so as PQexecParams does; the server ignores it,
// unless the COPY fails before it reads it.
func (c *conversation) copyIn(extended bool) {
	c.next++
	if c.failed {
		return
	}
	s := statement{sql: fmt.Sprintf("COPY users FROM STDIN /*%d*/", c.next), tag: "COPY 2"}
	early := extended && c.rnd.IntN(3) > 0
	if extended {
		c.front('P', parseBody("", s.sql))
		c.back('1', "")
		c.front('B', bindBody("", "", nil))
		c.back('2', "")
		c.front('E', "\x00\x00\x00\x00\x00")
		if early {
			c.front('S', "")
		}
	} else {
		c.front('Q', s.sql+"\x00")
	}
	c.back('G', "\x00\x00\x00")
	end, how := byte('c'), c.rnd.IntN(4)
	if how == 3 {
		end = 'f'
	}
	if c.rnd.IntN(3) > 0 || how > 0 && c.tiny {
		c.wait()
	}
	at := 0 // how many answers Sync messages had before the end
	if how > 0 {
		s.state = "22P04"
		if early && how == 1 { // it failed before it read anything
			at = 1
		}
	}
	c.ran(s, nil, extended, false)
	if how > 0 && at == 1 {
		c.errorResponse(s.state)
		c.ready()
	}
	for range c.rnd.IntN(4) {
		c.front('d', strings.Repeat("1\n", c.rnd.IntN(200)))
	}
	c.front(end, map[byte]string{'c': "", 'f': "no\x00"}[end])
	if extended {
		c.front('S', "")
	}
	switch {
	case how == 0:
		c.back('C', s.tag+"\x00")
	case at == 0:
		c.errorResponse(s.state)
	}
	c.ready()
	if how > 0 && extended && c.tiny {
		c.wait()
	}
}

// copyOut is a COPY TO STDOUT that succeeds.
func (c *conversation) copyOut(extended bool) {
	c.next++
	if c.failed {
		return
	}
	s := statement{sql: fmt.Sprintf("COPY (SELECT %d FROM users) TO STDOUT", c.next), tag: "COPY 3"}
	if extended {
		c.front('P', parseBody("", s.sql))
		c.back('1', "")
		c.front('B', bindBody("", "", nil))
		c.back('2', "")
		c.front('E', "\x00\x00\x00\x00\x00")
	} else {
		c.front('Q', s.sql+"\x00")
	}
	c.back('H', "\x00\x00\x00")
	c.back('d', "1\n")
	c.back('c', "")
	c.ran(s, nil, extended, false)
	c.back('C', s.tag+"\x00")
	if extended {
		c.front('S', "")
	}
	c.ready()
}

// functionCall is the fast path.
func (c *conversation) functionCall() {
	c.front('F', "\x00\x00\x00\x01")
	if c.failed || c.rnd.IntN(3) == 0 {
		c.errorResponse("42883")
	} else {
		c.back('V', "\x00\x00\x00\x00")
	}
	c.ready()
}

// batch is a pipeline of the same small statement, as drivers send it.
func (c *conversation) batch(n int) {
	if c.failed {
		return
	}
	c.next++
	s := statement{sql: fmt.Sprintf("INSERT INTO users VALUES ($1, %d)", c.next), tag: "INSERT 0 1"}
	c.front('P', parseBody("", s.sql))
	c.back('1', "")
	for i := range n {
		params := []string{fmt.Sprintf("%04d", i)}
		c.front('B', bindBody("", "", params))
		c.back('2', "")
		c.front('E', "\x00\x00\x00\x00\x00")
		c.state()
		c.ran(s, params, true, false)
		c.back('C', s.tag+"\x00")
	}
	c.front('S', "")
	c.ready()
}

// add adds a random exchange.
func (c *conversation) add() {
	switch c.rnd.IntN(12) {
	case 0, 1:
		c.simple(1)
	case 2:
		c.simple(2 + c.rnd.IntN(3))
	case 3, 4:
		c.extended(1)
	case 5:
		c.extended(2 + c.rnd.IntN(6))
	case 6, 7:
		c.copyIn(c.rnd.IntN(2) == 0)
	case 8:
		c.copyOut(c.rnd.IntN(2) == 0)
	case 9:
		if c.rnd.IntN(3) == 0 {
			c.functionCall()
		}
	case 10:
		c.control()
	case 11:
		c.batch(1 + c.rnd.IntN(60))
	}
}
