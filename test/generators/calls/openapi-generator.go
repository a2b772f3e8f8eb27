// Calls a live node through the Go client of openapi-generator, signed calls included.
package main

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"

	ledger "example.com/acme/ledger"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	configuration := ledger.NewConfiguration()
	configuration.Servers = ledger.ServerConfigurations{{URL: os.Getenv("BASE_URL")}}
	client := ledger.NewAPIClient(configuration)
	anonymous := context.Background()

	publicKey, privateKey, err := ed25519.GenerateKey(nil)
	check(err)
	encodedKey := base64.StdEncoding.EncodeToString(publicKey)
	request := ledger.RegisterDeveloperRequest{Name: "Buyer", Email: "office@acme.example", Region: "eu"}
	supplier, _, err := client.RegisterAPI.RegisterDeveloper(anonymous).RegisterDeveloperRequest(request).Execute()
	check(err)
	request.SetPublicKey(encodedKey)
	buyer, _, err := client.RegisterAPI.RegisterDeveloper(anonymous).RegisterDeveloperRequest(request).Execute()
	check(err)

	caller := context.WithValue(anonymous, ledger.ContextAccessToken, buyer.Sandbox.ApiKey)
	opening := ledger.CreateLedgerRequest{SupplierSvcId: &supplier.Sandbox.SvcId}
	opened, _, err := client.LedgersAPI.CreateLedger(caller).CreateLedgerRequest(opening).Execute()
	check(err)

	// docs/verifying.md, section 1. These values need no escapes, so that the text is in canonical form.
	signed := fmt.Sprintf(`{"business_ref":"PO-1","ledger_id":"%s","scope":"ORDER"}`, opened.Id)
	digest := sha256.Sum256([]byte("TRACELEDGER_MASTER_CREATED\x00" + opened.Id + "\x00" + signed))
	signature := base64.StdEncoding.EncodeToString(ed25519.Sign(privateKey, digest[:]))
	master := ledger.CreateMasterRequest{LedgerId: opened.Id, BusinessRef: "PO-1", Scope: "ORDER"}
	_, _, err = client.MastersAPI.CreateMaster(caller).CreateMasterRequest(master).
		XSigningKeyID(buyer.Sandbox.SigningKey.Kid).XActorSig(signature).Execute()
	check(err)

	page, _, err := client.EventsAPI.ListLedgerEvents(caller, opened.Id).
		From("2020-01-01T00:00:00Z").Verify("signatures").Execute()
	check(err)
	if len(page.Events) != 3 || !page.Integrity.Verified {
		panic(fmt.Sprintf("%+v", page))
	}
	_, _, err = client.LedgersAPI.GetLedger(caller, "0199aaaa-0000-7000-8000-00000000dead").Execute()
	var failed *ledger.GenericOpenAPIError
	if !errors.As(err, &failed) || failed.Model().(ledger.ErrorEnvelope).Error.Code != "not_found" {
		panic(fmt.Sprintf("%v", err))
	}
}
