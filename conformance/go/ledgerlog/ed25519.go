// Package ledgerlog holds the rules by which a reader checks the logs of ledgers and masters: ../../README.md.
package ledgerlog

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"fmt"

	"filippo.io/edwards25519"
)

// Refusal says by which rule something was refused. Both programs of the kit use the same codes.
type Refusal struct{ Code, Detail string }

func (r *Refusal) Error() string { return r.Code + ": " + r.Detail }

func refuse(code, format string, args ...any) error {
	return &Refusal{code, fmt.Sprintf(format, args...)}
}

// A decoder of Go takes line feeds inside of base64 and bits behind its end, so two texts could stand for one value.
func fromBase64(text string, length int) ([]byte, error) {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil || base64.StdEncoding.EncodeToString(data) != text {
		return nil, refuse("malformed", "not base64 in its one form: %q", text)
	}
	if length >= 0 && len(data) != length {
		return nil, refuse("malformed", "%d bytes instead of %d: %q", len(data), length, text)
	}
	return data, nil
}

func fromHex(text string) ([]byte, error) {
	data, err := hex.DecodeString(text)
	if err != nil || len(data) != 32 || hex.EncodeToString(data) != text {
		return nil, refuse("malformed", "not a hash in lower-case hex: %q", text)
	}
	return data, nil
}

// lMinusOne is the order of the prime-order group less one, which is -1 as a scalar.
var lMinusOne = func() *edwards25519.Scalar {
	one, err := edwards25519.NewScalar().SetCanonicalBytes(append([]byte{1}, make([]byte, 31)...))
	if err != nil {
		panic(err)
	}
	return edwards25519.NewScalar().Negate(one)
}()

// CheckKey takes a public key of prime order in its one encoding. ed25519.Verify looks at none of it.
func CheckKey(key []byte) error {
	point, err := edwards25519.NewIdentityPoint().SetBytes(key)
	if err != nil {
		return refuse("weak_key", "not a point: %x", key)
	}
	if !bytes.Equal(point.Bytes(), key) {
		return refuse("weak_key", "y is not below 2^255 - 19, or x is 0 with a sign: %x", key)
	}
	if point.Equal(edwards25519.NewIdentityPoint()) == 1 {
		return refuse("weak_key", "the identity point")
	}
	// [L]P = 0 exactly if [L - 1]P = -P.
	product := edwards25519.NewIdentityPoint().ScalarMult(lMinusOne, point)
	if product.Equal(edwards25519.NewIdentityPoint().Negate(point)) != 1 {
		return refuse("weak_key", "not of prime order: %x", key)
	}
	return nil
}

var identity = append([]byte{1}, make([]byte, 31)...)

// CheckSignature applies the one rule for signatures. The key was checked by CheckKey.
func CheckSignature(key, message, signature []byte) error {
	if len(signature) != ed25519.SignatureSize {
		return refuse("bad_signature", "%d bytes", len(signature))
	}
	// ed25519.Verify takes this R, which a signer can make with the nonce 0.
	if bytes.Equal(signature[:32], identity) {
		return refuse("weak_signature", "R is the identity point")
	}
	if !ed25519.Verify(key, message, signature) {
		return refuse("bad_signature", "does not verify")
	}
	return nil
}
