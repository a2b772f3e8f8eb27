// The calls, the canonical form, and how a ledger is verified: docs/verifying.md has the formulas.
package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/gowebpki/jcs"
)

type object = map[string]any

func must[T any](value T, err error) T {
	check(err == nil, "%v", err)
	return value
}

func check(ok bool, format string, args ...any) {
	if !ok {
		log.Fatalf(format, args...)
	}
}

// canonical is RFC 8785. json.Marshal alone would escape < > & and is not canonical.
func canonical(value any) []byte { return must(jcs.Transform(must(json.Marshal(value)))) }

func hashOf(parts ...[]byte) []byte { sum := sha256.Sum256(bytes.Join(parts, nil)); return sum[:] }

func hexOf(value any) string { return hex.EncodeToString(hashOf(canonical(value))) }

// call calls the API. Headers are given as name, value.
func call(method, path string, body object, headers ...string) object {
	request := must(http.NewRequest(method, os.Getenv("BASE")+path, bytes.NewReader(must(json.Marshal(body)))))
	for pair := range slices.Chunk(append(headers, "Content-Type", "application/json"), 2) {
		request.Header.Set(pair[0], pair[1])
	}
	response := must(http.DefaultClient.Do(request))
	defer response.Body.Close()
	var answer object
	decoder := json.NewDecoder(response.Body)
	decoder.UseNumber() // a number above 2^53 must not be rounded
	check(decoder.Decode(&answer) == nil && response.StatusCode == 200, "%s %s: %v", method, path, answer["error"])
	return answer
}

func digest(eventType, ledgerID any, payload any) []byte {
	return hashOf([]byte(eventType.(string)), []byte{0}, []byte(ledgerID.(string)), []byte{0}, canonical(payload))
}

// contentHash is the hash of what was recorded.
func contentHash(event object, previousInMaster string) []byte {
	content := object{"master": nil, "actor_sig_payload_hash": nil, "payload_hash": hexOf(event["payload"])}
	names := "id ledger_id seq event_type actor_id actor_type caused_by_hash actor_sig signing_key_id created_at"
	for _, name := range strings.Fields(names) {
		content[name] = event[name]
	}
	if event["actor_sig_payload"] != nil {
		content["actor_sig_payload_hash"] = hexOf(event["actor_sig_payload"])
	}
	if event["master_id"] != nil {
		content["master"] = object{"id": event["master_id"], "seq": event["master_seq"], "prev_hash": previousInMaster}
	}
	return hashOf(canonical(content))
}

// verifyActor checks the author's signature under the key that the resolver names.
func verifyActor(event object) {
	payload := event["payload"].(object)
	signedForm, isPart := event["actor_sig_payload"].(object)
	if !isPart {
		signedForm = payload
	}
	for name, value := range signedForm {
		check(value == nil || hexOf(value) == hexOf(payload[name]), "%s was signed with another value", name)
	}
	keys := call("GET", "/v1/resolve/svc:actor:"+event["actor_id"].(string), nil)["keys"].([]any)
	at := slices.IndexFunc(keys, func(key any) bool { return key.(object)["kid"] == event["signing_key_id"] })
	check(at >= 0, "the actor has no such key")
	key, created := keys[at].(object), event["created_at"].(string)
	revoked, isRevoked := key["revoked_at"].(string)
	check(key["valid_from"].(string) <= created && (!isRevoked || created < revoked), "the key was not valid then")
	signature := must(base64.StdEncoding.DecodeString(event["actor_sig"].(string)))
	identity := append([]byte{1}, make([]byte, 31)...)
	check(len(signature) == 64 && !bytes.Equal(signature[:32], identity), "R is the identity point")
	public := must(base64.StdEncoding.DecodeString(key["public_key"].(string)))
	signed := digest(event["event_type"], event["ledger_id"], signedForm)
	check(ed25519.Verify(public, signed, signature), "the signature does not verify")
}

// verify recomputes every hash of a ledger from its start. It returns the number of signatures that it checked.
func verify(events []any) (signatures int) {
	var before []byte
	masters := map[any]string{}
	for seq, one := range events {
		event := one.(object)
		check(fmt.Sprint(event["seq"]) == strconv.Itoa(seq), "an event is missing before %v", event["seq"])
		content := contentHash(event, masters[event["master_id"]])
		masters[event["master_id"]] = hex.EncodeToString(content)
		check(masters[event["master_id"]] == event["content_hash"], "the content of event %d was changed", seq)
		before = hashOf([]byte("svc-event-v1\x00"), before, content)
		check(hex.EncodeToString(before) == event["hash"], "event %d is not where it was recorded", seq)
		if event["actor_sig"] != nil {
			verifyActor(event)
			signatures++
		}
	}
	return signatures
}
