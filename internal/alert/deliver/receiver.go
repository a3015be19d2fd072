package deliver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// Receiver is one destination of alerts.
type Receiver struct {
	Name         string
	Type         string // alertmanager, webhook, slack, pagerduty, exec or stdout
	URL          string
	Secret       string
	Command      []string
	Headers      []alert.Label
	Labels       []alert.Label
	SendResolved bool
	PerMinute    int
	Timeout      time.Duration // of one attempt

	limit *rate.Limiter
	last  chan struct{} // closed when the last message was sent directly; the goroutine of Run has it
	// order is held while an Alertmanager gets alerts: a repetition after the end of an alert would make it fire again.
	// repeats: one waits for it, or sends.
	order   *sync.Mutex
	repeats *atomic.Bool
}

// Defaults of a Receiver.
const (
	defaultPerMinute = 60
	defaultTimeout   = 10 * time.Second
)

// prepare fills in defaults.
func (r *Receiver) prepare() {
	if r.PerMinute == 0 {
		r.PerMinute = defaultPerMinute
	}
	if r.Timeout == 0 {
		r.Timeout = defaultTimeout
	}
	if r.URL == "" && r.Type == "pagerduty" {
		r.URL = alert.PagerDutyURL
	}
	r.order, r.repeats = new(sync.Mutex), new(atomic.Bool)
	r.limit = rate.NewLimiter(rate.Limit(float64(r.PerMinute)/60), r.PerMinute)
}

// send makes one attempt to send messages: several only to an Alertmanager. until is when an Alertmanager ends those
// that fire. Errors hold no secret: neither the URL nor the answer of a receiver.
func (r *Receiver) send(ctx context.Context, stdout io.Writer, now, until time.Time, messages ...alert.Message) error {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	m := messages[0]
	switch r.Type {
	case "alertmanager":
		body, err := alert.Alertmanager(messages, r.Labels, until)
		return r.post(ctx, strings.TrimSuffix(r.URL, "/")+"/api/v2/alerts", "application/json", body, nil, err)
	case "webhook":
		body, err := alert.CloudEvent(m, r.Labels)
		return r.post(ctx, r.URL, "application/cloudevents+json", body, alert.SignWebhook(r.Secret, m.Delivery, now, body), err)
	case "slack":
		body, err := alert.Slack(m, r.Labels)
		return r.post(ctx, r.URL, "application/json", body, nil, err)
	case "pagerduty":
		body, err := alert.PagerDuty(m, r.Secret, r.Labels)
		return r.post(ctx, r.URL, "application/json", body, nil, err)
	}
	body, err := alert.JSON(m, r.Labels)
	if err != nil {
		return err
	}
	if r.Type == "exec" {
		return r.run(ctx, body)
	}
	_, err = stdout.Write(append(body, '\n'))
	return err
}

// post sends a request. An answer that no repetition can change is a PermanentError.
func (r *Receiver) post(ctx context.Context, address, contentType string, body []byte, headers map[string]string, err error) error {
	if err != nil {
		return &ledger.PermanentError{Err: err}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return &ledger.PermanentError{Err: errors.New("the url is not valid")}
	}
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("User-Agent", "dpwatch")
	for _, h := range r.Headers {
		request.Header.Set(h.Name, h.Value)
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := client.Do(request)
	if err != nil {
		return withoutURL(err)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10)) // so that the connection is used again
	_ = response.Body.Close()
	code := response.StatusCode
	if code/100 == 2 {
		return nil
	}
	err = fmt.Errorf("the receiver answered %d %s", code, http.StatusText(code))
	temporary := []int{http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests}
	if code/100 != 5 && !slices.Contains(temporary, code) {
		return &ledger.PermanentError{Err: err}
	}
	return err
}

// client follows no redirects: they could take credentials elsewhere.
var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// withoutURL removes the address from an error: the URL of a webhook is a secret.
func withoutURL(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		err = e.Err
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("the receiver did not answer in time")
	case errors.Is(err, context.Canceled):
		return errors.New("the attempt was ended")
	}
	return fmt.Errorf("the receiver cannot be reached: %w", err)
}

// run executes the command of an exec receiver. What it writes is not kept: it may hold secrets.
func (r *Receiver) run(ctx context.Context, body []byte) error {
	cmd := exec.CommandContext(ctx, r.Command[0], r.Command[1:]...)
	cmd.Stdin = bytes.NewReader(body)
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("the command did not end within %s", r.Timeout)
		}
		return fmt.Errorf("the command failed: %w", err)
	}
	return nil
}
