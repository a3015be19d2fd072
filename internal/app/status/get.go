package status

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/web"
)

// maxAnswer limits the size of an answer, in bytes.
const maxAnswer = 1 << 30

// FetchNearest is Nearest among the listeners that serve the status.
func FetchNearest(file string, listeners []config.AdminListener) (Target, error) {
	full := slices.DeleteFunc(slices.Clone(listeners), func(l config.AdminListener) bool { return l.MetricsOnly })
	if len(full) == 0 && len(listeners) > 0 {
		return Target{}, fmt.Errorf("%s: every admin listener is metrics_only: add one without it, for example on 127.0.0.1:9188", file)
	}
	return Nearest(file, full)
}

// Get returns the answer to a GET of path. It sends the target's token, and only to a listener on this machine or one
// whose certificate is verified.
func (t Target) Get(ctx context.Context, path string) ([]byte, error) {
	if t.engine != "" {
		path += "?" + url.Values{"engine": {t.engine}}.Encode()
	}
	token, err := t.token()
	if err != nil {
		return nil, err
	}
	if token != "" && !t.tls && !t.Address.Loopback() {
		return nil, fmt.Errorf("the token would be sent to %s unencrypted: give --address https://%[1]s, and set admin.tls", t.Address)
	}
	verification, err := t.verification()
	if err != nil {
		return nil, err
	}
	answer, err := t.request(ctx, path, token, verification)
	var unverified *tls.CertificateVerificationError
	switch {
	case errors.As(err, &unverified):
		return nil, fmt.Errorf("%w: use --config, or name the file of its CA in SSL_CERT_FILE", err)
	case err != nil:
		return nil, fmt.Errorf("%w; is dpwatch running, and is this the address of its admin port (admin.listen)?", err)
	}
	defer answer.Body.Close()
	switch {
	case answer.StatusCode == http.StatusUnauthorized && token == "":
		return nil, fmt.Errorf("%s requires a token: give --config FILE, or --token-file with the file of admin.token_file", t.Address)
	case answer.StatusCode == http.StatusUnauthorized:
		return nil, fmt.Errorf("%s rejects the token in %s", t.Address, t.tokenFile)
	case answer.StatusCode != http.StatusOK:
		return nil, t.refusal(answer)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", t.Address, err)
	}
	if len(text) > maxAnswer {
		return nil, fmt.Errorf("the answer of %s is longer than %d bytes", t.Address, maxAnswer)
	}
	return text, nil
}

// token returns the first token of the token file; "" without a file.
func (t Target) token() (string, error) {
	if t.tokenFile == "" {
		return "", nil
	}
	token, err := web.FirstToken(t.tokenFile)
	if err != nil {
		return "", fmt.Errorf("read the token of the admin port: %w", err)
	}
	return token, nil
}

// verification returns a configuration that accepts only the configured certificate, or, without one, certificates that
// the system trusts.
func (t Target) verification() (*tls.Config, error) {
	if !t.tls || t.certificate == "" {
		return &tls.Config{MinVersion: tls.VersionTLS12}, nil
	}
	text, err := os.ReadFile(t.certificate)
	if err != nil {
		return nil, fmt.Errorf("read the certificate of the admin port: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, fmt.Errorf("%s does not begin with a PEM certificate", t.certificate)
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // the certificate itself is compared, not its name and issuer
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 || !bytes.Equal(state.PeerCertificates[0].Raw, block.Bytes) {
				return fmt.Errorf("its certificate is not the one in %s", t.certificate)
			}
			return nil
		},
	}, nil
}
