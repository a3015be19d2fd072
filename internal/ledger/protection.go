package ledger

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
)

// KeySize is the size of a key in bytes.
const KeySize = 32

// Errors of a Protection.
var (
	// ErrNoKey: a text was encrypted with a key that this process does not have.
	ErrNoKey = errors.New("it is encrypted with a key that ledger.keys of this process does not list")
	// ErrWithheld: no statements are stored.
	ErrWithheld = errors.New("statements are not stored: ledger.statements is withheld")
)

// Protection is how statements and parameters are stored, in the ledger and in a spool. nil stores them as they are.
// What was stored as it is can be read with any Protection.
type Protection struct {
	form Form
	keys []key
}

// Form is the form in which statements are stored.
type Form int

// The forms of statements.
const (
	Plain     Form = iota // as they are
	Encrypted             // with the first key
	Withheld              // not at all
)

type key struct {
	id   [4]byte // the first bytes of the key's SHA-256
	aead cipher.AEAD
}

// An encrypted text is encryptedMagic, the id of the key, the nonce, then the output of AES-256-GCM.
const encryptedMagic = "dpwc\x01"

// NewProtection returns a Protection that stores in a form, and reads what was encrypted with one of the keys, of
// KeySize bytes each. Encrypted needs a key.
func NewProtection(form Form, keys ...[]byte) (*Protection, error) {
	p := &Protection{form: form}
	for i, k := range keys {
		if len(k) != KeySize {
			return nil, fmt.Errorf("ledger: key %d has %d bytes, not %d", i+1, len(k), KeySize)
		}
		block, err := aes.NewCipher(k)
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(k)
		p.keys = append(p.keys, key{[4]byte(sum[:4]), aead})
	}
	if form == Encrypted && len(p.keys) == 0 {
		return nil, errors.New("ledger: statements cannot be encrypted without a key")
	}
	return p, nil
}

// hide returns the stored form of a text, nil if it is not stored. The text can be read again in the same place only.
func (p *Protection) hide(text []byte, place string) []byte {
	switch {
	case p == nil || p.form == Plain || text == nil:
		return text
	case p.form == Withheld:
		return nil
	}
	k := p.keys[0]
	head := append([]byte(encryptedMagic), k.id[:]...)
	nonce := make([]byte, k.aead.NonceSize())
	_, _ = rand.Read(nonce) // it never fails
	return k.aead.Seal(append(head, nonce...), nonce, text, append(head, place...))
}

// show returns the text of a stored form. The error is ErrNoKey, or ErrState if the stored form is damaged.
func (p *Protection) show(stored []byte, place string) ([]byte, error) {
	rest, encrypted := bytes.CutPrefix(stored, []byte(encryptedMagic))
	if !encrypted {
		return stored, nil
	}
	if p == nil {
		return nil, ErrNoKey
	}
	for _, k := range p.keys {
		sealed, mine := bytes.CutPrefix(rest, k.id[:])
		if !mine {
			continue
		}
		if len(sealed) < k.aead.NonceSize() {
			return nil, fmt.Errorf("%w: it is too short", ErrState)
		}
		head := stored[:len(encryptedMagic)+len(k.id)]
		text, err := k.aead.Open(nil, sealed[:k.aead.NonceSize()], sealed[k.aead.NonceSize():], append(bytes.Clone(head), place...))
		if err != nil {
			return nil, fmt.Errorf("%w: it was changed, or comes from another place", ErrState)
		}
		return text, nil
	}
	return nil, ErrNoKey
}

// withholds reports whether nothing is stored.
func (p *Protection) withholds() bool { return p != nil && p.form == Withheld }
