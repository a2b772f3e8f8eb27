"""Verifies an export of a ledger by the rules of docs/verifying.md.

python3 verify.py EXPORT [--keys FILE ...] [--authority FILE] [--head HASH ...]

Needs the package cryptography. Prints the verdict, and each finding on a line: its event and its type. What could not
be checked begins with a question mark. Exit code: 0 valid, 1 invalid, 2 incomplete, 66 no export.
"""
import argparse, json, math, re, sys
from datetime import datetime, timedelta, timezone

import checkpoint
from formulas import jcs, parse, sha256, time_of, verifies
from rules import ACTOR_TYPES, SERVICE_TYPES, UUID, Rules, is_label, is_name

FIELDS = ("id ledger_id seq master_id master_seq event_type actor_id actor_type payload hash content_hash actor_sig"
          " caused_by_hash signing_key_id actor_sig_payload authority_sig authority_key_id created_at").split()
CONTENT = "actor_id actor_sig actor_type caused_by_hash created_at event_type id ledger_id signing_key_id".split()
SEALED = "GENESIS ORDER_OPENED LEDGER_CLOSED ORGANIZATION_REGISTERED".split()
OBJECTS, NUMBERS = ["payload", "actor_sig_payload"], ["seq", "master_seq"]
# The members of resolver documents and of the trust anchor, by their types. Those with a question mark may be absent.
FORMS = {
    "actor": {str: "id actor_id role status preferred_signing? created_at", "actor_key[]": "keys", dict: "trust_graph?",
              list: "authority_attestations"},
    "actor_key": {str: "kid algorithm public_key status valid_from created_at revoked_at? revoked_reason?",
                  bool: "preferred_signing"},
    "authority": {str: "id algorithm public_key? fingerprint? kid_namespace phase", "authority_key[]": "keys",
                  "log": "log?"},
    "authority_key": {str: "kid algorithm public_key fingerprint valid_from valid_to?"},
    "log": {str: "origin", "log_key[]": "keys", "previous[]": "previous"},
    "log_key": {str: "public_key valid_from valid_to?", "endorsement": "endorsement?"},
    "endorsement": {str: "kid sig"},
    "previous": {str: "origin ended_at", "log_key[]": "keys"}}
# The fields that may be null.
OPTIONAL = ("master_id master_seq actor_id actor_sig caused_by_hash signing_key_id actor_sig_payload authority_sig"
            " authority_key_id").split()


def is_time(text):
    form = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-5][0-9][.][0-9]{3}Z"
    return re.fullmatch(form, text) and not math.isnan(time_of(text))

def is_whole_number(value):
    return type(value) is float and value % 1 == 0 and abs(value) < 2**53

def is_typed(e):
    types = {name: dict if name in OBJECTS else float if name in NUMBERS else str for name in FIELDS}
    return all(e[name] is None and name in OPTIONAL or type(e[name]) is types[name] for name in FIELDS) and all(
        e[name] is None or is_whole_number(e[name]) for name in NUMBERS)

def is_document(value, form):
    """Whether a document has the members of a form with their types."""
    members = [(name.rstrip("?"), name.endswith("?"), kind) for kind, names in FORMS[form].items()
               for name in names.split()]
    return isinstance(value, dict) and all(
        is_optional if value.get(name) is None else is_member(value[name], kind) for name, is_optional, kind in members)

def is_member(value, kind):
    if isinstance(kind, type):
        return type(value) is kind
    if kind.endswith("[]"):
        return isinstance(value, list) and all(is_document(one, kind[:-2]) for one in value)
    return is_document(value, kind)

def is_form(e):
    ids = [e["id"], e["ledger_id"], *(e[name] for name in ("master_id", "actor_id") if e[name] is not None)]
    hashes = [e["hash"], e["content_hash"], e["content_hash"] if e["caused_by_hash"] is None else e["caused_by_hash"]]
    places = [e["seq"], e["seq"] if e["master_seq"] is None else e["master_seq"]]
    names = e["payload"] if e["master_id"] is not None else {}
    texts = [jcs(e[name]) for name in OBJECTS if e[name] is not None]
    return (is_name(names.get("business_ref", "-")) and is_label(names.get("scope", "X"))
            and (re.fullmatch(SERVICE_TYPES, e["event_type"]) or sum(map(len, texts)) <= 572 * 1024)
            and all(re.fullmatch(UUID, one) for one in ids) and all(0 <= n < 2**53 and n % 1 == 0 for n in places)
            and all(re.fullmatch("[0-9a-f]{64}", one) for one in hashes)
            and e["actor_type"] in ACTOR_TYPES and is_time(e["created_at"])
            and e["event_type"] != "PING" and re.fullmatch("[A-Za-z][A-Za-z0-9_.:-]{0,127}", e["event_type"]))


