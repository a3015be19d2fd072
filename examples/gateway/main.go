// Command gateway makes an engine of differential privacy a server that uses the PostgreSQL protocol: child processes of
// a program in any language answer the queries. README.md has their protocol, and noisy is such a program. The gateway
// exists to be audited by dpwatch, not to protect data: it has no privacy budget, no authentication, and no TLS.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"
)

func main() {
	source := flag.String("source", "", "connection string of the database with the data, which children find in their variable SOURCE")
	engine := flag.String("engine", "noisy", "the program that answers the queries, and its arguments, divided by spaces")
	children := flag.Int("children", 2, "number of processes of it; each answers one query at a time")
	listen := flag.String("listen", "127.0.0.1:7432", "host:port to listen on; with port 0 the system chooses the port. The address is printed")
	flag.Parse()
	_ = os.Setenv("SOURCE", *source) // children inherit it
	p := make(pool, max(*children, 1))
	for range cap(p) {
		p <- start(strings.Fields(*engine))
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	for fmt.Println(listener.Addr()); ; {
		conn, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go serve(conn, p)
	}
}

// request is a statement for a child, a line of JSON.
type request struct {
	SQL        string    `json:"sql"`
	Parameters []*string `json:"parameters"`
	Describe   bool      `json:"describe"` // only the columns are wanted; the parameters are not known yet
}

// answer is what a child answers to a request, a line of JSON.
type answer struct {
	Parameters []string            `json:"parameters"` // their types, if the request is to describe
	Columns    []column            `json:"columns"`
	Rows       [][]json.RawMessage `json:"rows"`
	Claim      map[string]string   `json:"claim"` // what the answer costs: dp.epsilon and others, which dpwatch reads
	Error      string              `json:"error"`
	Code       string              `json:"code"` // SQLSTATE of the error
	tag        string              // command tag of an answer that is the gateway's; "" = SELECT
}

// column is a column of an answer. Its type has the name that PostgreSQL has for it, such as int8 or numeric.
type column struct{ Name, Type string }

// failure is an error of a statement, with an SQLSTATE and a message that the client may read. Functions panic with it.
func failure(code, message string, args ...any) *pgproto3.ErrorResponse {
	return &pgproto3.ErrorResponse{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: code, Message: fmt.Sprintf(message, args...)}
}

// child is a process that answers requests, one at a time. It ends when its input does.
type child struct {
	*exec.Cmd
	*json.Encoder
	*json.Decoder
}

// pool holds the children that are idle. Each serves a statement at a time, of any session.
type pool chan *child

// start starts a child. Without the program the gateway has no purpose.
func start(command []string) *child {
	cmd := exec.Command(command[0], command[1:]...) //nolint:gosec // the flag -engine
	cmd.Stderr = os.Stderr
	in, failed := cmd.StdinPipe()
	out, err := cmd.StdoutPipe()
	if err := cmp.Or(failed, err, cmd.Start()); err != nil {
		log.Fatal(err)
	}
	return &child{cmd, json.NewEncoder(in), json.NewDecoder(out)}
}

// answer has a request answered by the next child that is idle. One that ctx interrupts, or that fails, is replaced.
func (p pool) answer(ctx context.Context, r request) (a *answer) {
	var c *child
	select {
	case c = <-p:
	case <-ctx.Done():
		panic(failure("57014", "canceling statement due to user request or statement_timeout"))
	}
	process := c.Process
	stop := context.AfterFunc(ctx, func() { _ = process.Kill() })
	err := cmp.Or(c.Encode(r), c.Decode(&a))
	if !stop() || err != nil {
		_, _ = process.Kill(), c.Wait()
		c = start(c.Args)
	}
	p <- c
	switch {
	case ctx.Err() != nil:
		panic(failure("57014", "canceling statement due to user request or statement_timeout"))
	case err != nil || a == nil:
		panic(failure("58000", "the engine's process gave no answer in JSON"))
	case a.Error != "":
		panic(failure(cmp.Or(a.Code, "XX000"), "%s", a.Error))
	}
	return a
}

// defaults are the settings of a new session. SET changes those in changeable, which change no answer.
var defaults = map[string]string{
	"server_version": "15.0 (example gateway)", "server_encoding": "UTF8", "client_encoding": "UTF8", "DateStyle": "ISO, MDY",
	"integer_datetimes": "on", "standard_conforming_strings": "on", "transaction_isolation": "read committed",
	"application_name": "", "client_min_messages": "notice", "extra_float_digits": "1", "statement_timeout": "0", "TimeZone": "UTC",
}
var changeable = map[string]bool{"application_name": true, "client_min_messages": true, "extra_float_digits": true, "statement_timeout": true, "TimeZone": true}

// form returns a pattern of statements that begin with these words, in any case and with one blank between.
func form(words string) *regexp.Regexp { return regexp.MustCompile(`(?is)^(?:` + words + `)(?: |$)`) }

// commands have no rows. They set the status of the transaction, which has no other effect, and do what run does.
var commands = []struct {
	form   *regexp.Regexp
	tag    string
	status byte // 0 = unchanged
	run    func(s *session, words []string)
}{
	{form(`BEGIN|START TRANSACTION`), "BEGIN", 'T', nil},
	{form(`SAVEPOINT`), "SAVEPOINT", 'T', nil},
	{form(`RELEASE`), "RELEASE", 'T', nil},
	{form(`ROLLBACK (?:WORK |TRANSACTION )?TO`), "ROLLBACK", 'T', nil},
	{form(`(?:ROLLBACK|ABORT)(?: WORK| TRANSACTION)?$`), "ROLLBACK", 'I', nil},
	{form(`(?:COMMIT|END)(?: WORK| TRANSACTION)?$`), "COMMIT", 'I', nil},
	{form(`SET (?:SESSION CHARACTERISTICS AS )?TRANSACTION`), "SET", 0, nil},
	{form(`SET (?:SESSION )?"?(\w+)"? (?:=|TO) '?([^']*)'?`), "SET", 0, func(s *session, words []string) { s.set(words[1], words[2]) }},
	{form(`RESET ALL`), "RESET", 0, func(s *session, _ []string) { s.report(s.initial) }},
	{form(`DISCARD ALL`), "DISCARD ALL", 0, func(s *session, _ []string) { s.drop('S', ""); s.report(s.initial) }},
	{form(`SET|RESET|DISCARD`), "", 0, func(*session, []string) { panic(failure("0A000", "this engine supports few forms of SET")) }},
	{form(`DEALLOCATE (?:PREPARE )?(?:ALL|"?([^"]+)"?)`), "DEALLOCATE", 0, func(s *session, words []string) { s.drop('S', words[1]) }},
}

var (
	number  = regexp.MustCompile(`(?i)^SELECT (\d{1,9})(?: AS (\w+))?$`)
	show    = form(`SHOW (?:(TRANSACTION ISOLATION) LEVEL|(\w+))`)
	catalog = regexp.MustCompile(`(?i)\b(FROM|JOIN) (pg_catalog|information_schema) \.`)
)

// local answers the statements that drivers send beside queries. It returns nil if the engine is to answer.
func (s *session) local(p *portal) *answer {
	for _, c := range commands {
		words := c.form.FindStringSubmatch(p.words)
		if words == nil || s.status == 'E' && c.tag != "ROLLBACK" && c.tag != "COMMIT" {
			continue
		}
		a := &answer{tag: c.tag}
		switch {
		case p.describe:
			return a
		case s.status == 'I' && c.status == 'T' && c.tag != "BEGIN":
			panic(failure("25P01", "%s can only be used in transaction blocks", c.tag))
		case s.status == 'E':
			a.tag = "ROLLBACK"
		case c.run != nil:
			c.run(s, words)
		}
		s.status = cmp.Or(c.status, s.status)
		return a
	}
	number, show := number.FindStringSubmatch(p.words), show.FindStringSubmatch(p.words)
	switch {
	case p.words == "":
		return &answer{}
	case s.status == 'E':
		panic(failure("25P02", "current transaction is aborted, commands ignored until end of transaction block"))
	case number != nil:
		return &answer{Columns: []column{{cmp.Or(strings.ToLower(number[2]), "?column?"), "int4"}}, Rows: [][]json.RawMessage{{[]byte(number[1])}}}
	case show != nil:
		name, value := s.setting(cmp.Or(strings.ReplaceAll(show[1], " ", "_"), show[2]))
		text, _ := json.Marshal(value)
		return &answer{Columns: []column{{name, "text"}}, Rows: [][]json.RawMessage{{text}}, tag: "SHOW"}
	case catalog.MatchString(p.words):
		panic(failure("0A000", `this engine has no catalog: psql's \d and the metadata of drivers are not supported`))
	}
	return nil
}

// setting returns a setting and its value, by its name in any case.
func (s *session) setting(name string) (known, value string) {
	for known, value := range s.settings {
		if strings.EqualFold(known, name) {
			return known, value
		}
	}
	panic(failure("42704", "this engine has no setting %q", name))
}

// set changes a setting that the client may change, and accepts the value of others.
func (s *session) set(name, value string) {
	name, old := s.setting(name)
	if changeable[name] && !strings.EqualFold(value, "DEFAULT") && (name != "statement_timeout" || strings.Trim(value, "0123456789") == "") {
		s.report(map[string]string{name: value})
	} else if !strings.HasPrefix(strings.ToLower(old), strings.ToLower(value)) {
		panic(failure("0A000", "this engine does not support the value %q of %s", value, name))
	}
}

// report sets settings and reports them to the client.
func (s *session) report(settings map[string]string) {
	for name, value := range settings {
		s.settings[name] = value
		s.Send(&pgproto3.ParameterStatus{Name: name, Value: value})
	}
}
