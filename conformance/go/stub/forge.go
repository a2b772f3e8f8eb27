package main

import (
	"bytes"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"filippo.io/edwards25519"
	"golang.org/x/mod/sumdb/tlog"

	"ledger-trust/conformance/ledgerlog"
)

// forgeNote signs a checkpoint, or makes what a reader must refuse.
func (service *stub) forgeNote(kind string, request *http.Request, log *log, size int64, root tlog.Hash) string {
	origin, key, sign := log.origin, service.signer.public, service.signer.sign
	honest := text(origin, size, root)
	name, id, _ := strings.Cut(strings.TrimPrefix(origin, serviceName+"/"), "/")
	switch kind {
	case "relabelled-note":
		// The signature of the ledger's checkpoint, under the name of the master. It verifies: it covers the text alone.
		if name == "masters" {
			of := service.masters[id].ledger.log
			size = of.tree.Size()
			return ledgerlog.SignNote(origin, key, text(of.origin, size, of.tree.Root(size)), sign)
		}
	case "upper-case-id":
		origin = fmt.Sprintf("%s/%s/%s", serviceName, name, strings.ToUpper(id))
		return ledgerlog.SignNote(origin, key, text(origin, size, root), sign)
	case "other-service":
		origin = fmt.Sprintf("other.example/v1/%s/%s", name, id)
		return ledgerlog.SignNote(origin, key, text(origin, size, root), sign)
	case "unlisted-key":
		other := newSigner(3)
		return ledgerlog.SignNote(origin, other.public, honest, other.sign)
	case "identity-key":
		// R = the identity and S = 0 is a signature of every message under this key.
		return ledgerlog.SignNote(origin, identityPoint(), honest, func([]byte) []byte {
			return append(identityPoint(), make([]byte, 32)...)
		})
	case "identity-r":
		return ledgerlog.SignNote(origin, key, honest, service.signer.signWithNonceZero)
	case "bad-signature":
		return ledgerlog.SignNote(origin, key, honest, func(message []byte) []byte {
			return sign(append(message, ' '))
		})
	case "extension-line":
		return ledgerlog.SignNote(origin, key, honest+"extension\n", sign)
	case "empty-signature":
		return ledgerlog.SignNote(origin, key, honest, sign) + "— witness.example AAAAAA==\n"
	case "leading-zero":
		return ledgerlog.SignNote(origin, key, strings.Replace(honest, "\n", "\n0", 1), sign)
	case "loose-base64":
		return ledgerlog.SignNote(origin, key, text(origin, size, root)[:len(honest)-3]+loosened(honest), sign)
	}
	return ledgerlog.SignNote(origin, key, honest, sign)
}

// loosened returns the end of a line of base64 with bits set behind the last byte, which many decoders ignore.
func loosened(line string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	last := strings.IndexByte(alphabet, line[len(line)-3])
	return string(alphabet[last|1]) + "=\n"
}

func identityPoint() []byte { return edwards25519.NewIdentityPoint().Bytes() }

// signWithNonceZero signs with the nonce 0: R is the identity point, and S = k·a gives the private key away.
func (signer *signer) signWithNonceZero(message []byte) []byte {
	digest := sha512.Sum512(signer.key.Seed())
	private, err := edwards25519.NewScalar().SetBytesWithClamping(digest[:32])
	if err != nil {
		panic(err)
	}
	challenge := sha512.Sum512(slices.Concat(identityPoint(), signer.public, message))
	k, err := edwards25519.NewScalar().SetUniformBytes(challenge[:])
	if err != nil {
		panic(err)
	}
	return append(identityPoint(), edwards25519.NewScalar().Multiply(k, private).Bytes()...)
}

func forgeHashes(kind, of string, hashes []tlog.Hash) []tlog.Hash {
	switch {
	case kind == "left-over-hash-"+of:
		return append(hashes, tlog.Hash{1})
	case kind == "missing-hash-"+of && len(hashes) > 0:
		return hashes[:len(hashes)-1]
	}
	return hashes
}

func forgeFile(kind, file string) string {
	switch kind {
	case "extra-line":
		return strings.Replace(file, "\n", "\nextra AAAA\n", 1)
	case "other-format":
		return strings.Replace(file, "@v1", "@v2", 1)
	}
	return file
}

func forgeKeys(kind string, keys []map[string]any) []map[string]any {
	listed := func(key []byte) map[string]any {
		return map[string]any{"public_key": base64.StdEncoding.EncodeToString(key), "endorsement": nil,
			"valid_from": "2026-01-01T00:00:00.000Z", "valid_to": nil}
	}
	switch kind {
	case "identity-key":
		return append(keys, listed(identityPoint()))
	case "mixed-order-key":
		key, _ := hex.DecodeString("822822699e3edda8d6bd5a43a13de8da99990724366d0d372628ec4c18679efb")
		return append(keys, listed(key))
	case "bad-endorsement":
		forged := listed(newSigner(3).public)
		forged["endorsement"] = keys[0]["endorsement"] // of the other key
		return append(keys, forged)
	}
	return keys
}

// forgeEvents shows another content with the same hashes.
func forgeEvents(kind string, events []*ledgerlog.Event) []*ledgerlog.Event {
	if kind != "other-event" {
		return events
	}
	forged := *events[len(events)-1]
	forged.Payload = json.RawMessage(strings.Replace(string(forged.Payload), `"PO-`, `"XX-`, 1))
	return append(slices.Clone(events[:len(events)-1]), &forged)
}

// forgeBody shows something else than what was recorded, by JSON that a careless reader reads as what was.
func forgeBody(kind string, body []byte) []byte {
	replacement, isKnown := map[string][2]string{
		"other-case-event":  {`"event_type":"CONFORMANCE_CHECKED"`, `"event_type":"PAID","EVENT_TYPE":"CONFORMANCE_CHECKED"`},
		"other-case-member": {`"size":`, `"Size":`},
		"other-integer":     {`"big":10000000000000000,`, `"big":10000000000000001,`},
		"other-exponent":    {`"big":10000000000000000,`, `"big":1.0000000000000001e16,`},
		"other-fraction":    {`"small":1e-7,`, `"small":1.00000000000000000001e-7,`},
		"underflow":         {`"number":0,`, `"number":1e-999,`},
		"half-pair":         {`{"events":`, `{"note":"\ud83d","events":`},
		"absent-index":      {`"index":0,`, ``},
		"absent-keys":       {`"keys":`, `"Keys":`},
		"absent-previous":   {`"previous":[]`, `"Previous":[]`},
		"absent-actor-sig":  {`"actor_sig":null,`, ``},
		"absent-hashes":     {`"hashes":[],`, ``},
		"null-hashes":       {`"hashes":[],`, `"hashes":null,`},
		"null-size":         {`"size":1}`, `"size":null}`},
		"fraction-index":    {`"index":0,`, `"index":0.0,`},
		"fraction-seq":      {`"seq":0,"master_id"`, `"seq":0.0,"master_id"`},
		"exponent-size":     {`"size":1}`, `"size":1e0}`},
		"negative-zero":     {`"seq":0,"master_id"`, `"seq":-0,"master_id"`},
	}[kind]
	if !isKnown {
		return body
	}
	return bytes.Replace(body, []byte(replacement[0]), []byte(replacement[1]), 1)
}
