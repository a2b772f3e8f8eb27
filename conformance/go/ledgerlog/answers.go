package ledgerlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// Answer is one line of a recording: what was asked for, and what the service answered.
type Answer struct {
	Ask struct {
		Kind    string  `json:"kind"` // authority, events, checkpoint, inclusion or consistency
		Log     string  `json:"log"`  // ledgers or masters
		ID      string  `json:"id"`
		Index   *int64  `json:"index"`
		EventID *string `json:"event_id"`
		Size    *int64  `json:"size"` // null: the newest
		From    *int64  `json:"from"`
		To      *int64  `json:"to"` // null: the newest
		Least   int64   `json:"least"`
	} `json:"ask"`
	Path   string `json:"path"`
	Status int    `json:"status"`
	Body   string `json:"body"`
}

type authority struct {
	Keys []struct {
		KID       string `json:"kid"`
		PublicKey string `json:"public_key"`
	} `json:"keys"`
	Log struct {
		Origin   string   `json:"origin"`
		Keys     []logKey `json:"keys"`
		Previous []struct {
			Origin string   `json:"origin"`
			Keys   []logKey `json:"keys"`
		} `json:"previous"`
	} `json:"log"`
}

type logKey struct {
	PublicKey   string `json:"public_key"`
	Endorsement *struct {
		KID string `json:"kid"`
		Sig string `json:"sig"`
	} `json:"endorsement"`
}

// EndorsementDigest is what the authority signs to endorse a log key.
func EndorsementDigest(name string, key []byte) []byte {
	sum := sha256.Sum256(append([]byte("svc-log-key-v1\x00"+name+"\x00"), key...))
	return sum[:]
}

// Checks judges the answers of one recording.
type Checks struct {
	name    string
	keys    [][]byte
	records *Records
	logs    map[string]*seenLog
}

// seenLog is a log with all checkpoints of it that were verified so far.
type seenLog struct {
	*Log
	id      string
	records [][]byte
	tree    Tree
	roots   map[int64]tlog.Hash
	newest  int64
}

// TrustAnchor reads the name of the service and its log keys. A key that is refused is not used; the others are.
func (checks *Checks) TrustAnchor(body string) error {
	anchor := authority{}
	if err := decode(body, &anchor); err != nil {
		return err
	}
	checks.name = anchor.Log.Origin
	if err := CheckName(checks.name); err != nil {
		return err
	}
	authorityKeys := map[string]string{}
	for _, key := range anchor.Keys {
		authorityKeys[key.KID] = key.PublicKey
	}
	var refused error
	for _, listed := range anchor.Log.Keys {
		key, err := listed.check(checks.name, authorityKeys)
		if err != nil {
			refused = err
			continue
		}
		checks.keys = append(checks.keys, key)
	}
	if len(anchor.Log.Keys) == 0 {
		return refuse("malformed", "no log key")
	}
	for _, previous := range anchor.Log.Previous {
		if err := CheckName(previous.Origin); err != nil {
			return err
		}
		for _, listed := range previous.Keys {
			if _, err := listed.check(previous.Origin, authorityKeys); err != nil {
				return err
			}
		}
	}
	return refused
}

func (listed logKey) check(name string, authorityKeys map[string]string) ([]byte, error) {
	key, err := fromBase64(listed.PublicKey, 32)
	if err != nil {
		return nil, err
	}
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	if listed.Endorsement == nil {
		return key, nil
	}
	encoded, isListed := authorityKeys[listed.Endorsement.KID]
	if !isListed {
		return nil, refuse("bad_endorsement", "by %q, which is not listed", listed.Endorsement.KID)
	}
	signer, err := fromBase64(encoded, 32)
	if err != nil {
		return nil, err
	}
	if err := CheckKey(signer); err != nil {
		return nil, err
	}
	signature, err := fromBase64(listed.Endorsement.Sig, 64)
	if err != nil {
		return nil, err
	}
	if err := CheckSignature(signer, EndorsementDigest(name, key), signature); err != nil {
		return nil, refuse("bad_endorsement", "%v", err)
	}
	return key, nil
}