# Sections 1 and 4: signatures and seals. Each function gives the findings of one event.
def signature(e, kid, sig, signed, actors):
    if not re.fullmatch(rf"svc:actor:{re.escape(str(e['actor_id']))}#key-[1-9][0-9]{{0,8}}", kid):
        return ["invalid_actor_sig"]
    if e["actor_id"] not in actors:
        return ["? actor_keys_unknown"]
    document = actors[e["actor_id"]]
    key = next((key for key in document["keys"] if key["kid"] == kid), None)
    if key is None:
        return ["invalid_actor_sig"]
    at, end = time_of(e["created_at"]), key.get("revoked_at")
    held = time_of(key["valid_from"]) <= at and (key["status"] == "ACTIVE" if end is None else at < time_of(end))
    digest = sha256(f"{e['event_type']}\0{e['ledger_id']}\0".encode() + jcs(signed))
    if not held or not verifies(key["public_key"], sig, digest):
        return ["invalid_actor_sig"]
    return ["? actor_keys_untrusted"] * (not document["is_trusted"])

def seal(e, authority):
    if e["authority_sig"] is None or not re.fullmatch("svc:authority#key-[1-9][0-9]{0,8}", e["authority_key_id"] or ""):
        return ["invalid_authority_sig"]
    if not authority["keys"]:
        return ["? authority_keys_unknown"]
    key, at = next((one for one in authority["keys"] if one["kid"] == e["authority_key_id"]), None), e["created_at"]
    if key is None or time_of(at) < time_of(key["valid_from"], -1):
        return ["invalid_authority_sig"]
    held = key.get("valid_to") is None or time_of(at) <= time_of(key["valid_to"], 1)
    digest = sha256(b"svc-authority-v1\0" + bytes.fromhex(e["hash"]))
    return [] if held and verifies(key["public_key"], e["authority_sig"], digest) else ["invalid_authority_sig"]

def attribution(e, actors, authority):
    event_type, signed = e["event_type"], e["actor_sig_payload"]
    if e["actor_sig"] is not None:
        if event_type in SEALED or e["authority_sig"] is not None or e["authority_key_id"] is not None:
            return ["invalid_actor_sig"]
        signed = e["payload"] if signed is None else signed
        return signature(e, e["signing_key_id"] or "", e["actor_sig"], signed, actors)
    found = seal(e, authority)
    document = actors.get(e["actor_id"])
    exempt = SEALED + ["MASTER_DELEGATION_GRANTED", "MASTER_DELEGATION_REVOKED"]
    names = ["requestor_sig", "requestor_signing_key_id"]
    request = [e["payload"][name] for name in names if name in e["payload"]]
    if event_type not in exempt and document is None:
        found += ["? actor_keys_unknown"] * (e["actor_id"] is not None)
    elif event_type not in exempt:
        had_keys = any(time_of(key["valid_from"], 15) <= time_of(e["created_at"]) for key in document["keys"])
        found += ["invalid_actor_sig"] * had_keys + ["? actor_keys_untrusted"] * (not document["is_trusted"])
    if e["signing_key_id"] is not None:
        found.append("invalid_actor_sig")
    if event_type != "LEDGER_CLOSED":
        return found + ["invalid_actor_sig"] * (signed is not None)
    if not request and signed is None:
        return found
    if signed is None or len(request) < 2 or not all(isinstance(one, str) for one in request):
        return found + ["invalid_actor_sig"]
    return found + signature(e, request[1], request[0], signed, actors)


