// Command stub is a small service for the self-test of the kit: it keeps ledgers in memory, answers the calls that
// ../../python/record.py makes, and below /forge/KIND forges the answers of one kind. It checks no caller and no
// signature.
//
// It listens on a free port of 127.0.0.1, prints its URL, and ends when its standard input does.
package main

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"ledger-trust/conformance/ledgerlog"
)

const serviceName = "stub.example/v1"

type ledger struct {
	events       []*ledgerlog.Event
	log          *log
	buyer, owner string
}

type master struct {
	id, businessRef string
	ledger          *ledger
	events          int64
	log             *log
}

type stub struct {
	mu        sync.Mutex
	ids       int
	actors    map[string]string // API key and actor
	keys      map[string]string // actor and name of its key
	ledgers   map[string]*ledger
	masters   map[string]*master
	signer    *signer
	authority ed25519.PrivateKey
}

func main() {
	service := &stub{actors: map[string]string{}, keys: map[string]string{}, ledgers: map[string]*ledger{},
		masters: map[string]*master{}, signer: newSigner(1), authority: newSigner(2).key}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Printf("http://%s\n", listener.Addr())
	fmt.Fprintln(os.Stderr, http.Serve(listener, service.routes()))
	os.Exit(1)
}

// routes serves everything twice: as it is, and below /forge/KIND.
func (service *stub) routes() http.Handler {
	mux := http.NewServeMux()
	for pattern, handler := range map[string]func(*http.Request) (any, error){
		"POST /v1/developer/register":                       service.register,
		"POST /v1/ledgers":                                  service.openLedger,
		"POST /v1/traceledger/master":                       service.createMaster,
		"POST /v1/traceledger/master/{id}/events":           service.append,
		"GET /v1/ledgers/{id}/events":                       service.listEvents,
		"GET /.well-known/svc-authority":                    service.trustAnchor,
		"GET /v1/ledgers/{id}/checkpoint":                   service.checkpoint,
		"GET /v1/ledgers/{id}/proof/inclusion":              service.inclusion,
		"GET /v1/ledgers/{id}/proof/consistency":            service.consistency,
		"GET /v1/traceledger/master/{id}/checkpoint":        service.checkpoint,
		"GET /v1/traceledger/master/{id}/proof/inclusion":   service.inclusion,
		"GET /v1/traceledger/master/{id}/proof/consistency": service.consistency,
	} {
		method, path, _ := strings.Cut(pattern, " ")
		mux.Handle(method+" "+path, service.answer(handler))
		mux.Handle(method+" /forge/{kind}"+path, service.answer(handler))
	}
	return mux
}

func (service *stub) answer(handler func(*http.Request) (any, error)) http.HandlerFunc {
	return func(writer http.ResponseWriter, request *http.Request) {
		service.mu.Lock()
		defer service.mu.Unlock()
		body, err := handler(request)
		writer.Header().Set("Content-Type", "application/json")
		if err != nil {
			writer.WriteHeader(http.StatusBadRequest)
			body = map[string]string{"message": err.Error()}
		}
		encoded := mustJSON(body)
		_, _ = writer.Write(forgeBody(request.PathValue("kind"), encoded))
	}
}

// newID returns ids in order, in the form of a UUID with letters.
func (service *stub) newID() string {
	service.ids++
	return fmt.Sprintf("0193a000-0000-7000-8000-%012x", 0xabc000000000+service.ids)
}

func (service *stub) caller(request *http.Request) string {
	return service.actors[strings.TrimPrefix(request.Header.Get("Authorization"), "Bearer ")]
}

func bodyOf(request *http.Request, body any) error {
	return json.NewDecoder(request.Body).Decode(body)
}

func (service *stub) register(request *http.Request) (any, error) {
	body := struct {
		PublicKey *string `json:"public_key"`
	}{}
	if err := bodyOf(request, &body); err != nil {
		return nil, err
	}
	actor, apiKey := service.newID(), service.newID()
	service.actors[apiKey] = actor
	sandbox := map[string]any{"actor_id": actor, "api_key": apiKey}
	if body.PublicKey != nil {
		service.keys[actor] = "svc:actor:" + actor + "#key-1"
		sandbox["signing_key"] = map[string]string{"kid": service.keys[actor]}
	}
	return map[string]any{"sandbox": sandbox}, nil
}

func (service *stub) openLedger(request *http.Request) (any, error) {
	body := struct {
		Buyer string `json:"buyer_svc_id"`
	}{}
	if err := bodyOf(request, &body); err != nil {
		return nil, err
	}
	id := service.newID()
	opened := &ledger{buyer: strings.TrimPrefix(body.Buyer, "svc:actor:"), owner: service.caller(request)}
	opened.log = newLog(serviceName + "/ledgers/" + id)
	service.ledgers[id] = opened
	parties := map[string]any{"buyer_actor_id": opened.buyer, "supplier_actor_id": opened.owner}
	genesis := map[string]any{"ledger_type": "ORDER", "buyer_actor_id": opened.buyer, "supplier_actor_id": opened.owner}
	service.write(id, nil, &ledgerlog.Event{EventType: "GENESIS", ActorType: "service"}, genesis, nil)
	service.write(id, nil, &ledgerlog.Event{EventType: "ORDER_OPENED", ActorType: "service", ActorID: &opened.owner},
		parties, nil)
	return map[string]string{"id": id}, nil
}

