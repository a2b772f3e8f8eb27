// Calls a live node through the client of oapi-codegen.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"example.com/acme/oapi/api"
	"github.com/google/uuid"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	ctx := context.Background()
	base := os.Getenv("BASE_URL")
	anonymous, err := api.NewClientWithResponses(base)
	check(err)
	register := func(name string) api.SandboxIdentity {
		body := api.RegisterDeveloperRequest{Name: name, Email: "office@acme.example", Region: "eu"}
		answer, err := anonymous.RegisterDeveloperWithResponse(ctx, nil, body)
		check(err)
		return answer.JSON200.Sandbox
	}
	buyer, supplier := register("Buyer"), register("Supplier")
	bearer := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+buyer.ApiKey)
		return nil
	}
	caller, err := api.NewClientWithResponses(base, api.WithRequestEditorFn(bearer))
	check(err)
	opened, err := caller.CreateLedgerWithResponse(ctx, nil, api.CreateLedgerRequest{SupplierSvcId: &supplier.SvcId})
	check(err)
	from := "2020-01-01T00:00:00Z"
	page, err := caller.ListLedgerEventsWithResponse(ctx, opened.JSON200.Id, &api.ListLedgerEventsParams{From: &from})
	check(err)
	if page.JSON200 == nil || page.JSON200.Count != 2 || !page.JSON200.Integrity.Verified {
		panic(string(page.Body))
	}
	missing, err := caller.GetLedgerWithResponse(ctx, uuid.MustParse("0199aaaa-0000-7000-8000-00000000dead"), nil)
	check(err)
	if missing.JSON404 == nil || missing.JSON404.Error.Code != "not_found" {
		panic(fmt.Sprintf("%s", missing.Body))
	}
}
