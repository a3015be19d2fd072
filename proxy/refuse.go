package proxy

import (
	"fmt"
	"io"
	"net"
	"time"

	"github.com/jackc/pgproto3/v2"
	"go.uber.org/zap"
)

// refusal is an error that the proxy itself sends (SQLSTATEs: manual, appendix A).
type refusal struct {
	code, message, detail, hint string
}

// refusedError is an error whose refusal is sent to the client.
type refusedError struct{ refusal }

func (e *refusedError) Error() string { return e.message }

var (
	tooManySessions = refusal{
		code: "53300", message: "dpwatch: too many sessions",
		hint: "Close idle sessions, or raise the limit of sessions in dpwatch's configuration.",
	}
	upstreamUnreachable = refusal{
		code: "08001", message: "dpwatch: the engine behind the proxy cannot be reached",
		hint: "Check that the engine runs and that the upstream address in dpwatch's configuration is right.",
	}
	upstreamWithoutTLS = refusal{
		code: "08001", message: "dpwatch: the engine behind the proxy was reached, but TLS with it failed",
		hint: "The reason is in dpwatch's log; compare upstream TLS in its configuration with the engine's.",
	}
	otherCertificate = refusal{
		code: "F0000", message: "dpwatch: the proxy's certificate is not the engine's, so SCRAM with channel binding would fail",
		hint: "Give dpwatch the engine's own certificate and key, or pass TLS through; see dpwatch's log.",
	}
	tlsRequired = refusal{
		code: "28000", message: "dpwatch: this listener takes TLS connections only",
		hint: "Connect with sslmode=require or stricter.",
	}
	idleTooLong = refusal{
		code: "57P05", message: "dpwatch: terminating connection due to idle-session timeout",
		hint: "Connect again, or raise proxy.idle_timeout in dpwatch's configuration.",
	}
	shuttingDown = refusal{
		code: "57P03", message: "dpwatch: the proxy is shutting down",
		hint: "Connect again later.",
	}
)

// noProxyHeader refuses a client from a network whose connections must begin with a PROXY protocol header.
func noProxyHeader(err error) refusal {
	return refusal{
		code: "08P01", message: "dpwatch: " + err.Error(),
		hint: "Make the load balancer send the header, or remove its network from proxy_protocol in dpwatch's configuration.",
	}
}

// unsupportedProtocol is PostgreSQL's answer to an unsupported protocol version, and to a repeated SSLRequest or
// GSSENCRequest.
func unsupportedProtocol(version uint32) refusal {
	return refusal{
		code:    "0A000",
		message: fmt.Sprintf("unsupported frontend protocol %d.%d: server supports 3.0 to 3.2", version>>16, version&0xffff),
	}
}

// unencryptedData is PostgreSQL's answer to data directly after an encryption request.
func unencryptedData(request uint32) refusal {
	what := "SSL request"
	if request == gssCode {
		what = "GSSAPI encryption request"
	}
	return refusal{
		code: "08P01", message: "received unencrypted data after " + what,
		detail: "This could be either a client-software bug or evidence of an attempted man-in-the-middle attack.",
	}
}

// Time limits for a client to read a refusal, and to close after it.
const (
	refusalWrite = 5 * time.Second
	refusalClose = time.Second
)

// refuse sends r as a FATAL error and closes the connection so that the client can read it.
func (s *Server) refuse(client net.Conn, r refusal) {
	s.log.Info("connection refused", zap.String("sqlstate", r.code), zap.Stringer("client", client.RemoteAddr()))
	if r.write(client) {
		s.linger(client)
	}
}

func (r refusal) write(client net.Conn) bool {
	b, err := (&pgproto3.ErrorResponse{
		Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: r.code, Message: r.message, Detail: r.detail, Hint: r.hint,
	}).Encode(nil)
	if err != nil {
		return false
	}
	_ = client.SetWriteDeadline(time.Now().Add(refusalWrite))
	_, err = client.Write(b)
	return err == nil
}

// linger waits for the client to close: closing with unread bytes would reset the connection and could discard the message
// sent last.
func (s *Server) linger(client net.Conn) {
	closeWrite(client)
	_ = client.SetReadDeadline(time.Now().Add(refusalClose))
	_, _ = io.Copy(io.Discard, io.LimitReader(client, maxStartup))
}
