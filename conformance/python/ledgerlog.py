"""The rules by which a reader checks the logs of ledgers and masters: ../README.md."""

import hashlib
import json
import math
import re
from dataclasses import dataclass, field
from decimal import Decimal

import rfc8785
from aics_tlog import (
    leaf_hash,
    parse_note,
    vkey_from_ed25519,
    verify_checkpoint,
    verify_consistency,
    verify_inclusion,
    MerkleTree,
)
from aics_tlog.note import b64_decode
from nacl.bindings import crypto_core_ed25519_is_valid_point
from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey


class Refusal(Exception):
    """Says by which rule something was refused. Both programs of the kit use the same codes."""

    def __init__(self, code, detail):
        super().__init__(f"{code}: {detail}")
        self.code = code


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def from_base64(text, length=None):
    try:
        data = b64_decode(text)
    except (TypeError, ValueError) as error:
        raise Refusal("malformed", f"{error}: {text!r}") from None
    if length is not None and len(data) != length:
        raise Refusal("malformed", f"{len(data)} bytes instead of {length}: {text!r}")
    return data


def decimal(text):
    """A number in its one form: no sign, no leading zero, below 2^53."""
    if not re.fullmatch("0|[1-9][0-9]{0,15}", text) or int(text) >= 2**53:
        raise Refusal("malformed", f"not a number: {text!r}")
    return int(text)


# Ed25519

IDENTITY = b"\x01" + bytes(31)


def check_key(key):
    """Takes a public key of prime order in its one encoding. cryptography does not check that."""
    if len(key) != 32 or not crypto_core_ed25519_is_valid_point(key):
        raise Refusal("weak_key", f"not a canonical point of prime order: {key.hex()}")


def check_signature(key, message, signature):
    """The one rule for signatures. libsodium applies all of it; R is looked at first, to name that case."""
    if len(signature) != 64:
        raise Refusal("bad_signature", f"{len(signature)} bytes")
    if signature[:32] == IDENTITY:
        raise Refusal("weak_signature", "R is the identity point")
    try:
        VerifyKey(key).verify(message, signature)
    except BadSignatureError:
        raise Refusal("bad_signature", "does not verify") from None


# Names

LABEL = "[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
NAME = re.compile(rf"{LABEL}(?:\.{LABEL})*(?::[1-9][0-9]{{0,4}})?(?:/[a-z0-9._~-]+)*")
UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def check_name(name):
    """The name of a service, with which every origin begins."""
    if not isinstance(name, str) or not NAME.fullmatch(name) or len(name) > 120:
        raise Refusal("malformed", f"not the name of a service: {name!r}")
    if {".", ".."} & set(name.split("/")):
        raise Refusal("malformed", f"a segment . or .. in the name of a service: {name!r}")


def origin_of(name, kind, log_id):
    check_name(name)
    if kind not in ("ledgers", "masters") or not UUID.fullmatch(log_id):
        raise Refusal("malformed", f"not a log: {kind}/{log_id}")
    return f"{name}/{kind}/{log_id}"


def check_origin(origin):
    name, kind, log_id = (["", ""] + origin.rsplit("/", 2))[-3:]
    origin_of(name, kind, log_id)


# Checkpoints and proofs

@dataclass(frozen=True)
class Checkpoint:
    size: int
    root: bytes


