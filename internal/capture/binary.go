package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// The first byte of the binary form is the version of the layout. All of them can be read, because spools and ledgers
// hold them. A query without a claim that the engine states, or without Temps, has no newer version than a former
// dpwatch can read.
const (
	versionWithoutOutcome = 2
	versionWithoutStated  = 3
	versionWithoutTemps   = 4
	binaryVersion         = 5
)

// The bits of the flags byte after the version.
const (
	flagExtended  = 1 << iota
	flagUncertain // of an earlier version, which knew only whether all settings are in doubt
	flagCompleted // Completed is not zero, and follows
	flagNamed
	flagBegan // Began is not zero, and follows last; before versionWithoutStated: a sequence, which cannot be decoded
	flagThen  // Then is not empty, and follows
	flagDoubt // Doubt is not empty, and follows
)

// errShort means that the input ended inside a field, or that a length exceeds the input.
var errShort = errors.New("input is too short")

// AppendBinary appends the binary form of q to dst and returns the extended slice. Equal queries give equal bytes.
// Completed keeps its instant to the nanosecond, but not its location.
//
// The layout is version, flags, outcome, then the fields in the order of Query, SQLState after Tag and Then last:
// integers as varints, strings and lists after their length, settings sorted by name. From version 4 on, Stated of the
// query and of each of Then follows, and in the present version
// Temps. Began is last. Whole is not part of it.
func AppendBinary(dst []byte, q Query) []byte {
	flags := byte(0)
	if q.Protocol == Extended {
		flags |= flagExtended
	}
	if !q.Doubt.None() {
		flags |= flagDoubt
	}
	if q.Named {
		flags |= flagNamed
	}
	if !q.Completed.IsZero() {
		flags |= flagCompleted
	}
	if len(q.Then) > 0 {
		flags |= flagThen
	}
	if !q.Began.IsZero() {
		flags |= flagBegan
	}
	version := byte(versionWithoutStated)
	switch {
	case len(q.Temps) > 0:
		version = binaryVersion
	case q.states():
		version = versionWithoutTemps
	}
	dst = append(dst, version, flags, byte(q.Outcome))
	dst = binary.AppendUvarint(dst, q.SessionID)
	for _, s := range [...]string{q.User, q.Database, q.ApplicationName, q.SQL, q.Tag, q.SQLState} {
		dst = appendString(dst, s)
	}
	dst = appendParams(dst, q.Params)
	dst = binary.AppendUvarint(dst, uint64(len(q.ResultFormats)))
	for _, f := range q.ResultFormats {
		dst = binary.AppendVarint(dst, int64(f))
	}
	dst = appendSettings(dst, q.Settings)
	dst = appendStrings(dst, q.Temporary)
	if flags&flagCompleted != 0 {
		dst = appendTime(dst, q.Completed)
	}
	if flags&flagDoubt != 0 {
		dst = appendDoubt(dst, q.Doubt)
	}
	if len(q.Then) > 0 {
		dst = binary.AppendUvarint(dst, uint64(len(q.Then)))
		for _, s := range q.Then {
			how := byte(s.Protocol) << 1
			if s.Named {
				how |= 1
			}
			dst = appendParams(appendString(append(dst, how), s.SQL), s.Params)
		}
	}
	if version >= versionWithoutTemps {
		dst = q.Stated.AppendBinary(dst)
		for _, s := range q.Then {
			dst = s.Stated.AppendBinary(dst)
		}
	}
	if version == binaryVersion {
		dst = binary.AppendUvarint(dst, uint64(len(q.Temps)))
		for _, d := range q.Temps {
			dst = appendDoubt(appendSettings(appendString(appendString(dst, d.Name), d.View), d.Settings), d.Doubt)
		}
	}
	if flags&flagBegan != 0 {
		dst = appendTime(dst, q.Began)
	}
	return dst
}

func appendTime(dst []byte, t time.Time) []byte {
	return binary.AppendUvarint(binary.AppendVarint(dst, t.Unix()), uint64(t.Nanosecond()))
}

// states reports whether the engine states something about the query or one of Then.
func (q Query) states() bool {
	return !q.Stated.None() || slices.ContainsFunc(q.Then, func(s Step) bool { return !s.Stated.None() })
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendStrings(dst []byte, list []string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	for _, s := range list {
		dst = appendString(dst, s)
	}
	return dst
}

func appendDoubt(dst []byte, d Doubt) []byte {
	temporary := byte(0)
	if d.Temporary {
		temporary = 1
	}
	dst = appendStrings(append(dst, temporary), d.Names)
	dst = binary.AppendUvarint(dst, uint64(len(d.Calls)))
	for _, c := range d.Calls {
		dst = appendStrings(appendStrings(appendStrings(dst, c.Functions), c.Except), c.Only)
	}
	return dst
}

func appendParams(dst []byte, params []Param) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(params)))
	for _, p := range params {
		dst = binary.AppendUvarint(dst, uint64(p.OID))
		dst = binary.AppendVarint(dst, int64(p.Format))
		if p.Null {
			dst = append(dst, 1)
			continue
		}
		dst = append(dst, 0)
		dst = append(binary.AppendUvarint(dst, uint64(len(p.Value))), p.Value...)
	}
	return dst
}

func appendSettings(dst []byte, settings map[string]string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(settings)))
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		dst = appendString(appendString(dst, name), settings[name])
	}
	return dst
}

// DecodeBinary decodes the output of AppendBinary. The query shares no memory with b. Any other input gives an error
// and allocates at most a small multiple of its length. Empty lists and maps are decoded as nil.
func DecodeBinary(b []byte) (Query, error) {
	d := decoder{b: b}
	q := d.query()
	if d.err == nil && len(d.b) > 0 {
		d.err = fmt.Errorf("%d bytes follow the query", len(d.b))
	}
	if d.err != nil {
		return Query{}, fmt.Errorf("decode captured query: %w", d.err)
	}
	return q, nil
}

