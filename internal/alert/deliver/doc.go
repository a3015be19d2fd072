// Package deliver sends alerts to receivers.
//
// It owns which alerts fire, their routes, and the attempts to send them. Package alert has the formats. In: findings
// (Notify). Out: requests to receivers, and the alerts in the ledger, whose jobs send each message at least once.
// Without a ledger, or while it is away, messages are sent directly, with a bounded number of attempts.
package deliver
