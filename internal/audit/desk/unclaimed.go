package desk

import (
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/finding"
)

// skippedUnclaimed is the reason for skipping an unclaimed read.
const skippedUnclaimed = "unclaimed_read"

// reportUnclaimedEvery is how long the same unclaimed read of the same user, with any constants, is not reported again.
const reportUnclaimedEvery = 24 * time.Hour

// reportedUnclaimed is the minimal number of unclaimed reads that are remembered as reported.
const reportedUnclaimed = 4096

// reader is who sent an unclaimed read, and its statement without constants.
type reader struct{ group, user, database string }

// unclaimed counts an unclaimed read, and reports it if its policy says so and it was not reported lately.
func (k *counts) unclaimed(q capture.Query, r recognize.Recognized, route string) {
	k.skip(skippedUnclaimed, q)
	if r.Unclaimed == recognize.PolicyCount {
		return
	}
	who, now := reader{r.Query.Fingerprint, q.User, q.Database}, k.now
	if at, ok := k.readers.Get(who); ok && now.Sub(at) < reportUnclaimedEvery {
		return
	}
	k.readers.Put(who, now)
	if r.Unclaimed == recognize.PolicyAlert && k.opt.Findings {
		k.alert(alert.Finding{Kind: finding.UnclaimedRead, Group: r.Query.Fingerprint, Summary: r.Query.Summary, User: q.User, Database: q.Database, Application: q.ApplicationName, Route: route})
		return
	}
	k.log(zap.WarnLevel, "a client reads a protected table without a claim and without a DP function",
		zap.String("db.query.summary", r.Query.Summary), zap.String("db.query.fingerprint", r.Query.Fingerprint),
		zap.String("db.user", q.User), zap.String("db.namespace", q.Database), zap.String("db.application", q.ApplicationName))
}