class Log:
    """A log as its reader knows it: the origin comes from what was asked for, the keys from the trust anchor."""

    def __init__(self, origin, keys):
        check_origin(origin)
        for key in keys:
            check_key(key)
        self.origin = origin
        self.vkeys = [vkey_from_ed25519(origin, key) for key in keys]

    def checkpoint(self, signed):
        if not isinstance(signed, str):
            raise Refusal("malformed", "no note")
        text, found, signatures = signed.rpartition("\n\n")
        text += "\n"
        if not found or not signatures.endswith("\n"):
            raise Refusal("malformed", "a note without signatures")
        # A signature covers the text and not the name on its line, which says nothing of the log.
        lines = text.split("\n")
        if lines[0] != self.origin:
            raise Refusal("wrong_origin", f"{lines[0]!r} instead of {self.origin!r}")
        if len(lines) != 4:
            raise Refusal("malformed", f"{len(lines) - 1} lines in a checkpoint")
        size, root = decimal(lines[1]), from_base64(lines[2], 32)
        if size == 0:
            raise Refusal("malformed", "a checkpoint of an empty tree")
        try:
            note = parse_note(signed)
        except ValueError as error:
            raise Refusal("malformed", str(error)) from None
        if note.text != text or note.serialise() != signed:
            raise Refusal("malformed", "aics-tlog reads another note")
        if not all(line.signature for line in note.signatures):
            raise Refusal("malformed", "a line without a signature")
        is_verified = False
        for line in note.signatures:
            for vkey in self.vkeys:
                if (line.name, line.key_id) == (vkey.name, vkey.key_id):
                    check_signature(vkey.public_key, text.encode(), line.signature)
                    result = verify_checkpoint(note, vkey, expected_origin=self.origin)
                    if not result.ok or (result.size, result.root) != (size, root):
                        raise Refusal("bad_signature", f"aics-tlog: {result.error}")
                    is_verified = True
        if not is_verified:
            raise Refusal("unknown_log_key", f"no signature of {self.origin} by a listed key")
        return Checkpoint(size, root)

    def inclusion(self, file, index, record):
        """Verifies a proof file: that the record stands at the index that the reader expects."""
        header, found, signed = file.partition("\n\n")
        lines = header.split("\n")
        if not found or len(lines) < 2 or lines[0] != "c2sp.org/tlog-proof@v1":
            raise Refusal("malformed", "not a proof file")
        # No line "extra": nothing authenticates it.
        if not lines[1].startswith("index "):
            raise Refusal("malformed", f"{lines[1]!r} instead of the index")
        number = decimal(lines[1].removeprefix("index "))
        if number != index:
            raise Refusal("wrong_index", f"{number} instead of {index}")
        hashes = [from_base64(line, 32) for line in lines[2:]]
        checkpoint = self.checkpoint(signed)
        # It refuses a hash too many.
        if not verify_inclusion(leaf_hash(record), index, checkpoint.size, hashes, checkpoint.root):
            raise Refusal("bad_proof", f"index {index} in a tree of size {checkpoint.size}")
        return checkpoint


def check_consistency(older, newer, hashes):
    """Verifies that the tree of the older checkpoint is a prefix of the newer one."""
    if not verify_consistency(older.size, newer.size, older.root, newer.root, hashes):
        raise Refusal("bad_proof", f"from {older.size} to {newer.size}")


# Events

FRACTION_DIGITS_MAX = 17  # of a fraction that no double equals: doubles are written with that many


def number(token):
    """The double of a number, an int where it is written as one. A number that its canonical form would change is
    refused."""
    value = float(token)
    if re.fullmatch("0|-?[1-9][0-9]*", token) and abs(value) < 2**53:
        return int(token)
    if not math.isfinite(value) or (value == 0 and re.search("[1-9]", re.split("[eE]", token)[0])):
        raise ValueError(f"{token:.40} is no double")
    if value == 0:
        return 0.0
    _, digits, exponent = Decimal(token).as_tuple()
    zeros = len(digits) - len("".join(map(str, digits)).rstrip("0"))
    is_short_fraction = exponent + zeros < 0 and len(digits) - zeros <= FRACTION_DIGITS_MAX
    if not is_short_fraction and Decimal(token) != Decimal(repr(value)):
        raise ValueError(f"{token:.40} is no double")
    return value


def members(pairs):
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a name is given twice")
    return dict(pairs)


def parse(text):
    """JSON without names that are given twice, numbers that are no doubles and halves of surrogate pairs, which
    json.loads takes."""
    try:
        hooks = {"object_pairs_hook": members, "parse_int": number, "parse_float": number, "parse_constant": number}
        value = json.loads(text, **hooks)
        json.dumps(value, ensure_ascii=False).encode()  # raises for half a surrogate pair
        return value
    except (ValueError, RecursionError) as error:
        raise Refusal("malformed", str(error)) from None


class Place:
    """A seq, an index or a size, which is written in digits alone: JSON would also take -0, 0.0 or 1e0."""


TEXT, MAYBE_TEXT = (str,), (str, type(None))
LOG_KEY = {"public_key": TEXT, "endorsement": {"kid": TEXT, "sig": TEXT, None: None}}
# The members that must be there, and their types. A list has one form for all items; None as a name: null is taken.
ANCHOR = {
    "keys": [{"kid": TEXT, "public_key": TEXT}],
    "log": {"origin": TEXT, "keys": [LOG_KEY], "previous": [{"origin": TEXT, "keys": [LOG_KEY]}]},
}
EVENT = {
    **dict.fromkeys("id ledger_id event_type actor_type created_at content_hash hash".split(), TEXT),
    **dict.fromkeys("master_id actor_id actor_sig signing_key_id caused_by_hash".split(), MAYBE_TEXT),
    "seq": (Place,),
    "master_seq": (Place, type(None)),
    "payload": (dict,),
    "actor_sig_payload": (dict, type(None)),
}
EVENTS = {"events": [EVENT]}
CHECKPOINT = {"origin": TEXT, "checkpoint": TEXT, "size": (Place,), "root_hash": TEXT}
INCLUSION = {"origin": TEXT, "proof": TEXT, "index": (Place,), "size": (Place,)}
CONSISTENCY = {
    **dict.fromkeys("origin checkpoint_from checkpoint_to".split(), TEXT),
    "from": (Place,),
    "to": (Place,),
    "hashes": [TEXT],
}


