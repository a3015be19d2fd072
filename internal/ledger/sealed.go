package ledger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// A sealed state is magic, format, CRC-32C of the rest, then the zstd frame of the state.
const (
	magic        = "dpwe"
	sealedFormat = 1
	headerLength = len(magic) + 1 + 4
)

// MaxState bounds a state, before compression.
const MaxState = 256 << 20

// ErrState is wrapped by all errors of Unseal: the state is damaged, or a newer version wrote it.
var ErrState = errors.New("the stored evidence cannot be used")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// coder returns the shared encoder and decoder, whose EncodeAll and DecodeAll are safe for concurrent use.
var coder = sync.OnceValues(func() (*zstd.Encoder, *zstd.Decoder) {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err) // only for wrong options
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxState))
	if err != nil {
		panic(err)
	}
	return e, d
})

// Seal compresses a state and adds a checksum.
func Seal(state []byte) []byte {
	e, _ := coder()
	out := append(make([]byte, 0, headerLength+len(state)/4), magic...)
	out = append(out, sealedFormat, 0, 0, 0, 0)
	out = e.EncodeAll(state, out)
	binary.BigEndian.PutUint32(out[headerLength-4:], crc32.Checksum(out[headerLength:], castagnoli))
	return out
}

// Unseal returns the state in sealed. Its errors wrap ErrState and hold nothing of the state.
func Unseal(sealed []byte) ([]byte, error) {
	switch {
	case len(sealed) < headerLength || !bytes.HasPrefix(sealed, []byte(magic)):
		return nil, fmt.Errorf("%w: it is not evidence of dpwatch", ErrState)
	case sealed[len(magic)] != sealedFormat:
		return nil, fmt.Errorf("%w: its format is %d, this version reads %d", ErrState, sealed[len(magic)], sealedFormat)
	case binary.BigEndian.Uint32(sealed[headerLength-4:]) != crc32.Checksum(sealed[headerLength:], castagnoli):
		return nil, fmt.Errorf("%w: its checksum is wrong", ErrState)
	}
	_, d := coder()
	state, err := d.DecodeAll(sealed[headerLength:], nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrState, err) //nolint:errorlint // zstd's errors are of no use to callers
	}
	return state, nil
}
