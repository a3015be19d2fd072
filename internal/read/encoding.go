package read

import (
	"encoding/json"
	"sync"
)

// Encoding keeps the JSON form of an Audit that does not change, without WaitingFor and Accepted, which do. It is made
// when it is needed first.
type Encoding struct {
	once sync.Once
	text []byte
	err  error
}

// AppendJSON appends the JSON form of the audit.
func (a *Audit) AppendJSON(b []byte) ([]byte, error) {
	if a.Encoding == nil {
		text, err := json.Marshal(a)
		return append(b, text...), err
	}
	a.Encoding.once.Do(func() {
		x := *a
		x.WaitingFor, x.Accepted = nil, nil
		a.Encoding.text, a.Encoding.err = json.Marshal(&x)
	})
	if a.Encoding.err != nil || a.WaitingFor == nil && a.Accepted == nil {
		return append(b, a.Encoding.text...), a.Encoding.err
	}
	rest, err := json.Marshal(struct {
		Accepted   *Accepted   `json:"accepted,omitempty"`
		WaitingFor *WaitingFor `json:"waiting_for,omitempty"`
	}{a.Accepted, a.WaitingFor})
	if err != nil {
		return b, err
	}
	return joinObjects(append(b, a.Encoding.text...), rest), nil
}

// joinObjects appends the members of a JSON object to those of the one that b ends with. Both have members.
func joinObjects(b, object []byte) []byte {
	b[len(b)-1] = ','
	return append(b, object[1:]...)
}