def check_members(value, form, at="the answer"):
    """Refuses a value that lacks a member of a form, or has one of another type."""
    kind = {dict: dict, list: list}.get(type(form))
    if kind is dict and value is None and None in form:
        return
    if kind is None:
        is_place = type(value) is int and value >= 0 and Place in form
        if not is_place and type(value) not in form:
            raise Refusal("malformed", f"{at} has another type or form: {value!r:.40}")
    elif not isinstance(value, kind):
        raise Refusal("malformed", f"{at} has another type: {value!r:.40}")
    elif kind is list:
        for item in value:
            check_members(item, form[0], at)
    else:
        for name in form.keys() - {None}:
            if name not in value:
                raise Refusal("malformed", f"{at} has no {name}")
            check_members(value[name], form[name], f"{at}.{name}")


def parse_as(form, text):
    value = parse(text)
    check_members(value, form)
    return value


COPIED = "actor_id actor_sig actor_type caused_by_hash created_at event_type id ledger_id seq signing_key_id".split()


def hash_of_json(value):
    return None if value is None else sha256(rfc8785.dumps(value)).hex()


def hashes_of(event, master_prev, prev):
    """content_hash and hash of an event. `master_prev` is the content_hash of the event before it in its master,
    `prev` the hash of the event before it in its ledger; both are empty for the first."""
    content = {name: event[name] for name in COPIED}
    content["payload_hash"] = hash_of_json(event["payload"])
    content["actor_sig_payload_hash"] = hash_of_json(event["actor_sig_payload"])
    content["master"] = None
    if event["master_id"] is not None:
        content["master"] = {"id": event["master_id"], "prev_hash": master_prev, "seq": event["master_seq"]}
    content_hash = sha256(rfc8785.dumps(content))
    return content_hash, sha256(b"svc-event-v1\x00", prev, content_hash)


@dataclass
class Records:
    """The records of a ledger log and of the logs of its masters, recomputed from the events."""

    ledger: list = field(default_factory=list)
    masters: dict = field(default_factory=dict)
    by_id: dict = field(default_factory=dict)


def records_of(ledger_id, events):
    records, prev = Records(), b""
    for seq, event in enumerate(events):
        master_id, master_seq = event["master_id"], event["master_seq"]
        if event["ledger_id"] != ledger_id or event["seq"] != seq or (master_id is None) != (master_seq is None):
            raise Refusal("wrong_record", f"event {event['id']} does not stand at seq {seq} of {ledger_id}")
        before = [] if master_id is None else records.masters.setdefault(master_id, [])
        if master_id is not None and master_seq != len(before):
            raise Refusal("wrong_record", f"seq {seq} has master_seq {master_seq}, not {len(before)}")
        content_hash, prev = hashes_of(event, before[-1].hex() if before else "", prev)
        if (event["content_hash"], event["hash"]) != (content_hash.hex(), prev.hex()):
            raise Refusal("wrong_record", f"the hashes of seq {seq} are not those of its content")
        before.append(content_hash)
        records.ledger.append(prev)
        records.by_id[event["id"]] = event
    return records


# Answers of a service

def endorsement_digest(name, key):
    """What the authority signs to endorse a log key."""
    return sha256(b"svc-log-key-v1\x00", name.encode(), b"\x00", key)


def listed_key(listed, name, authority_keys):
    key = from_base64(listed["public_key"], 32)
    check_key(key)
    endorsement = listed["endorsement"]
    if endorsement is not None:
        if endorsement["kid"] not in authority_keys:
            raise Refusal("bad_endorsement", f"by {endorsement['kid']!r}, which is not listed")
        signer = from_base64(authority_keys[endorsement["kid"]], 32)
        check_key(signer)
        try:
            check_signature(signer, endorsement_digest(name, key), from_base64(endorsement["sig"], 64))
        except Refusal as refusal:
            raise Refusal("bad_endorsement", str(refusal)) from None
    return key