// decoder reads fields from the front of b. After the first error it returns zero values.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) query() Query {
	var q Query
	v := d.byte()
	if d.err == nil && (v < versionWithoutOutcome || v > binaryVersion) {
		d.err = fmt.Errorf("version %d of the format is not supported, only up to %d: relay and auditor must be the same build of dpwatch", v, binaryVersion)
	}
	flags := d.byte()
	if v != versionWithoutOutcome {
		q.Outcome = Outcome(d.byte())
	}
	if q.Outcome >= outcomes && d.err == nil {
		d.err = fmt.Errorf("outcome %d is unknown", q.Outcome)
	}
	if flags&flagExtended != 0 {
		q.Protocol = Extended
	}
	if flags&flagUncertain != 0 {
		q.Doubt = AnySetting()
	}
	q.Named = flags&flagNamed != 0
	q.SessionID = d.uvarint()
	for _, s := range [...]*string{&q.User, &q.Database, &q.ApplicationName, &q.SQL, &q.Tag} {
		*s = d.string()
	}
	if v != versionWithoutOutcome {
		q.SQLState = d.string()
	}
	q.Params = list(d, 3, d.param)
	q.ResultFormats = list(d, 1, d.int16)
	q.Settings = d.settings()
	q.Temporary = list(d, 1, d.string)
	if flags&flagCompleted != 0 {
		q.Completed = d.time()
	}
	if flags&flagDoubt != 0 {
		q.Doubt = d.doubt()
	}
	if flags&flagThen != 0 {
		q.Then = list(d, 3, d.step)
	}
	if v >= versionWithoutTemps {
		q.Stated = d.stated()
		for i := range q.Then {
			q.Then[i].Stated = d.stated()
		}
	}
	if v == binaryVersion {
		q.Temps = list(d, 6, d.temp)
	}
	if flags&flagBegan != 0 && v >= versionWithoutStated {
		q.Began = d.time()
	}
	return q
}

func (d *decoder) stated() Stated {
	n := min(StatedLen, len(d.b))
	s, ok := DecodeStated(d.b[:n])
	if d.b = d.b[n:]; !ok {
		d.fail(errors.New("what the engine states is no claim"))
	}
	return s
}

// list reads a list whose items take at least size bytes of input each; nil if it is empty.
func list[T any](d *decoder, size int, item func() T) []T {
	n := d.count(size)
	if n == 0 {
		return nil
	}
	items := make([]T, n)
	for i := range items {
		items[i] = item()
	}
	return items
}

func (d *decoder) doubt() Doubt {
	temporary := d.byte()
	if temporary > 1 && d.err == nil {
		d.err = fmt.Errorf("a doubt has the mark %d", temporary)
	}
	return Doubt{Temporary: temporary == 1, Names: list(d, 1, d.string), Calls: list(d, 3, d.calls)}
}

func (d *decoder) temp() Temp {
	return Temp{Name: d.string(), View: d.string(), Settings: d.settings(), Doubt: d.doubt()}
}

func (d *decoder) calls() Calls {
	return Calls{Functions: list(d, 1, d.string), Except: list(d, 1, d.string), Only: list(d, 1, d.string)}
}

func (d *decoder) step() Step {
	how := d.byte()
	if how > byte(Extended)<<1|1 && d.err == nil {
		d.err = fmt.Errorf("a statement of a sequence has the mark %d", how)
	}
	return Step{Protocol: Protocol(how >> 1), Named: how&1 != 0, SQL: d.string(), Params: list(d, 3, d.param)}
}

func (d *decoder) param() Param {
	p := Param{OID: uint32(d.limited(math.MaxUint32)), Format: d.int16()}
	if p.Null = d.byte() != 0; !p.Null {
		p.Value = append([]byte{}, d.bytes()...)
	}
	return p
}

func (d *decoder) settings() map[string]string {
	n := d.count(2)
	if n == 0 {
		return nil
	}
	settings := make(map[string]string)
	for range n {
		name := d.string()
		settings[name] = d.string()
		if d.err != nil {
			return nil
		}
	}
	return settings
}

func (d *decoder) time() time.Time {
	seconds := d.varint()
	nanoseconds := d.limited(999_999_999)
	return time.Unix(seconds, int64(nanoseconds)).UTC()
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.b = nil
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail(errShort)
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

// number reads a number with binary.Uvarint or binary.Varint.
func number[T uint64 | int64](d *decoder, read func([]byte) (T, int)) T {
	v, n := read(d.b)
	if n <= 0 {
		d.fail(errShort)
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) uvarint() uint64 { return number(d, binary.Uvarint) }

func (d *decoder) varint() int64 { return number(d, binary.Varint) }

// limited reads an unsigned number of at most limit.
func (d *decoder) limited(limit uint64) uint64 {
	v := d.uvarint()
	if v > limit {
		d.fail(fmt.Errorf("number %d is above %d", v, limit))
		return 0
	}
	return v
}

func (d *decoder) int16() int16 {
	v := d.varint()
	if v != int64(int16(v)) {
		d.fail(fmt.Errorf("format code %d is out of range", v))
		return 0
	}
	return int16(v)
}

// count reads the length of a list whose items each take at least size bytes of input.
func (d *decoder) count(size int) int {
	n := d.uvarint()
	if n > uint64(len(d.b)/size) {
		d.fail(errShort)
		return 0
	}
	return int(n)
}

// bytes reads a length and that many bytes; the result points into the input.
func (d *decoder) bytes() []byte {
	n := d.count(1)
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) string() string { return string(d.bytes()) }
