package view

import "encoding/json"

// AppendJSON appends the JSON form of the status. What has not changed in an audit since another status was encoded is
// not encoded again.
func (s *Status) AppendJSON(b []byte) ([]byte, error) {
	type plain Status
	rest, err := json.Marshal(struct {
		*plain
		Audits struct{} `json:"audits,omitzero"`
	}{plain: (*plain)(s)})
	if err != nil {
		return b, err
	}
	b = append(b, rest[:len(rest)-1]...)
	b = append(b, `,"audits":[`...)
	for i := range s.Audits {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = s.Audits[i].AppendJSON(b); err != nil {
			return b, err
		}
	}
	return append(b, "]}"...), nil
}
