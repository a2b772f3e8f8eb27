"""Calls a live node through the Python client of openapi-generator."""

import os
import uuid

import openapi_client as api
from openapi_client.exceptions import NotFoundException


def client(api_key=None):
    return api.ApiClient(api.Configuration(host=os.environ["BASE_URL"], access_token=api_key))


def register(name):
    request = api.RegisterDeveloperRequest(name=name, email="office@acme.example", region="eu")
    return api.RegisterApi(client()).register_developer(request).sandbox


assert api.HealthApi(client()).get_health().status == "ok"
buyer, supplier = register("Buyer"), register("Supplier")
caller = client(buyer.api_key)
ledgers = api.LedgersApi(caller)
opened = ledgers.create_ledger(create_ledger_request=api.CreateLedgerRequest(supplier_svc_id=supplier.svc_id))
page = api.EventsApi(caller).list_ledger_events(opened.id, var_from="2020-01-01T00:00:00Z", limit=10)
assert [event.event_type for event in page.events] == ["GENESIS", "ORDER_OPENED"], page
assert page.integrity.verified
try:
    ledgers.get_ledger(uuid.UUID("0199aaaa-0000-7000-8000-00000000dead"))
    raise AssertionError("an unknown ledger was found")
except NotFoundException as error:
    assert error.data.error.code == "not_found", error