# Sections 2 and 3: contents and chains
def content_hash(e, master_prev_hash):
    content = {name: e[name] for name in CONTENT}
    signed = e["actor_sig_payload"]
    content["payload_hash"] = sha256(jcs(e["payload"])).hex()
    content["actor_sig_payload_hash"] = None if signed is None else sha256(jcs(signed)).hex()
    content["seq"] = e["seq"]
    place = {"id": e["master_id"], "prev_hash": master_prev_hash, "seq": e["master_seq"] or 0.0}
    content["master"] = None if e["master_id"] is None else place
    return sha256(jcs(content)).hex()

class Chain:
    """Takes events in order. `kind`: ledger, master or segment, as the end of the export says."""
    def __init__(self, kind, ledger_id, master_id):
        self.kind, self.ledger_id, self.master_id, self.latest = kind, ledger_id, master_id, None
        # No event of the ledger is missing from `run_start` up to the current one.
        self.previous, self.masters, self.is_whole, self.run_start = None, {}, True, 0

    def take(self, e):
        previous, found = self.previous, []
        gap = ["missing_event"] if self.kind != "segment" else ["? middle_unknown"]
        if self.kind == "master":
            self.master_id = self.master_id or e["master_id"] or "none"
        if e["ledger_id"] != self.ledger_id or (self.master_id and e["master_id"] != self.master_id):
            found.append("broken_link")
        if e["created_at"] > self.latest:
            found.append("dated_ahead")
        if previous and e["created_at"] < previous["created_at"]:
            found.append("broken_link")
        last = previous["seq"] if previous else -1
        if e["seq"] != last + 1:
            self.is_whole = False
            self.run_start = e["seq"] if e["seq"] > last else self.run_start
            if e["seq"] <= last:
                found.append("broken_link")
            elif self.kind != "master":
                found += gap if previous or self.kind == "ledger" else ["? start_unknown"]
        if e["seq"] == 0 or e["seq"] == last + 1:
            before = bytes.fromhex(previous["hash"]) if e["seq"] > 0 else b""
            hash = sha256(b"svc-event-v1\0" + before + bytes.fromhex(e["content_hash"])).hex()
            found += ["hash_mismatch"] * (hash != e["hash"])
        else:
            found.append("? hash_unchecked")
        self.previous = e
        return found + self.content(e)

    def content(self, e):
        if e["master_id"] is None or e["master_seq"] is None:
            return ["hash_mismatch"] * (content_hash(e, "") != e["content_hash"])
        last, prev_hash, place = self.masters.get(e["master_id"], (-1, "", 0))
        self.masters[e["master_id"]] = e["master_seq"], e["content_hash"], e["seq"]
        if e["master_seq"] <= last:
            return ["broken_link"]
        if e["master_seq"] > last + 1:
            # Where no event of the ledger is missing in between, none of the master was left out.
            is_hidden = self.kind == "segment" and place < self.run_start
            return ["? content_unchecked"] if is_hidden else ["missing_event"]
        return ["hash_mismatch"] * (content_hash(e, prev_hash) != e["content_hash"])


class NoExport(Exception):
    """A file does not hold what it should."""


def lines_of(path):
    data = open(path, "rb").read()
    first, *rest = [line.removesuffix(b"\r") for line in data.split(b"\n")]
    if b"\n" not in data[:4096] or any(len(line) > 4 * 2**20 for line in rest):
        raise ValueError("a line that is too long")
    if any(re.search(b"[\r\v\f]", line) for line in [first, *rest]):
        raise ValueError("white space that stands in no export")
    return [first, *(line for line in rest if line.strip())]

def check_ends(header, end):
    """Nothing stands in the first line and in the end but what is known, and fields have their types."""
    ids = [header["ledger_id"], header.get("master_id", header["ledger_id"])]
    if header.keys() | {"master_id"} != {"format", "ledger_id", "master_id", "exported_at"}:
        raise ValueError("a first line with other members")
    if not all(re.fullmatch(UUID, one) for one in ids) or math.isnan(time_of(header["exported_at"])):
        raise ValueError("a first line of another form")
    is_kind = end.get("kind", "segment") in ("ledger", "master", "segment")
    if end.keys() | {"kind"} != {"count", "kind"} or type(end["count"]) is not float or not is_kind:
        raise ValueError("an end of another form")

