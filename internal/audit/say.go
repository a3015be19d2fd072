package audit

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"runtime"

	"github.com/dpwatch/dpwatch/internal/withheld"
)

// say returns the message of an error. What a server said is left out unless Options.ShowValues allows it: it may quote rows.
func (a *Auditor) say(err error) string {
	if a.opt.ShowValues {
		return withheld.Reveal(err)
	}
	return err.Error()
}

// panicText describes what was recovered: a runtime error by its message, which the runtime makes of types and indexes, and
// anything else by its type.
func (a *Auditor) panicText(r any) string {
	if fault, ok := r.(runtime.Error); ok {
		return fault.Error()
	}
	if a.opt.ShowValues {
		return fmt.Sprint(r)
	}
	return fmt.Sprintf("a value of type %T %s", r, withheld.Mark)
}

// salt returns the secret of the ids of one audit's groups. It differs between audits: who may send queries could otherwise
// learn which key an id stands for, from a query whose groups are known.
func (a *Auditor) salt(key string) string {
	mac := hmac.New(sha256.New, []byte(a.secret))
	_, _ = mac.Write([]byte(key)) // never fails
	return string(mac.Sum(nil))
}
