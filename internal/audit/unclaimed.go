package audit

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
func (d *desk) unclaimed(q capture.Query, r recognize.Recognized) {
	d.skip(skippedUnclaimed, q)
	if r.Unclaimed == recognize.PolicyCount {
		return
	}
	who, now := reader{r.Query.Fingerprint, q.User, q.Database}, d.now
	if at, ok := d.readers.Get(who); ok && now.Sub(at) < reportUnclaimedEvery {
		return
	}
	d.readers.Put(who, now)
	if r.Unclaimed == recognize.PolicyAlert && d.opt.OnFinding != nil {
		d.alert(alert.Finding{Kind: finding.UnclaimedRead, Group: r.Query.Fingerprint, Summary: r.Query.Summary, User: q.User, Database: q.Database, Application: q.ApplicationName, Route: d.opt.route(q)})
		return
	}
	d.log(zap.WarnLevel, "a client reads a protected table without a claim and without a DP function",
		zap.String("db.query.summary", r.Query.Summary), zap.String("db.query.fingerprint", r.Query.Fingerprint),
		zap.String("db.user", q.User), zap.String("db.namespace", q.Database), zap.String("db.application", q.ApplicationName))
}