// Events reads all pages of a ledger's events and recomputes their hashes.
func (checks *Checks) Events(ledgerID string, pages []string) error {
	var events []*Event
	for _, body := range pages {
		page := struct {
			Events []*Event `json:"events"`
		}{}
		if err := decode(body, &page); err != nil {
			return err
		}
		events = append(events, page.Events...)
	}
	records, err := RecordsOf(ledgerID, events)
	if err != nil {
		return err
	}
	checks.records = records
	return nil
}

func (checks *Checks) log(kind, id string) (*seenLog, error) {
	if known, isKnown := checks.logs[kind+"/"+id]; isKnown {
		return known, nil
	}
	if checks.records == nil {
		return nil, refuse("wrong_record", "the events of the ledger were refused")
	}
	origin, err := Origin(checks.name, kind, id)
	if err != nil {
		return nil, err
	}
	log, err := NewLog(origin, checks.keys...)
	if err != nil {
		return nil, err
	}
	records := checks.records.Ledger
	if kind == "masters" {
		records = checks.records.Masters[id]
	}
	seen := &seenLog{Log: log, id: id, records: records, roots: map[int64]tlog.Hash{}}
	for _, record := range records {
		seen.tree.Append(record)
	}
	if checks.logs == nil {
		checks.logs = map[string]*seenLog{}
	}
	checks.logs[kind+"/"+id] = seen
	return seen, nil
}

// take compares a verified checkpoint with what was asked for, with all checkpoints before it and with the events.
func (log *seenLog) take(checkpoint Checkpoint, asked *int64, least int64) error {
	if asked != nil && checkpoint.Size != *asked {
		return refuse("wrong_size", "%d instead of %d", checkpoint.Size, *asked)
	}
	if asked == nil && checkpoint.Size < max(least, log.newest) {
		return refuse("checkpoint_behind", "size %d after %d", checkpoint.Size, max(least, log.newest))
	}
	if root, isKnown := log.roots[checkpoint.Size]; isKnown && root != checkpoint.Root {
		return refuse("checkpoints_contradict", "size %d: %v and %v", checkpoint.Size, root, checkpoint.Root)
	}
	if checkpoint.Size > log.tree.Size() {
		return refuse("wrong_size", "%d, but there are %d events", checkpoint.Size, log.tree.Size())
	}
	if checkpoint.Root != log.tree.Root(checkpoint.Size) {
		return refuse("wrong_root", "size %d is not the tree of the events", checkpoint.Size)
	}
	log.roots[checkpoint.Size] = checkpoint.Root
	log.newest = max(log.newest, checkpoint.Size)
	return nil
}

// Judge checks one answer of a proof method.
func (checks *Checks) Judge(answer *Answer) error {
	if answer.Status != 200 {
		return refuse("status", "%d %s", answer.Status, answer.Body)
	}
	log, err := checks.log(answer.Ask.Log, answer.Ask.ID)
	if err != nil {
		return err
	}
	switch answer.Ask.Kind {
	case "checkpoint":
		return log.judgeCheckpoint(answer)
	case "inclusion":
		return checks.judgeInclusion(log, answer)
	case "consistency":
		return log.judgeConsistency(answer)
	}
	return fmt.Errorf("a recording of another form: kind %q", answer.Ask.Kind)
}

func (log *seenLog) judgeCheckpoint(answer *Answer) error {
	body := struct {
		Origin     string `json:"origin"`
		Checkpoint string `json:"checkpoint"`
		Size       int64  `json:"size"`
		RootHash   string `json:"root_hash"`
	}{}
	if err := decode(answer.Body, &body); err != nil {
		return err
	}
	checkpoint, err := log.Checkpoint(body.Checkpoint)
	if err != nil {
		return err
	}
	root := base64.StdEncoding.EncodeToString(checkpoint.Root[:])
	if body.Origin != log.Origin || body.Size != checkpoint.Size || body.RootHash != root {
		return refuse("wrong_member", "the answer and its checkpoint differ")
	}
	return log.take(checkpoint, answer.Ask.Size, answer.Ask.Least)
}

