package proxy

import (
	"io"
	"net"
	"time"

	"github.com/jackc/pgproto3/v2"
	"go.uber.org/zap"
)

// refusal is an error that the proxy itself sends (SQLSTATEs: manual, appendix A).
type refusal struct {
	code, message, hint string
}

var (
	tooManySessions = refusal{
		"53300", "dpwatch: too many sessions",
		"Close idle sessions, or raise the limit of sessions in dpwatch's configuration.",
	}
	upstreamUnreachable = refusal{
		"08001", "dpwatch: the engine behind the proxy cannot be reached",
		"Check that the engine runs and that the upstream address in dpwatch's configuration is right.",
	}
	upstreamWithoutTLS = refusal{
		"08001", "dpwatch: the engine behind the proxy was reached, but TLS with it failed",
		"The reason is in dpwatch's log; compare upstream TLS in its configuration with the engine's.",
	}
	otherCertificate = refusal{
		"F0000", "dpwatch: the proxy's certificate is not the engine's, so SCRAM with channel binding would fail",
		"Give dpwatch the engine's own certificate and key, or pass TLS through; see dpwatch's log.",
	}
	tlsRequired = refusal{
		"28000", "dpwatch: this listener takes TLS connections only", "Connect with sslmode=require or stricter.",
	}
	idleTooLong = refusal{
		"57P05", "dpwatch: terminating connection due to idle-session timeout",
		"Connect again, or raise proxy.idle_timeout in dpwatch's configuration.",
	}
	shuttingDown = refusal{
		"57P03", "dpwatch: the proxy is shutting down", "Connect again later.",
	}
)

func protocolViolation(err error) refusal {
	return refusal{
		"08P01", "dpwatch: " + err.Error(),
		"The client must begin with a PostgreSQL startup message, or with TLS where the proxy has it.",
	}
}

// How long a client may take to read a refusal, and to close after it.
const (
	refusalWrite = 5 * time.Second
	refusalClose = time.Second
)

// refuse sends r as a FATAL error and ends the connection such that the client gets to read it.
func (s *Server) refuse(client net.Conn, r refusal) {
	s.log.Info("connection refused", zap.String("sqlstate", r.code), zap.Stringer("client", client.RemoteAddr()))
	if r.write(client) {
		s.linger(client)
	}
}

func (r refusal) write(client net.Conn) bool {
	b, err := (&pgproto3.ErrorResponse{
		Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: r.code, Message: r.message, Hint: r.hint,
	}).Encode(nil)
	if err != nil {
		return false
	}
	_ = client.SetWriteDeadline(time.Now().Add(refusalWrite))
	_, err = client.Write(b)
	return err == nil
}

// linger waits for the client to close: closing with unread bytes would reset the connection and might take
// away what was sent last.
func (s *Server) linger(client net.Conn) {
	closeWrite(client)
	_ = client.SetReadDeadline(time.Now().Add(refusalClose))
	_, _ = io.Copy(io.Discard, io.LimitReader(client, maxStartup))
}
