"""Makes a ledger with two masters on a running service, asks for proofs of all its events, and writes down each answer.

python record.py EVENTS URL FILE [URL FILE …]

FILE gets one JSON object a line: what was asked for (`ask`), the path, the status and the body of the answer. Nothing
is judged here: verify.py and the verifier in Go do that.
"""

import base64
import hashlib
import http.client
import json
import pathlib
import sys
import time
import urllib.parse
import uuid

import rfc8785
from nacl.signing import SigningKey

KEPT = 20  # newest checkpoints that are fetched between appends
WAIT_S = 300  # how long a call is retried


class Service:
    """One connection to the service at a base URL."""

    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        connect = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}[parts.scheme]
        self.connection, self.base = connect(parts.netloc, timeout=60), parts.path.rstrip("/")

    def call(self, method, path, headers=None, body=None):
        """Status and text of an answer. A call is sent again where the service says when."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} | (headers or {})
        until = time.monotonic() + WAIT_S
        while True:
            self.connection.request(method, self.base + path, data, headers)
            answer = self.connection.getresponse()
            text, pause = answer.read().decode(), answer.headers.get("Retry-After")
            if answer.status not in (429, 503) or pause is None or time.monotonic() > until:
                return answer.status, text
            time.sleep(min(float(pause), 5))

    def made(self, path, body, headers=None):
        status, text = self.call("POST", path, headers, body)
        if not 200 <= status < 300:
            sys.exit(f"POST {path}: {status} {text}")
        return json.loads(text)


class Supplier:
    """A developer with a signing key, which writes all events: docs/signing.md."""

    def __init__(self, service):
        self.service, self.key = service, SigningKey.generate()
        public_key = base64.b64encode(self.key.verify_key.encode()).decode()
        supplier = self.register("supplier", {"public_key": public_key})
        self.actor_id, self.kid = supplier["actor_id"], supplier["signing_key"]["kid"]
        self.read = {"Authorization": f"Bearer {supplier['api_key']}"}
        self.buyer_id = self.register("buyer", {})["actor_id"]
        ledger = service.made("/v1/ledgers", {"buyer_svc_id": f"svc:actor:{self.buyer_id}"}, self.read)
        self.ledger_id = ledger["id"]

    def register(self, name, more):
        email = f"conformance-{uuid.uuid4()}@{name}.example"
        answer = self.service.made("/v1/developer/register", {"name": name, "email": email, "region": "eu"} | more)
        return answer["sandbox"]

    def write(self, path, body, event_type, signed):
        parts = event_type.encode(), self.ledger_id.encode(), rfc8785.dumps(signed)
        signature = self.key.sign(hashlib.sha256(b"\x00".join(parts)).digest()).signature
        headers = {
            "X-Signing-Key-ID": self.kid,
            "X-Actor-Sig": base64.b64encode(signature).decode(),
            "Idempotency-Key": str(uuid.uuid4()),
        }
        return self.service.made(path, body, self.read | headers)

    def create_master(self, business_ref):
        body = {"ledger_id": self.ledger_id, "business_ref": business_ref, "scope": "ORDER"}
        return self.write("/v1/traceledger/master", body, "TRACELEDGER_MASTER_CREATED", body)["uuid"]

    def append(self, master_id, business_ref, payload):
        names = {
            "traceledger_master_uuid": master_id,
            "business_ref": business_ref,
            "scope": "ORDER",
            "buyer_actor_id": self.buyer_id,
            "supplier_actor_id": self.actor_id,
        }
        body = {"event_type": "CONFORMANCE_CHECKED", "payload": payload}
        path = f"/v1/traceledger/master/{master_id}/events"
        return self.write(path, body, body["event_type"], payload | names)


class Recording:
    def __init__(self, service, headers, file):
        self.service, self.headers, self.file = service, headers, file

    def get(self, path, **ask):
        status, body = self.service.call("GET", path, self.headers)
        self.file.write(json.dumps({"ask": ask, "path": path, "status": status, "body": body}) + "\n")
        return status, body

    def proof(self, log, kind, least=0, **asked):
        """Asks a log. `least` is the smallest size that the newest checkpoint may have."""
        names, rest = dict(asked), kind if kind == "checkpoint" else f"proof/{kind}"
        place = {"ledgers": "ledgers", "masters": "traceledger/master"}[log[0]]
        if "index" in names:
            names["seq" if log[0] == "ledgers" else "master_seq"] = names.pop("index")
        path = f"/v1/{place}/{log[1]}/{rest}" + (f"?{urllib.parse.urlencode(names)}" if names else "")
        ask = dict.fromkeys(["index", "event_id", "size", "from", "to"]) | asked
        self.get(path, kind=kind, log=log[0], id=log[1], least=least, **ask)

    def events(self, ledger_id):
        path, events = f"/v1/ledgers/{ledger_id}/events?limit=500", []
        cursor = ""
        while cursor is not None:
            status, body = self.get(path + cursor, kind="events", id=ledger_id)
            if status != 200:
                sys.exit(f"GET {path}{cursor}: {status} {body}")
            page = json.loads(body)
            events += page["events"]
            cursor = f"&cursor={page['next_cursor']}" if page.get("next_cursor") else None
        return events


def payload_of(i):
    """Values that are written in more than one way by those who do not write RFC 8785."""
    note = f"Müller & Söhne <dock {i}>"
    return {"number": i, "weight": i / 8, "small": 1e-7, "big": 1e16, "note": note, "😀": [], "ﬀ": {}}


def record(service, file, count):
    supplier = Supplier(service)
    recording, ledger = Recording(service, supplier.read, file), ("ledgers", supplier.ledger_id)
    recording.get("/.well-known/svc-authority", kind="authority")
    masters, sizes, kept = [], {ledger: 2}, {}
    for i in range(2):
        business_ref = f"PO-{i}"
        masters.append((("masters", supplier.create_master(business_ref)), business_ref))
        sizes |= {masters[i][0]: 1, ledger: sizes[ledger] + 1}
    for i in range(count):
        log, business_ref = masters[i % 3 == 0]
        supplier.append(log[1], business_ref, payload_of(i))
        for grown in (ledger, log):
            sizes[grown] += 1
        if i % max(1, count // KEPT) == 0:
            for log, size in sizes.items():
                recording.proof(log, "checkpoint", least=size)
                kept.setdefault(log, set()).add(size)
    events = recording.events(supplier.ledger_id)
    for log, size in sizes.items():
        recording.proof(log, "checkpoint", least=size)
        for index in range(size):
            recording.proof(log, "inclusion", index=index, size=index + 1)
            recording.proof(log, "inclusion", index=index, least=size)
        pairs = sorted(kept[log] | {1, size})
        for older in pairs:
            recording.proof(log, "checkpoint", size=older)
            recording.proof(log, "consistency", least=size, **{"from": older})
            for newer in pairs:
                if older <= newer:
                    recording.proof(log, "consistency", **{"from": older, "to": newer})
    for event in events[:: max(1, len(events) // 20)]:
        recording.proof(ledger, "inclusion", event_id=event["id"], size=int(event["seq"]) + 1)
        if event["master_id"]:
            recording.proof(("masters", event["master_id"]), "inclusion", event_id=event["id"], least=1)


def main():
    events, places = sys.argv[1:2], sys.argv[2:]
    if not events or not places or len(places) % 2:
        sys.exit(__doc__)
    for url, path in zip(places[::2], places[1::2]):
        with pathlib.Path(path).open("w", encoding="utf-8") as file:
            record(Service(url), file, int(events[0]))


main()
