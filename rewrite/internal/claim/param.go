package claim

import (
	"encoding/binary"
	"math"

	"github.com/dpwatch/dpwatch/internal/capture"
)

// OIDs of the types in which a claim may be bound (pg_type.dat).
const (
	oidInt8    = 20
	oidInt2    = 21
	oidInt4    = 23
	oidText    = 25
	oidFloat4  = 700
	oidFloat8  = 701
	oidUnknown = 705
	oidBPChar  = 1042
	oidVarchar = 1043
	oidNumeric = 1700
)

// paramValue reads a bound parameter as a number, from text or from the binary format of its type. If the client left
// the type to the server (OID 0), a binary value is recognised by its length and size: the bits of an integer in the
// range of claims, read as a float, are far below any claim, and those of a float in that range, read as an integer,
// far above.
func paramValue(p capture.Param) (float64, error) {
	if p.Null {
		return 0, errNull
	}
	if p.Format == 0 {
		return parseNumber(string(p.Value))
	}
	switch p.OID {
	case oidText, oidVarchar, oidBPChar, oidUnknown:
		return parseNumber(string(p.Value))
	case oidNumeric:
		return numericValue(p.Value)
	case 0:
		return inferredValue(p.Value)
	}
	size := map[uint32]int{oidInt2: 2, oidInt4: 4, oidInt8: 8, oidFloat4: 4, oidFloat8: 8}[p.OID]
	if size == 0 || len(p.Value) != size {
		return 0, errFormat
	}
	switch p.OID {
	case oidFloat4:
		return float64(math.Float32frombits(binary.BigEndian.Uint32(p.Value))), nil
	case oidFloat8:
		return math.Float64frombits(binary.BigEndian.Uint64(p.Value)), nil
	}
	return integerValue(p.Value), nil
}

// integerValue reads 2, 4 or 8 bytes as a signed integer.
func integerValue(b []byte) float64 {
	switch len(b) {
	case 2:
		return float64(int16(binary.BigEndian.Uint16(b))) //nolint:gosec // the wire form is two's complement
	case 4:
		return float64(int32(binary.BigEndian.Uint32(b))) //nolint:gosec // likewise
	}
	return float64(int64(binary.BigEndian.Uint64(b))) //nolint:gosec // likewise
}

// smallestFloat is below every claim, and above every float with the bits of a small integer.
const smallestFloat = 1e-30

func inferredValue(b []byte) (float64, error) {
	float := 0.0
	switch len(b) {
	case 2:
		return integerValue(b), nil
	case 4:
		float = float64(math.Float32frombits(binary.BigEndian.Uint32(b)))
	case 8:
		float = math.Float64frombits(binary.BigEndian.Uint64(b))
	default:
		return numericValue(b)
	}
	if i := integerValue(b); math.Abs(i) <= 1<<20 {
		return i, nil // 0 has the same bits in both types
	}
	if math.Abs(float) < smallestFloat {
		return 0, errFormat
	}
	return float, nil
}

// numericValue reads the binary format of numeric (numeric_recv in numeric.c): the number of base-10000 digits, the
// weight of the first, the sign, the display scale, then the digits.
func numericValue(b []byte) (float64, error) {
	if len(b) < 8 {
		return 0, errFormat
	}
	digits := int(binary.BigEndian.Uint16(b))
	weight := int(int16(binary.BigEndian.Uint16(b[2:]))) //nolint:gosec // two's complement
	sign := binary.BigEndian.Uint16(b[4:])
	if len(b) != 8+2*digits {
		return 0, errFormat
	}
	v := 0.0
	for i := range digits {
		d := binary.BigEndian.Uint16(b[8+2*i:])
		if d > 9999 {
			return 0, errFormat
		}
		v += float64(d) * math.Pow(10_000, float64(weight-i))
	}
	switch sign {
	case 0x0000:
		return v, nil
	case 0x4000:
		return -v, nil
	case 0xC000, 0xD000, 0xF000:
		return math.NaN(), nil // NaN and the infinities are never a valid claim
	}
	return 0, errFormat
}
