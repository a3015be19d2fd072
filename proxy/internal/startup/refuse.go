package startup

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/jackc/pgproto3/v2"

	"github.com/dpwatch/dpwatch/proxy/internal/wire"
)

// Refusal is an error that the proxy itself sends (SQLSTATEs: manual, appendix A).
type Refusal struct {
	Code                  string
	message, detail, hint string
}

// RefusedError is an error whose refusal is sent to the client.
type RefusedError struct{ Refusal }

func (e *RefusedError) Error() string { return e.message }

// The refusals of a proxy.
var (
	TooManySessions = Refusal{
		Code: "53300", message: "dpwatch: too many sessions",
		hint: "Close idle sessions, or raise the limit of sessions in dpwatch's configuration.",
	}
	UpstreamUnreachable = Refusal{
		Code: "08001", message: "dpwatch: the engine behind the proxy cannot be reached",
		hint: "Check that the engine runs and that the upstream address in dpwatch's configuration is right.",
	}
	upstreamWithoutTLS = Refusal{
		Code: "08001", message: "dpwatch: the engine behind the proxy was reached, but TLS with it failed",
		hint: "The reason is in dpwatch's log; compare upstream TLS in its configuration with the engine's.",
	}
	otherCertificate = Refusal{
		Code: "F0000", message: "dpwatch: the proxy's certificate differs from the engine's, so SCRAM with channel binding would fail",
		hint: "Give dpwatch the engine's own certificate and key, or pass TLS through; see dpwatch's log.",
	}
	// unboundClient replaces the engine's error, which has the same code.
	unboundClient = Refusal{
		Code: "28000", message: "dpwatch: the engine refuses a client without TLS that announces SCRAM channel binding",
		detail: "The client sent the SCRAM flag y: it supports channel binding and believes that the engine does not. dpwatch connects to the engine with TLS, where the engine offers channel binding, so that it takes the flag for a downgrade by an attacker.",
		hint:   "Turn channel binding off in the client (node-postgres: enableChannelBinding: false), or connect to dpwatch with TLS (tls with the engine's own certificate, or tls.mode passthrough).",
	}
	TLSRequired = Refusal{
		Code: "28000", message: "dpwatch: this listener accepts only TLS connections",
		hint: "Connect with sslmode=require or stricter.",
	}
	IdleTooLong = Refusal{
		Code: "57P05", message: "dpwatch: terminating connection due to idle-session timeout",
		hint: "Connect again, or raise proxy.idle_timeout in dpwatch's configuration.",
	}
	ShuttingDown = Refusal{
		Code: "57P03", message: "dpwatch: the proxy is shutting down",
		hint: "Connect again later.",
	}
)

// noProxyHeader refuses a client from a network whose connections must begin with a PROXY protocol header.
func noProxyHeader(err error) Refusal {
	return Refusal{
		Code: "08P01", message: "dpwatch: " + err.Error(),
		hint: "Make the load balancer send the header, or remove its network from proxy_protocol in dpwatch's configuration.",
	}
}

// unsupportedProtocol is PostgreSQL's answer to an unsupported protocol version, and to a repeated SSLRequest or
// GSSENCRequest.
func unsupportedProtocol(version uint32) Refusal {
	return Refusal{
		Code:    "0A000",
		message: fmt.Sprintf("unsupported frontend protocol %d.%d: server supports 3.0 to 3.2", version>>16, version&0xffff),
	}
}

// unencryptedData is PostgreSQL's answer to data directly after an encryption request.
func unencryptedData(request uint32) Refusal {
	what := "SSL request"
	if request == gssCode {
		what = "GSSAPI encryption request"
	}
	return Refusal{
		Code: "08P01", message: "received unencrypted data after " + what,
		detail: "This could be either a client-software bug or evidence of an attempted man-in-the-middle attack.",
	}
}

// UpstreamRefusal returns the refusal of a client whose session with the engine failed to begin with err.
func UpstreamRefusal(err error) Refusal {
	var certificate *CertificateError
	var noTLS *upstreamTLSError
	switch {
	case errors.As(err, &certificate):
		return otherCertificate
	case errors.As(err, &noTLS):
		return upstreamWithoutTLS
	}
	return UpstreamUnreachable
}

// Time limits for a client to read a refusal, and to close after it.
const (
	WriteLimit = 5 * time.Second
	closeLimit = time.Second
)

// encode returns r as a FATAL error.
func (r Refusal) encode() ([]byte, error) {
	return (&pgproto3.ErrorResponse{
		Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: r.Code, Message: r.message, Detail: r.detail, Hint: r.hint,
	}).Encode(nil)
}

// Send sends r as a FATAL error; false if that failed.
func (r Refusal) Send(client net.Conn) bool {
	b, err := r.encode()
	if err != nil {
		return false
	}
	_ = client.SetWriteDeadline(time.Now().Add(WriteLimit))
	_, err = client.Write(b)
	return err == nil
}

// Linger waits for the client to close: closing with unread bytes would reset the connection and could discard the
// message sent last.
func Linger(client net.Conn) {
	wire.CloseWrite(client)
	_ = client.SetReadDeadline(time.Now().Add(closeLimit))
	_, _ = io.Copy(io.Discard, io.LimitReader(client, maxStartup))
}