func (service *stub) createMaster(request *http.Request) (any, error) {
	body := map[string]any{}
	if err := bodyOf(request, &body); err != nil {
		return nil, err
	}
	ledgerID, businessRef := fmt.Sprint(body["ledger_id"]), fmt.Sprint(body["business_ref"])
	opened, isKnown := service.ledgers[ledgerID]
	if !isKnown {
		return nil, fmt.Errorf("no ledger %s", ledgerID)
	}
	created := &master{id: service.newID(), businessRef: businessRef, ledger: opened}
	created.log = newLog(serviceName + "/masters/" + created.id)
	service.masters[created.id] = created
	payload := created.names()
	payload["ledger_id"] = ledgerID
	service.write(ledgerID, created, service.signed(request, "TRACELEDGER_MASTER_CREATED"), payload, body)
	return map[string]string{"uuid": created.id}, nil
}

func (service *stub) append(request *http.Request) (any, error) {
	body := struct {
		EventType string         `json:"event_type"`
		Payload   map[string]any `json:"payload"`
	}{}
	if err := bodyOf(request, &body); err != nil {
		return nil, err
	}
	target, isKnown := service.masters[request.PathValue("id")]
	if !isKnown {
		return nil, fmt.Errorf("no master %s", request.PathValue("id"))
	}
	for name, value := range target.names() {
		body.Payload[name] = value
	}
	ledgerID := target.ledger.events[0].LedgerID
	event := service.write(ledgerID, target, service.signed(request, body.EventType), body.Payload, body.Payload)
	return map[string]any{"id": event.ID, "seq": event.Seq, "hash": event.Hash, "status": "recorded"}, nil
}

func (target *master) names() map[string]any {
	return map[string]any{"traceledger_master_uuid": target.id, "business_ref": target.businessRef, "scope": "ORDER",
		"buyer_actor_id": target.ledger.buyer, "supplier_actor_id": target.ledger.owner}
}

func (service *stub) signed(request *http.Request, eventType string) *ledgerlog.Event {
	actor := service.caller(request)
	kid, signature := service.keys[actor], request.Header.Get("X-Actor-Sig")
	return &ledgerlog.Event{EventType: eventType, ActorID: &actor, ActorType: "developer", ActorSig: &signature,
		SigningKeyID: &kid}
}

// write appends an event to its ledger, and its hashes to the logs.
func (service *stub) write(ledgerID string, of *master, event *ledgerlog.Event, payload, signed any) *ledgerlog.Event {
	opened := service.ledgers[ledgerID]
	event.ID, event.LedgerID, event.Seq = service.newID(), ledgerID, int64(len(opened.events))
	event.CreatedAt = time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	event.Payload, event.ActorSigPayload = mustJSON(payload), mustJSON(signed)
	var masterPrev string
	if of != nil {
		seq := of.events
		event.MasterID, event.MasterSeq = &of.id, &seq
		of.events++
		masterPrev = hex.EncodeToString(of.log.last())
	}
	contentHash, hash, err := event.Hashes(masterPrev, opened.log.last())
	if err != nil {
		panic(err)
	}
	event.ContentHash, event.Hash = hex.EncodeToString(contentHash[:]), hex.EncodeToString(hash[:])
	opened.events = append(opened.events, event)
	opened.log.append(hash[:])
	if of != nil {
		of.log.append(contentHash[:])
	}
	return event
}

func mustJSON(value any) json.RawMessage {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return encoded
}

const pageSize = 7 // small, so that a recording has several pages

func (service *stub) listEvents(request *http.Request) (any, error) {
	events := service.ledgers[request.PathValue("id")].events
	start, _ := strconv.Atoi(request.FormValue("cursor"))
	end := min(start+pageSize, len(events))
	page := map[string]any{"events": forgeEvents(request.PathValue("kind"), events[start:end])}
	if end < len(events) {
		page["next_cursor"] = strconv.Itoa(end)
	}
	return page, nil
}

func (service *stub) trustAnchor(request *http.Request) (any, error) {
	kid := "svc:authority#key-1"
	digest := ledgerlog.EndorsementDigest(serviceName, service.signer.public)
	sig := base64.StdEncoding.EncodeToString(ed25519.Sign(service.authority, digest))
	keys := []map[string]any{{"public_key": base64.StdEncoding.EncodeToString(service.signer.public),
		"valid_from": "2026-01-01T00:00:00.000Z", "valid_to": nil,
		"endorsement": map[string]string{"kid": kid, "sig": sig}}}
	authorityKey := base64.StdEncoding.EncodeToString(service.authority.Public().(ed25519.PublicKey))
	return map[string]any{
		"keys": []map[string]string{{"kid": kid, "public_key": authorityKey}},
		"log": map[string]any{"origin": serviceName, "keys": forgeKeys(request.PathValue("kind"), keys),
			"previous": []any{}},
	}, nil
}
