package textnumber

import (
	"encoding/json"
	"errors"
)

// encoded is the serialised form of a Form.
type encoded struct {
	Kind     kind     `json:"k"`
	Decimals []int    `json:"d"`
	Fixed    []string `json:"f"`
	Comma    bool     `json:"c"`
	Minus    minus    `json:"m"`
	Plain    bool     `json:"p"`
}

// Encode returns the form as text, for Decode. It contains the fixed parts of the texts.
func (f *Form) Encode() string {
	b, _ := json.Marshal(encoded{f.kind, f.decimals, f.fixed, f.comma, f.minus, f.plain}) // never fails
	return string(b)
}

// Decode returns the form from the result of Encode, and an error for anything else.
func Decode(text string) (Form, error) {
	var e encoded
	if json.Unmarshal([]byte(text), &e) != nil {
		return Form{}, errors.New("not a form of texts")
	}
	n := len(e.Decimals)
	ok := e.Kind <= wrapped && e.Minus <= parentheses && n <= MaxParts
	switch e.Kind {
	case none:
		ok = ok && n == 0
	case several, wrapped:
		ok = ok && n > 0 && len(e.Fixed) == n+1
	case money:
		ok = ok && n == 1 && len(e.Fixed) == 2
	default:
		ok = ok && n == 1
	}
	if !ok {
		return Form{}, errors.New("not a form of texts")
	}
	return Form{e.Kind, e.Decimals, e.Fixed, e.Comma, e.Minus, e.Plain}, nil
}
