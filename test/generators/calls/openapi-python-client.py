"""Calls a live node through the client of openapi-python-client."""

import os
import uuid

from ledger_trust_service_client import AuthenticatedClient, Client
from ledger_trust_service_client.api.events import list_ledger_events
from ledger_trust_service_client.api.health import get_health
from ledger_trust_service_client.api.ledgers import create_ledger, get_ledger
from ledger_trust_service_client.api.register import register_developer
from ledger_trust_service_client.models import (
    CreateLedgerRequest,
    ErrorEnvelope,
    RegisterDeveloperRequest,
    RegisterDeveloperRequestRegion,
)

base_url = os.environ["BASE_URL"]
anonymous = Client(base_url=base_url)


def register(name):
    request = RegisterDeveloperRequest(
        name=name, email="office@acme.example", region=RegisterDeveloperRequestRegion.EU
    )
    return register_developer.sync(client=anonymous, body=request).sandbox


assert get_health.sync(client=anonymous).status == "ok"
buyer, supplier = register("Buyer"), register("Supplier")
caller = AuthenticatedClient(base_url=base_url, token=buyer.api_key)
opened = create_ledger.sync(client=caller, body=CreateLedgerRequest(supplier_svc_id=supplier.svc_id))
page = list_ledger_events.sync(opened.id, client=caller, from_="2020-01-01T00:00:00Z", limit=10)
assert [event.event_type for event in page.events] == ["GENESIS", "ORDER_OPENED"], page
assert page.integrity.verified
missing = get_ledger.sync(uuid.UUID("0199aaaa-0000-7000-8000-00000000dead"), client=caller)
assert isinstance(missing, ErrorEnvelope) and missing.error.code == "not_found", missing
