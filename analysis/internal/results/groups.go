package results

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// This file names groups and columns in reports.

// keyLabel returns a key in words, store_id=17, class="low", and in public its id: see Options.Salt.
func (r *Reader) keyLabel(row []outcome.Value, occurrence int) withheld.Text {
	if !r.Keyed {
		return withheld.Public("()")
	}
	if len(r.Keys) == 0 {
		return withheld.Public("row " + strconv.Itoa(occurrence))
	}
	var parts []string
	for _, c := range r.Keys {
		if c < len(row) {
			parts = append(parts, r.ColumnName(c)+"="+literal(row[c]))
		}
	}
	s := strings.Join(parts, ", ")
	if occurrence > 1 {
		s += " #" + strconv.Itoa(occurrence)
	}
	id := ""
	if r.salt != "" {
		id = groupID(r.salt, s)
	}
	return withheld.New(s, id)
}

// groupID returns the id of a key: a keyed hash, since keys are few enough to be tried one by one against any other.
func groupID(salt, key string) string {
	mac := hmac.New(sha256.New, []byte(salt))
	_, _ = mac.Write([]byte(key)) // never fails
	return hex.EncodeToString(mac.Sum(nil)[:4])
}

// GroupName returns the name of the key k: its label, and in public its place in the order in which the keys came, with
// its id.
func (r *Reader) GroupName(k int) withheld.Text {
	label := r.Labels[k]
	if !r.Keyed || len(r.Keys) == 0 {
		return label
	}
	public := fmt.Sprintf("group %d of %d", k+1, len(r.Labels))
	if id := label.String(); id != "" {
		public += " (id " + id + ")"
	}
	return withheld.New(label.Reveal(), public)
}

// GroupWords is GroupName within a sentence.
func (r *Reader) GroupWords(k int) withheld.Text {
	name := r.GroupName(k)
	if !r.Keyed || len(r.Keys) == 0 {
		return withheld.Sprintf("partition %s", name)
	}
	return withheld.New("partition "+name.Reveal(), name.String())
}

// ColumnName returns the name of a column, or its number where it has none.
func (l *Layout) ColumnName(c int) string {
	if c < len(l.names) && l.names[c] != "" && l.names[c] != "?column?" {
		return code.Shorten(l.names[c])
	}
	return strconv.Itoa(c + 1)
}

// literal returns a value in words.
func literal(v outcome.Value) string {
	switch v.Kind {
	case outcome.Number:
		if v.Text != "" {
			return code.Shorten(v.Text)
		}
		if v.Num == math.Trunc(v.Num) && math.Abs(v.Num) < 1e15 { // two keys must not look alike
			return strconv.FormatFloat(v.Num, 'f', 0, 64)
		}
		return strconv.FormatFloat(v.Num, 'g', -1, 64)
	case outcome.Bool:
		return strconv.FormatBool(v.Num != 0)
	case outcome.Text:
		return strconv.Quote(code.Shorten(v.Text))
	}
	return "NULL"
}