func (checks *Checks) judgeInclusion(log *seenLog, answer *Answer) error {
	body := struct {
		Origin   string  `json:"origin"`
		Proof    string  `json:"proof"`
		Index    int64   `json:"index"`
		Size     int64   `json:"size"`
		PrevHash *string `json:"prev_hash,omitzero"` // of ledgers alone
	}{}
	if err := decode(answer.Body, &body); err != nil {
		return err
	}
	var index int64
	switch event := checks.eventOf(answer); {
	case answer.Ask.Index != nil:
		index = *answer.Ask.Index
	case event == nil:
		return fmt.Errorf("a recording of another form: no such event")
	case answer.Ask.Log == "masters":
		index = *event.MasterSeq
	default:
		index = event.Seq
	}
	if index >= int64(len(log.records)) {
		return fmt.Errorf("a recording of another form: no event at %d", index)
	}
	checkpoint, err := log.Inclusion(body.Proof, index, log.records[index])
	if err != nil {
		return err
	}
	if body.Origin != log.Origin || body.Index != index || body.Size != checkpoint.Size {
		return refuse("wrong_member", "the answer and its proof file differ")
	}
	if answer.Ask.Log == "ledgers" {
		prev := ""
		if index > 0 {
			prev = hex.EncodeToString(log.records[index-1])
		}
		if body.PrevHash == nil || *body.PrevHash != prev {
			return refuse("wrong_prev_hash", "at index %d", index)
		}
	}
	return log.take(checkpoint, answer.Ask.Size, answer.Ask.Least)
}

func (checks *Checks) eventOf(answer *Answer) *Event {
	if answer.Ask.EventID == nil {
		return nil
	}
	return checks.records.ByID[*answer.Ask.EventID]
}

func (log *seenLog) judgeConsistency(answer *Answer) error {
	body := struct {
		Origin         string   `json:"origin"`
		From           int64    `json:"from"`
		To             int64    `json:"to"`
		Hashes         []string `json:"hashes"`
		CheckpointFrom string   `json:"checkpoint_from"`
		CheckpointTo   string   `json:"checkpoint_to"`
	}{}
	if err := decode(answer.Body, &body); err != nil {
		return err
	}
	from, err := log.Checkpoint(body.CheckpointFrom)
	if err != nil {
		return err
	}
	to, err := log.Checkpoint(body.CheckpointTo)
	if err != nil {
		return err
	}
	if body.Origin != log.Origin || body.From != from.Size || body.To != to.Size {
		return refuse("wrong_member", "the answer and its checkpoints differ")
	}
	hashes, err := hashesOf(body.Hashes)
	if err != nil {
		return err
	}
	if err := Consistency(from, to, hashes); err != nil {
		return err
	}
	if err := log.take(from, answer.Ask.From, 0); err != nil {
		return err
	}
	return log.take(to, answer.Ask.To, answer.Ask.Least)
}

// Report counts checks, and prints each that failed.
type Report struct{ Passed, Failed int }

// Take counts one check.
func (report *Report) Take(what string, err error) {
	if err == nil {
		report.Passed++
		return
	}
	report.Failed++
	fmt.Printf("refused %s: %v\n", what, err)
}

// CheckRecording judges all lines of a recording.
func CheckRecording(recording []byte, report *Report) error {
	checks, pages, ledgerID := &Checks{}, []string(nil), ""
	isNamed := false
	var answers []*Answer
	for line := range bytes.Lines(recording) {
		answer := &Answer{}
		if err := json.Unmarshal(line, answer); err != nil {
			return err
		}
		switch answer.Ask.Kind {
		case "authority":
			isNamed = true
			report.Take(answer.Path, checks.TrustAnchor(answer.Body))
		case "events":
			pages, ledgerID = append(pages, answer.Body), answer.Ask.ID
		default:
			answers = append(answers, answer)
		}
	}
	if !isNamed || len(pages) == 0 || len(answers) == 0 {
		report.Take("the recording", refuse("malformed", "it lacks the trust anchor, the events or all proofs"))
	}
	report.Take("the events of ledger "+ledgerID, checks.Events(ledgerID, pages))
	for _, answer := range answers {
		report.Take(answer.Path, checks.Judge(answer))
	}
	fmt.Printf("service %s, log keys: %d, answers: %d\n", checks.name, len(checks.keys), len(answers))
	return nil
}