def read_export(path):
    header, *rest = [parse(line.decode()) for line in lines_of(path)]
    found = {"event": [], "actor": [], "authority": [], "checkpoint": [], "end": []}
    for line in rest:
        [(name, value)] = line.items()
        if name in ("actor", "authority") and not is_document(value, name):
            raise ValueError("a document of another form")
        if found["end"] or (name == "actor" and value["actor_id"] in [one["actor_id"] for one in found["actor"]]):
            raise ValueError("a line behind the end, or a second document of an actor")
        found[name].append(value)
    [end], [authority], note = found["end"], found["authority"], (found["checkpoint"] or [None])[0]
    check_ends(header, end)
    notes_max = {"ledger-trust-export/1": 0, "ledger-trust-export/2": int(end.get("kind", "segment") != "segment")}
    if end["count"] != len(found["event"]) or len(found["checkpoint"]) > notes_max[header["format"]]:
        raise ValueError("cut short, or no export")
    if found["checkpoint"]:
        checkpoint.form(note)
        if end["kind"] == "master" and "master_id" not in header:
            raise ValueError("a checkpoint of no log")
    if any(sorted(e) != sorted(FIELDS) for e in found["event"]) or not all(map(is_typed, found["event"])):
        raise ValueError("an event with other fields, or with a field of another type")
    return header, end, found["event"], found["actor"], authority, note

def read_document(path, form):
    value = parse(open(path, encoding="utf-8").read())
    if not is_document(value, form):
        raise ValueError("a document of another form")
    return value

def read(path, key_files, authority_file):
    try:
        export = read_export(path)
        given = [read_document(file, "actor") for file in key_files]
        return export, given, authority_file and read_document(authority_file, "authority")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NoExport(repr(error)) from error

def verify(path, key_files, authority_file, heads, now):
    (header, end, events, documents, in_file, note), given, authority = read(path, key_files, authority_file)
    findings, taken, unsigned = set(), [], []
    documents, authority = given or documents, authority or in_file
    actors = {one["actor_id"]: one | {"is_trusted": bool(key_files)} for one in documents}
    chain, rules = Chain(end.get("kind", "segment"), header["ledger_id"], header.get("master_id")), Rules()
    chain.latest = (now + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%S.999Z")
    for e in events:
        if not is_form(e):
            findings.add((e["id"], "malformed_event"))
            continue
        found = chain.take(e) + attribution(e, actors, authority) + rules.take(e, chain.is_whole)
        taken.append(e)
        is_sealed = e["actor_sig"] is None and not any(re.search("hash|authority", finding) for finding in found)
        unsigned = [] if is_sealed else [*unsigned, e]
        if not authority_file and authority["keys"] and e["authority_key_id"]:
            found.append("? authority_keys_untrusted")
        findings.update((e["id"], finding) for finding in found)
    if note is not None and authority_file and authority.get("log"):
        is_master, log_id = end["kind"] == "master", header["master_id" if end["kind"] == "master" else "ledger_id"]
        try:
            finding, behind = checkpoint.look(note, is_master, log_id, (authority, in_file), taken)
        except checkpoint.Refused:
            return [("", "refused_checkpoint")]
        if finding:
            findings.add((taken[-1]["id"] if taken else "", finding))
        unsigned = unsigned if behind is None else min(unsigned, behind, key=len)
    if unsigned:
        findings.add((unsigned[0]["id"], "? order_unsigned"))
    for head in set(heads) - {e["hash"] for e in events}:
        findings.add((head, "missing_event"))
    if not events:
        findings.add(("", "? start_unknown"))
    return sorted(findings)

def main():
    options = argparse.ArgumentParser()
    options.add_argument("export")
    options.add_argument("--keys", nargs="*", default=[])
    options.add_argument("--authority")
    options.add_argument("--head", nargs="*", default=[])
    given = options.parse_args()
    try:
        found = verify(given.export, given.keys, given.authority, given.head, datetime.now(timezone.utc))
    except NoExport as error:
        sys.exit(print(f"no export: {error}") or 66)
    is_open = [finding.startswith("?") for _, finding in found]
    verdict = 1 if not all(is_open) else 2 if found else 0
    print(["VALID", "INVALID", "INCOMPLETE"][verdict], *(f"{event} {finding}" for event, finding in found), sep="\n")
    sys.exit(verdict)

if __name__ == "__main__":
    main()
