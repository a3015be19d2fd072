package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/app/querypage"
)

// maxPageAnswer bounds the answer of the process that reads an audit for a page, in bytes.
const maxPageAnswer = 16 << 20

// reader starts the processes that read an audit for a page: this program, with the configuration in force.
type reader struct {
	configuration *Configuration
	binary        string
	environment   []string
	log           *zap.Logger
}

// ask runs the process for a page.
func (r reader) ask(ctx context.Context, q querypage.Request) (a querypage.Answer, err error) {
	q.Configuration = *r.configuration.resolved.Load()
	text, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	out := &boundedBuffer{most: maxPageAnswer}
	cmd := exec.CommandContext(ctx, r.binary, querypage.Command)
	cmd.Env, cmd.Stdin, cmd.Stdout = r.environment, bytes.NewReader(text), out // standard error may hold values: a panic's message
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		r.log.Warn("the process that reads an audit for a page failed", zap.Error(err))
		if ctx.Err() != nil {
			return a, errors.New("reading the audit took too long: the ledger or the shadow database answers slowly; try again")
		}
		return a, errors.New("the audit cannot be read: see dpwatch's log; dpwatch explain ID --config FILE reads it without a page")
	}
	if err := json.Unmarshal(out.Bytes(), &a); err != nil {
		return a, fmt.Errorf("the audit cannot be read: %w", err)
	}
	return a, nil
}

// boundedBuffer keeps the beginning of what is written.
type boundedBuffer struct {
	bytes.Buffer
	most int
}

// Write implements [io.Writer]. What exceeds the bound is dropped.
func (b *boundedBuffer) Write(p []byte) (int, error) {
	if left := b.most - b.Len(); left > 0 {
		b.Buffer.Write(p[:min(left, len(p))])
	}
	return len(p), nil
}

var _ io.Writer = (*boundedBuffer)(nil)
