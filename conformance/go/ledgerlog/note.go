package ledgerlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"filippo.io/torchwood"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const typeEd25519 = 1

// Log is a log as its reader knows it: the origin comes from what was asked for, the keys from the trust anchor.
type Log struct {
	Origin string
	keys   map[string][]byte // key ID and public key
	policy torchwood.Policy
}

// KeyID returns the key ID of an Ed25519 key in a signed note.
func KeyID(origin string, key []byte) []byte {
	sum := sha256.Sum256(append([]byte(origin+"\n"), append([]byte{typeEd25519}, key...)...))
	return sum[:4]
}

// VKey returns the verifier key of a log.
func VKey(origin string, key []byte) string {
	encoded := base64.StdEncoding.EncodeToString(append([]byte{typeEd25519}, key...))
	return fmt.Sprintf("%s+%x+%s", origin, KeyID(origin, key), encoded)
}

// NewLog returns a log whose checkpoints are signed by one of these keys.
func NewLog(origin string, keys ...[]byte) (*Log, error) {
	if err := CheckOrigin(origin); err != nil {
		return nil, err
	}
	log := &Log{Origin: origin, keys: map[string][]byte{}}
	var signers []torchwood.Policy
	for _, key := range keys {
		if err := CheckKey(key); err != nil {
			return nil, err
		}
		verifier, err := note.NewVerifier(VKey(origin, key))
		if err != nil {
			return nil, refuse("malformed", "%v", err)
		}
		log.keys[string(KeyID(origin, key))] = key
		signers = append(signers, torchwood.SingleVerifierPolicy(verifier))
	}
	anySigner := torchwood.ThresholdPolicy(1, signers...)
	log.policy = torchwood.ThresholdPolicy(2, torchwood.OriginPolicy(origin), anySigner)
	return log, nil
}

// Checkpoint is the signed state of a log.
type Checkpoint struct {
	Size int64
	Root tlog.Hash
}

// Checkpoint verifies a signed note as a checkpoint of this log.
func (log *Log) Checkpoint(signed string) (Checkpoint, error) {
	none := Checkpoint{}
	text, signatures, found := cutLast(signed, "\n\n")
	if !found {
		return none, refuse("malformed", "a note without signatures")
	}
	text += "\n"
	// A signature covers the text and not the name of the key. The name on the signature line says nothing of the log.
	lines := strings.Split(text, "\n")
	if lines[0] != log.Origin {
		return none, refuse("wrong_origin", "%q instead of %q", lines[0], log.Origin)
	}
	if len(lines) != 4 {
		return none, refuse("malformed", "%d lines in a checkpoint", len(lines)-1)
	}
	size, err := Decimal(lines[1])
	if err != nil {
		return none, err
	}
	if size == 0 {
		return none, refuse("malformed", "a checkpoint of an empty tree")
	}
	root, err := fromBase64(lines[2], tlog.HashSize)
	if err != nil {
		return none, err
	}
	if err := log.checkSignatures(text, signatures); err != nil {
		return none, err
	}

	// The same by the libraries. They must not refuse what passed, nor read it in another way.
	if _, err := note.Open([]byte(signed), log.policy); err != nil {
		return none, refuse("bad_signature", "%v", err)
	}
	parsed, _, err := torchwood.VerifyCheckpoint([]byte(signed), log.policy)
	if err != nil {
		return none, refuse("bad_signature", "%v", err)
	}
	if parsed.Origin != log.Origin || parsed.N != size || !bytes.Equal(parsed.Hash[:], root) {
		return none, refuse("malformed", "torchwood reads another checkpoint: %v", parsed)
	}
	return Checkpoint{size, tlog.Hash(root)}, nil
}

// checkSignatures applies the rule for Ed25519 to each signature of a listed key. note.Open does not look at R, and
// reads base64 in more than one form.
func (log *Log) checkSignatures(text, signatures string) error {
	verified := false
	rest, ends := strings.CutSuffix(signatures, "\n")
	if !ends {
		return refuse("malformed", "the last signature line does not end")
	}
	for line := range strings.SplitSeq(rest, "\n") {
		rest, isSignature := strings.CutPrefix(line, "— ")
		name, encoded, isPair := strings.Cut(rest, " ")
		if !isSignature || !isPair {
			return refuse("malformed", "not a signature line: %q", line)
		}
		blob, err := fromBase64(encoded, -1)
		if err != nil {
			return err
		}
		if len(blob) < 5 {
			return refuse("malformed", "a signature of %d bytes", len(blob))
		}
		key, isListed := log.keys[string(blob[:4])]
		if name != log.Origin || !isListed {
			continue // of a witness, or of nobody that we know
		}
		if err := CheckSignature(key, []byte(text), blob[4:]); err != nil {
			return err
		}
		verified = true
	}
	if !verified {
		return refuse("unknown_log_key", "no signature of %s by a listed key", log.Origin)
	}
	return nil
}

func cutLast(text, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(text, separator); i >= 0 {
		return text[:i], text[i+len(separator):], true
	}
	return text, "", false
}

// SignNote signs the text of a note. sign returns 64 bytes.
func SignNote(name string, key []byte, text string, sign func(message []byte) []byte) string {
	blob := binary.BigEndian.AppendUint32(nil, binary.BigEndian.Uint32(KeyID(name, key)))
	blob = append(blob, sign([]byte(text))...)
	return text + "\n— " + name + " " + base64.StdEncoding.EncodeToString(blob) + "\n"
}

// CodeOf returns the code of a refusal.
func CodeOf(err error) string {
	var refusal *Refusal
	if errors.As(err, &refusal) {
		return refusal.Code
	}
	return "error"
}
