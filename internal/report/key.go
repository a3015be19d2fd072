package report

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
)

// Types of PEM blocks: the forms that openssl reads and writes.
const (
	privateBlock = "PRIVATE KEY"
	publicBlock  = "PUBLIC KEY"
)

// EncodePrivate returns a key in PEM (PKCS #8).
func EncodePrivate(key ed25519.PrivateKey) ([]byte, error) {
	text, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: privateBlock, Bytes: text}), err
}

// EncodePublic returns a public key in PEM (PKIX).
func EncodePublic(key ed25519.PublicKey) ([]byte, error) {
	text, err := x509.MarshalPKIXPublicKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: publicBlock, Bytes: text}), err
}

// DecodePrivate reads the form of EncodePrivate. The error does not have the text.
func DecodePrivate(text []byte) (ed25519.PrivateKey, error) {
	if block, _ := pem.Decode(text); block != nil && block.Type == privateBlock {
		if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			if key, ok := key.(ed25519.PrivateKey); ok {
				return key, nil
			}
		}
	}
	return nil, errors.New("no ed25519 private key in PEM: dpwatch report --new-key makes one")
}

// DecodePublic reads the form of EncodePublic.
func DecodePublic(text []byte) (ed25519.PublicKey, error) {
	if block, _ := pem.Decode(text); block != nil && block.Type == publicBlock {
		if key, err := x509.ParsePKIXPublicKey(block.Bytes); err == nil {
			if key, ok := key.(ed25519.PublicKey); ok {
				return key, nil
			}
		}
	}
	return nil, errors.New("no ed25519 public key in PEM")
}

// Fingerprint returns a short name of a key: a part of its SHA-256.
func Fingerprint(key ed25519.PublicKey) string {
	return "SHA256:" + Hash(key)[:32]
}
