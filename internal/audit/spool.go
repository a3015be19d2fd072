package audit

import (
	"context"
	"encoding/binary"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/inbox"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// spoolInbox moves the queries of the inbox to the spool if there are more than the given part of its bounds: 2 = a
// half, 0 = any. What the spool cannot take is counted as skipped. Where statements are withheld from the disk, they
// stay in the inbox unless the process ends.
func (n *intake) spoolInbox(part int, ends bool) {
	if !n.inbox.Beyond(part) {
		return
	}
	s := n.keeper.Spool()
	if s == nil || s.Withholds() && !ends {
		return
	}
	content, queries := n.takeInbox()
	err := s.Put(ledger.SpooledQueries, content)
	if err == nil {
		n.keeper.Settle(queries)
		return
	}
	n.keeper.SaySpoolFull(err)
	n.turnAway(make([]inbox.Arrival, queries))
}

// unspool submits the queries of the first spooled file, and reports whether there may be another one. The ledger
// remembers the file, so that it is not submitted twice even if it cannot be removed.
func (n *intake) unspool(ctx context.Context) bool {
	s := n.keeper.Spool()
	if s == nil || !n.keeper.Ready() {
		return false
	}
	name, content, err := s.First(ledger.SpooledQueries)
	switch {
	case err != nil:
		n.opt.Logger.Error("captured queries in the spool cannot be submitted", zap.String("error", n.opt.say(err)))
		return true
	case name == "":
		return false
	}
	switch done, err := n.keeper.Engine.Load().Submitted(ctx, name); {
	case err != nil:
		n.keeper.Wrote(err)
		return false
	case done:
		_ = s.Remove(name)
		return true
	}
	if n.keeper.Record(ctx) != nil {
		return false
	}
	n.keeper.Hold()
	n.submitAll(content, func(part int) bool { return s.Attempt(name, part) <= spoolAttempts })
	n.keeper.Submitted(name, 0)
	return n.keeper.Record(ctx) == nil
}

// spoolAttempts is the number of auditor processes that may end while they submit a spooled query: hostile SQL can
// crash the parser.
const spoolAttempts = 2

// takeInbox empties the inbox; each query has its length before it.
func (n *intake) takeInbox() (content []byte, queries int) {
	held, _ := n.inbox.Held()
	for ; queries < held; queries++ { // not what arrives meanwhile: the result is bounded as the inbox is
		x, ok := n.inbox.Next()
		if !ok {
			break
		}
		one := capture.AppendBinary(nil, x.Query)
		content = append(binary.AppendUvarint(content, uint64(len(one))), one...)
	}
	return content, queries
}
