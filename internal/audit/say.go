package audit

import (
	"crypto/hmac"
	"crypto/sha256"

	"github.com/dpwatch/dpwatch/internal/withheld"
)

// say returns the message of an error. What a server said is left out unless Options.ShowValues allows it: it may quote rows.
func (a *Auditor) say(err error) string {
	if a.opt.ShowValues {
		return withheld.Reveal(err)
	}
	return err.Error()
}

// salt returns the secret of the ids of one audit's groups. It differs between audits: who may send queries could otherwise
// learn which key an id stands for, from a query whose groups are known.
func (a *Auditor) salt(key string) string {
	mac := hmac.New(sha256.New, []byte(a.secret))
	_, _ = mac.Write([]byte(key)) // never fails
	return string(mac.Sum(nil))
}
