"""Registers two parties, signs and appends an event, reads and verifies the ledger, and receives a webhook.

Against a development node: BASE=http://localhost:8080 python walk.py. The formulas are in docs/verifying.md.
"""

import base64, hashlib, hmac, http.server, json, os, queue, threading, time, urllib.request

import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

BASE = os.environ.get("BASE", "http://localhost:8080")


def call(method, path, body=None, api_key=None, headers=None):
    """Calls the API and returns the answer. An error of the service becomes an exception with its sentence."""
    request = urllib.request.Request(BASE + path, method=method, headers=dict(headers or {}))
    if api_key is not None:
        request.add_header("Authorization", f"Bearer {api_key}")
    if body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as refused:
        raise RuntimeError(json.load(refused)["error"]) from None


def digest(event_type, ledger_id, payload):
    """What an actor signs. rfc8785 writes the canonical form; json.dumps would not."""
    return hashlib.sha256(b"\0".join([event_type.encode(), ledger_id.encode(), rfc8785.dumps(payload)])).digest()


def signed(private_key, kid, event_type, ledger_id, payload):
    signature = private_key.sign(digest(event_type, ledger_id, payload))
    return {"X-Signing-Key-ID": kid, "X-Actor-Sig": base64.b64encode(signature).decode()}


def content_hash(event, previous_in_master):
    """The hash of what was recorded."""
    hashed = lambda value: hashlib.sha256(rfc8785.dumps(value)).hexdigest()
    names = "id ledger_id seq event_type actor_id actor_type caused_by_hash actor_sig signing_key_id created_at"
    content = {name: event[name] for name in names.split()}
    content["payload_hash"] = hashed(event["payload"])
    signed_form = event["actor_sig_payload"]
    content["actor_sig_payload_hash"] = None if signed_form is None else hashed(signed_form)
    master = {"id": event["master_id"], "seq": event["master_seq"], "prev_hash": previous_in_master}
    content["master"] = None if event["master_id"] is None else master
    return hashlib.sha256(rfc8785.dumps(content)).digest()


def verify_actor(event):
    """Checks the author's signature under the key that the resolver names."""
    document = call("GET", f"/v1/resolve/svc:actor:{event['actor_id']}")
    key = next(key for key in document["keys"] if key["kid"] == event["signing_key_id"])
    assert key["valid_from"] <= event["created_at"] < key.get("revoked_at", "9999"), "key not valid at the time"
    signed_form = event["payload"] if event["actor_sig_payload"] is None else event["actor_sig_payload"]
    assert all(event["payload"].get(name) == value for name, value in signed_form.items() if value is not None)
    signature = base64.b64decode(event["actor_sig"])
    assert signature[:32] != b"\x01" + bytes(31), "R is the identity point"
    public_key = Ed25519PublicKey.from_public_bytes(base64.b64decode(key["public_key"]))
    public_key.verify(signature, digest(event["event_type"], event["ledger_id"], signed_form))


def verify(events):
    """Recomputes every hash of a ledger from its start. Returns the number of signatures that were checked."""
    before, masters, signatures = b"", {}, 0
    for seq, event in enumerate(events):
        assert event["seq"] == seq, "an event is missing"
        content = content_hash(event, masters.get(event["master_id"], ""))
        assert content.hex() == event["content_hash"], f"content of event {seq} was changed"
        before = hashlib.sha256(b"svc-event-v1\0" + before + content).digest()
        assert before.hex() == event["hash"], f"event {seq} is not where it was recorded"
        masters[event["master_id"]] = content.hex()
        if event["actor_sig"] is not None:
            verify_actor(event)
            signatures += 1
    return signatures


def is_from_service(secret, headers, body):
    """Checks the signature of a webhook (Standard Webhooks)."""
    stamp = headers["webhook-timestamp"]
    message = f"{headers['webhook-id']}.{stamp}.".encode() + body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = "v1," + base64.b64encode(hmac.digest(key, message, "sha256")).decode()
    is_recent = abs(time.time() - int(stamp)) < 300
    return is_recent and any(hmac.compare_digest(expected, given) for given in headers["webhook-signature"].split())


deliveries = queue.Queue()


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        is_good = is_from_service(webhook["secret"], self.headers, body)
        self.send_response(204 if is_good else 401)
        self.end_headers()
        if is_good:
            deliveries.put(json.loads(body))

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
threading.Thread(target=server.serve_forever, daemon=True).start()

private_key = Ed25519PrivateKey.generate()
public_key = base64.b64encode(private_key.public_key().public_bytes_raw()).decode()
person = {"email": "dev@example.com", "region": "eu"}
supplier = call("POST", "/v1/developer/register", {**person, "name": "Supplier", "public_key": public_key})["sandbox"]
buyer = call("POST", "/v1/developer/register", {**person, "name": "Buyer"})["sandbox"]
kid = supplier["signing_key"]["kid"]
target = {"url": f"http://127.0.0.1:{server.server_port}/", "event_types": ["SHIPMENT_DISPATCHED"]}
webhook = call("POST", "/v1/webhooks", target, buyer["api_key"])

ledger_id = call("POST", "/v1/ledgers", {"buyer_svc_id": buyer["svc_id"]}, supplier["api_key"])["id"]
opening = {"ledger_id": ledger_id, "business_ref": "PO-1 <Zoë & Co>", "scope": "ORDER"}
headers = signed(private_key, kid, "TRACELEDGER_MASTER_CREATED", ledger_id, opening)
master = call("POST", "/v1/traceledger/master", opening, supplier["api_key"], headers)["uuid"]

# The signature covers the fields that the service adds, so that it fits this master alone.
actors = {"buyer_actor_id": buyer["actor_id"], "supplier_actor_id": supplier["actor_id"]}
added = {"traceledger_master_uuid": master, "business_ref": opening["business_ref"], "scope": "ORDER", **actors}
payload = {"carrier": "Straße & Söhne", "pallets": 4, **added}
headers = signed(private_key, kid, "SHIPMENT_DISPATCHED", ledger_id, payload) | {"Idempotency-Key": "event-1"}
event = {"event_type": "SHIPMENT_DISPATCHED", "payload": payload}
appended = call("POST", f"/v1/traceledger/master/{master}/events", event, supplier["api_key"], headers)

events = call("GET", f"/v1/ledgers/{ledger_id}/events", api_key=buyer["api_key"])["events"]
print(f"verified: {len(events)} events, {verify(events)} signatures, chain whole")
delivered = deliveries.get(timeout=30)
assert delivered["event"]["id"] == appended["event_id"] and delivered["event"]["hash"] == appended["hash"]
print(f"received: {delivered['event']['event_type']}, signed by the service")