class SeenLog(Log):
    """A log with all checkpoints of it that were verified so far."""

    def __init__(self, origin, keys, records):
        super().__init__(origin, keys)
        self.records, self.tree, self.roots = records, MerkleTree(records), {}

    def take(self, checkpoint, asked, least=0):
        """Compares a verified checkpoint with what was asked for, all checkpoints before it, and the events."""
        size, newest = checkpoint.size, max([least, *self.roots])
        if asked is not None and size != asked:
            raise Refusal("wrong_size", f"{size} instead of {asked}")
        if asked is None and size < newest:
            raise Refusal("checkpoint_behind", f"size {size} after {newest}")
        if self.roots.get(size, checkpoint.root) != checkpoint.root:
            raise Refusal("checkpoints_contradict", f"size {size}: {self.roots[size].hex()}, {checkpoint.root.hex()}")
        if size > len(self.records):
            raise Refusal("wrong_size", f"{size}, but there are {len(self.records)} events")
        if size not in self.roots and checkpoint.root != self.tree.root(size):
            raise Refusal("wrong_root", f"size {size} is not the tree of the events")
        self.roots[size] = checkpoint.root


def same(body, **expected):
    """Compares members of an answer, whose types were checked."""
    if any(body[name] != value for name, value in expected.items()):
        raise Refusal("wrong_member", "the answer and what it holds differ")


class Checks:
    """Judges the answers of one recording."""

    def __init__(self):
        self.name, self.keys, self.records, self.logs = None, [], None, {}

    def trust_anchor(self, text):
        """Reads the name of the service and its log keys. A key that is refused is not used; the others are."""
        anchor = parse_as(ANCHOR, text)
        self.name, refused = anchor["log"]["origin"], None
        check_name(self.name)
        authority_keys = {key["kid"]: key["public_key"] for key in anchor["keys"]}
        for listed in anchor["log"]["keys"]:
            try:
                self.keys.append(listed_key(listed, self.name, authority_keys))
            except Refusal as refusal:
                refused = refusal
        if not anchor["log"]["keys"]:
            raise Refusal("malformed", "no log key")
        for previous in anchor["log"]["previous"]:
            check_name(previous["origin"])
            for listed in previous["keys"]:
                listed_key(listed, previous["origin"], authority_keys)
        if refused is not None:
            raise refused

    def events(self, ledger_id, pages):
        """Reads all pages of a ledger's events and recomputes their hashes."""
        self.records = records_of(ledger_id, [event for page in pages for event in parse_as(EVENTS, page)["events"]])

    def log(self, kind, log_id):
        if (kind, log_id) not in self.logs:
            if self.records is None:
                raise Refusal("wrong_record", "the events of the ledger were refused")
            records = self.records.ledger if kind == "ledgers" else self.records.masters.get(log_id, [])
            self.logs[kind, log_id] = SeenLog(origin_of(self.name, kind, log_id), self.keys, records)
        return self.logs[kind, log_id]

    def judge(self, answer):
        if answer["status"] != 200:
            raise Refusal("status", f"{answer['status']} {answer['body']}")
        ask = answer["ask"]
        log = self.log(ask["log"], ask["id"])
        judge, form = {
            "checkpoint": (self.checkpoint, CHECKPOINT),
            "inclusion": (self.inclusion, INCLUSION),
            "consistency": (self.consistency, CONSISTENCY),
        }[ask["kind"]]
        judge(log, ask, parse_as(form, answer["body"]))

    def checkpoint(self, log, ask, body):
        checkpoint = log.checkpoint(body["checkpoint"])
        root = body["checkpoint"].split("\n")[2]
        same(body, origin=log.origin, size=checkpoint.size, root_hash=root)
        log.take(checkpoint, ask["size"], ask["least"])

    def inclusion(self, log, ask, body):
        index = ask["index"]
        if index is None:
            event = self.records.by_id[ask["event_id"]]
            index = event["master_seq" if ask["log"] == "masters" else "seq"]
        checkpoint = log.inclusion(body["proof"], index, log.records[index])
        same(body, origin=log.origin, index=index, size=checkpoint.size)
        if ask["log"] == "ledgers" and body.get("prev_hash") != (log.records[index - 1].hex() if index else ""):
            raise Refusal("wrong_prev_hash", f"at index {index}")
        log.take(checkpoint, ask["size"], ask["least"])

    def consistency(self, log, ask, body):
        older, newer = log.checkpoint(body["checkpoint_from"]), log.checkpoint(body["checkpoint_to"])
        same(body, **{"origin": log.origin, "from": older.size, "to": newer.size})
        check_consistency(older, newer, [from_base64(line, 32) for line in body["hashes"]])
        log.take(older, ask["from"])
        log.take(newer, ask["to"], ask["least"])
