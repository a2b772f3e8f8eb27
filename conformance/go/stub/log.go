package main

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"ledger-trust/conformance/ledgerlog"
)

// signer is a log key.
type signer struct {
	key    ed25519.PrivateKey
	public []byte
}

func newSigner(seed byte) *signer {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	return &signer{key, key.Public().(ed25519.PublicKey)}
}

func (signer *signer) sign(message []byte) []byte { return ed25519.Sign(signer.key, message) }

// log is a log with a second history, whose first record is another one.
type log struct {
	origin          string
	records         [][]byte
	tree, rewritten ledgerlog.Tree
}

func newLog(origin string) *log { return &log{origin: origin} }

func (log *log) last() []byte {
	if len(log.records) == 0 {
		return nil
	}
	return log.records[len(log.records)-1]
}

func (log *log) append(record []byte) {
	log.records = append(log.records, record)
	log.tree.Append(record)
	if len(log.records) == 1 {
		record = bytes.Repeat([]byte{0xff}, len(record))
	}
	log.rewritten.Append(record)
}

// text returns the text of a checkpoint.
func text(origin string, size int64, root tlog.Hash) string {
	return fmt.Sprintf("%s\n%d\n%s\n", origin, size, base64.StdEncoding.EncodeToString(root[:]))
}

// logOf returns the log that a call asks for.
func (service *stub) logOf(request *http.Request) (*log, error) {
	if known, isKnown := service.masters[request.PathValue("id")]; isKnown {
		return known.log, nil
	}
	if known, isKnown := service.ledgers[request.PathValue("id")]; isKnown {
		return known.log, nil
	}
	return nil, fmt.Errorf("no log %s", request.PathValue("id"))
}

// sizeOf returns a size that a call asks for. isNewest: it asks for none.
func sizeOf(request *http.Request, log *log, name string) (size int64, isNewest bool, err error) {
	asked := request.FormValue(name)
	if asked == "" {
		return log.tree.Size(), true, nil
	}
	size, err = strconv.ParseInt(asked, 10, 64)
	if err == nil && (size < 1 || size > log.tree.Size()) {
		err = fmt.Errorf("%s: %d", name, size)
	}
	return size, false, err
}

func (service *stub) checkpoint(request *http.Request) (any, error) {
	log, err := service.logOf(request)
	if err != nil {
		return nil, err
	}
	size, isNewest, err := sizeOf(request, log, "size")
	if err != nil {
		return nil, err
	}
	kind := request.PathValue("kind")
	if kind == "smaller-size" && isNewest {
		size = size/2 + 1
	}
	tree := &log.tree
	if kind == "rewritten-log" {
		tree = &log.rewritten
	}
	note := service.forgeNote(kind, request, log, size, tree.Root(size))
	answer := map[string]any{"origin": log.origin, "size": size, "root_hash": strings.Split(note, "\n")[2],
		"checkpoint": note}
	if kind == "other-root-member" {
		answer["root_hash"] = base64.StdEncoding.EncodeToString(make([]byte, 32))
	}
	return answer, nil
}

func (service *stub) inclusion(request *http.Request) (any, error) {
	log, err := service.logOf(request)
	if err != nil {
		return nil, err
	}
	index, err := service.indexOf(request, log)
	if err != nil {
		return nil, err
	}
	size, isNewest, err := sizeOf(request, log, "size")
	if err != nil || index >= size {
		return nil, fmt.Errorf("size %d, index %d: %v", size, index, err)
	}
	kind, tree, proven := request.PathValue("kind"), &log.tree, index
	switch {
	case kind == "contradiction" && isNewest && index > 0:
		tree = &log.rewritten
	case kind == "other-size" && !isNewest:
		size = log.tree.Size()
	case kind == "other-index" && index > 0:
		proven--
	}
	proof, err := tlog.ProveRecord(size, proven, tree)
	if err != nil {
		return nil, err
	}
	hashes := forgeHashes(kind, "inclusion", proof)
	note := ledgerlog.SignNote(log.origin, service.signer.public, text(log.origin, size, tree.Root(size)),
		service.signer.sign)
	answer := map[string]any{"origin": log.origin, "index": index, "size": size,
		"proof": forgeFile(kind, formatProof(proven, hashes, note))}
	if !strings.HasPrefix(log.origin, serviceName+"/ledgers/") {
		return answer, nil
	}
	answer["prev_hash"] = ""
	if index > 0 && kind != "other-prev-hash" {
		answer["prev_hash"] = hex.EncodeToString(log.records[index-1])
	}
	return answer, nil
}

func (service *stub) indexOf(request *http.Request, log *log) (int64, error) {
	for _, name := range []string{"seq", "master_seq"} {
		if asked := request.FormValue(name); asked != "" {
			return strconv.ParseInt(asked, 10, 64)
		}
	}
	for _, opened := range service.ledgers {
		for _, event := range opened.events {
			if event.ID == request.FormValue("event_id") {
				if opened.log == log {
					return event.Seq, nil
				}
				return *event.MasterSeq, nil
			}
		}
	}
	return 0, fmt.Errorf("no event %q", request.FormValue("event_id"))
}

func (service *stub) consistency(request *http.Request) (any, error) {
	log, err := service.logOf(request)
	if err != nil {
		return nil, err
	}
	from, _, err := sizeOf(request, log, "from")
	if err != nil {
		return nil, err
	}
	to, _, err := sizeOf(request, log, "to")
	if err != nil || from > to {
		return nil, fmt.Errorf("from %d to %d: %v", from, to, err)
	}
	proof, err := tlog.ProveTree(to, from, &log.tree)
	if err != nil {
		return nil, err
	}
	hashes := []string{}
	for _, hash := range forgeHashes(request.PathValue("kind"), "consistency", proof) {
		hashes = append(hashes, hash.String())
	}
	note := func(size int64) string {
		return ledgerlog.SignNote(log.origin, service.signer.public, text(log.origin, size, log.tree.Root(size)),
			service.signer.sign)
	}
	return map[string]any{"origin": log.origin, "from": from, "to": to, "hashes": hashes,
		"checkpoint_from": note(from), "checkpoint_to": note(to)}, nil
}

func formatProof(index int64, hashes []tlog.Hash, note string) string {
	lines := fmt.Sprintf("c2sp.org/tlog-proof@v1\nindex %d\n", index)
	for _, hash := range hashes {
		lines += hash.String() + "\n"
	}
	return lines + "\n" + note
}
