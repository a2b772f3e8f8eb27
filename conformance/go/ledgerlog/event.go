package ledgerlog

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/gowebpki/jcs"
)

// Event is an event as a read of events shows it. Members that no record covers are left out.
type Event struct {
	ID              string          `json:"id"`
	LedgerID        string          `json:"ledger_id"`
	Seq             int64           `json:"seq"`
	MasterID        *string         `json:"master_id"`
	MasterSeq       *int64          `json:"master_seq"`
	EventType       string          `json:"event_type"`
	ActorID         *string         `json:"actor_id"`
	ActorType       string          `json:"actor_type"`
	Payload         json.RawMessage `json:"payload"`
	ActorSig        *string         `json:"actor_sig"`
	ActorSigPayload json.RawMessage `json:"actor_sig_payload"`
	SigningKeyID    *string         `json:"signing_key_id"`
	CausedByHash    *string         `json:"caused_by_hash"`
	CreatedAt       string          `json:"created_at"`
	ContentHash     string          `json:"content_hash"`
	Hash            string          `json:"hash"`
}

type masterPlace struct {
	ID       string `json:"id"`
	PrevHash string `json:"prev_hash"`
	Seq      int64  `json:"seq"`
}

type content struct {
	ActorID             *string      `json:"actor_id"`
	ActorSig            *string      `json:"actor_sig"`
	ActorSigPayloadHash *string      `json:"actor_sig_payload_hash"`
	ActorType           string       `json:"actor_type"`
	CausedByHash        *string      `json:"caused_by_hash"`
	CreatedAt           string       `json:"created_at"`
	EventType           string       `json:"event_type"`
	ID                  string       `json:"id"`
	LedgerID            string       `json:"ledger_id"`
	Master              *masterPlace `json:"master"`
	PayloadHash         string       `json:"payload_hash"`
	Seq                 int64        `json:"seq"`
	SigningKeyID        *string      `json:"signing_key_id"`
}

// Hashes recomputes content_hash and hash of an event. masterPrev is the content_hash of the event before it in its
// master, prev the hash of the event before it in its ledger; both are empty for the first.
func (event *Event) Hashes(masterPrev string, prev []byte) (contentHash, hash [32]byte, err error) {
	payloadHash, err := hashOfJSON(event.Payload)
	if err != nil {
		return contentHash, hash, err
	}
	rebuilt := content{
		ActorID: event.ActorID, ActorSig: event.ActorSig, ActorType: event.ActorType, CausedByHash: event.CausedByHash,
		CreatedAt: event.CreatedAt, EventType: event.EventType, ID: event.ID, LedgerID: event.LedgerID,
		PayloadHash: *payloadHash, Seq: event.Seq, SigningKeyID: event.SigningKeyID,
	}
	if rebuilt.ActorSigPayloadHash, err = hashOfJSON(event.ActorSigPayload); err != nil {
		return contentHash, hash, err
	}
	if event.MasterID != nil {
		rebuilt.Master = &masterPlace{*event.MasterID, masterPrev, *event.MasterSeq}
	}
	encoded, err := json.Marshal(rebuilt)
	if err != nil {
		return contentHash, hash, err
	}
	canonical, err := jcs.Transform(encoded)
	if err != nil {
		return contentHash, hash, refuse("malformed", "%v", err)
	}
	contentHash = sha256.Sum256(canonical)
	hash = sha256.Sum256(append(append([]byte("svc-event-v1\x00"), prev...), contentHash[:]...))
	return contentHash, hash, nil
}

// hashOfJSON returns null where the value is null.
func hashOfJSON(value json.RawMessage) (*string, error) {
	if len(value) == 0 || string(value) == "null" {
		return nil, nil
	}
	canonical, err := jcs.Transform(value)
	if err != nil {
		return nil, refuse("malformed", "%v", err)
	}
	sum := sha256.Sum256(canonical)
	text := hex.EncodeToString(sum[:])
	return &text, nil
}

// Records are the records of a ledger log and of the logs of its masters, recomputed from the events.
type Records struct {
	Ledger  [][]byte
	Masters map[string][][]byte
	ByID    map[string]*Event
}

// RecordsOf recomputes the records of all events of a ledger, in order.
func RecordsOf(ledgerID string, events []*Event) (*Records, error) {
	records := &Records{Masters: map[string][][]byte{}, ByID: map[string]*Event{}}
	var prev []byte
	for seq, event := range events {
		isMasters := event.MasterID != nil
		if event.LedgerID != ledgerID || event.Seq != int64(seq) || isMasters != (event.MasterSeq != nil) {
			return nil, refuse("wrong_record", "event %s does not stand at seq %d of %s", event.ID, seq, ledgerID)
		}
		masterPrev := ""
		if isMasters {
			before := records.Masters[*event.MasterID]
			if *event.MasterSeq != int64(len(before)) {
				return nil, refuse("wrong_record", "seq %d: master_seq %d, not %d", seq, *event.MasterSeq, len(before))
			}
			if len(before) > 0 {
				masterPrev = hex.EncodeToString(before[len(before)-1])
			}
		}
		if event.Payload[0] != '{' || (event.ActorSigPayload[0] != '{' && event.ActorSigPayload[0] != 'n') {
			return nil, refuse("malformed", "seq %d has no payload, or what was signed is none", seq)
		}
		contentHash, hash, err := event.Hashes(masterPrev, prev)
		if err != nil {
			return nil, err
		}
		if hex.EncodeToString(contentHash[:]) != event.ContentHash || hex.EncodeToString(hash[:]) != event.Hash {
			return nil, refuse("wrong_record", "the hashes of seq %d are not those of its content", seq)
		}
		if isMasters {
			records.Masters[*event.MasterID] = append(records.Masters[*event.MasterID], contentHash[:])
		}
		prev = hash[:]
		records.Ledger = append(records.Ledger, prev)
		records.ByID[event.ID] = event
	}
	return records, nil
}
