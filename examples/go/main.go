// Registers two parties, signs and appends an event, reads and verifies the ledger, and receives a webhook.
// Against a development node: BASE=http://localhost:8080 go run .
package main

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"
)

// isFromService checks the signature of a webhook (Standard Webhooks).
func isFromService(secret string, headers http.Header, body []byte) bool {
	stamp := headers.Get("webhook-timestamp")
	mac := hmac.New(sha256.New, must(base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))))
	fmt.Fprintf(mac, "%s.%s.%s", headers.Get("webhook-id"), stamp, body)
	for given := range strings.FieldsSeq(headers.Get("webhook-signature")) {
		sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(given, "v1,"))
		seconds, wrong := strconv.ParseInt(stamp, 10, 64)
		isRecent := wrong == nil && time.Since(time.Unix(seconds, 0)).Abs() < 5*time.Minute
		if err == nil && isRecent && hmac.Equal(sum, mac.Sum(nil)) {
			return true
		}
	}
	return false
}

func main() {
	var secret string
	deliveries := make(chan object, 8)
	receiver := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		var delivery object
		body := must(io.ReadAll(request.Body))
		if !isFromService(secret, request.Header, body) || json.Unmarshal(body, &delivery) != nil {
			writer.WriteHeader(401)
			return
		}
		writer.WriteHeader(204)
		deliveries <- delivery
	}))
	defer receiver.Close()

	publicKey, privateKey, err := ed25519.GenerateKey(nil)
	check(err == nil, "%v", err)
	register := func(name string, more ...string) object {
		person := object{"name": name, "email": "dev@example.com", "region": "eu"}
		for _, key := range more {
			person["public_key"] = key
		}
		return call("POST", "/v1/developer/register", person)["sandbox"].(object)
	}
	supplier := register("Supplier", base64.StdEncoding.EncodeToString(publicKey))
	buyer := register("Buyer")
	asSupplier := []string{"Authorization", "Bearer " + supplier["api_key"].(string)}
	asBuyer := []string{"Authorization", "Bearer " + buyer["api_key"].(string)}
	signed := func(eventType, ledgerID any, payload any) []string {
		signature := ed25519.Sign(privateKey, digest(eventType, ledgerID, payload))
		kid := supplier["signing_key"].(object)["kid"].(string)
		headers := []string{"X-Signing-Key-ID", kid, "X-Actor-Sig", base64.StdEncoding.EncodeToString(signature)}
		return append(headers, asSupplier...)
	}
	subscription := object{"url": receiver.URL + "/", "event_types": []string{"SHIPMENT_DISPATCHED"}}
	secret = call("POST", "/v1/webhooks", subscription, asBuyer...)["secret"].(string)

	ledger := call("POST", "/v1/ledgers", object{"buyer_svc_id": buyer["svc_id"]}, asSupplier...)["id"]
	opening := object{"ledger_id": ledger, "business_ref": "PO-1 <Zoë & Co>", "scope": "ORDER"}
	headers := signed("TRACELEDGER_MASTER_CREATED", ledger, opening)
	master := call("POST", "/v1/traceledger/master", opening, headers...)["uuid"].(string)

	// The signature covers the fields that the service adds, so that it fits this master alone.
	payload := object{"carrier": "Straße & Söhne", "pallets": 4, "traceledger_master_uuid": master,
		"business_ref": opening["business_ref"], "scope": "ORDER",
		"buyer_actor_id": buyer["actor_id"], "supplier_actor_id": supplier["actor_id"]}
	headers = append(signed("SHIPMENT_DISPATCHED", ledger, payload), "Idempotency-Key", "event-1")
	event := object{"event_type": "SHIPMENT_DISPATCHED", "payload": payload}
	appended := call("POST", "/v1/traceledger/master/"+master+"/events", event, headers...)

	events := call("GET", fmt.Sprintf("/v1/ledgers/%s/events", ledger), nil, asBuyer...)["events"].([]any)
	fmt.Printf("verified: %d events, %d signatures, chain whole\n", len(events), verify(events))
	select {
	case delivery := <-deliveries:
		received := delivery["event"].(object)
		check(received["hash"] == appended["hash"], "the webhook is of another event")
		fmt.Printf("received: %s, signed by the service\n", received["event_type"])
	case <-time.After(30 * time.Second):
		check(false, "no webhook came")
	}
}
