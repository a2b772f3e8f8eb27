"""Section 3: up to where the service signed the order. Checkpoints are those of docs/proofs.md."""
import base64, re

from formulas import from_base64, sha256, verifies

SIGNATURE = "\u2014 ([^\\s+]+) ([A-Za-z0-9+/]+={0,2})\n"


class Refused(Exception):
    """The service did not sign this, or not of this log."""


def root(leaves):
    if len(leaves) == 1:
        return leaves[0]
    k = 1 << (len(leaves) - 1).bit_length() - 1
    return sha256(b"\1" + root(leaves[:k]) + root(leaves[k:]))

def log_keys(authority, log, newer):
    """The log keys that the authority endorsed. In development mode it endorses none, and all that it lists are taken."""
    is_development = authority["phase"] == "1"
    for one in [*log["keys"], *([] if is_development else newer)]:
        key, sig = from_base64(one["public_key"], 32), (one.get("endorsement") or {"sig": ""})["sig"]
        digest = sha256(b"svc-log-key-v1\0" + log["origin"].encode() + b"\0" + key)
        if is_development or any(verifies(by["public_key"], sig, digest) for by in authority["keys"]):
            yield key

def form(note):
    """Origin, size and root that a note states, its text and its signatures. Nothing is verified."""
    text, _, signed = note.partition("\n\n")
    stated = re.fullmatch("([^\n]+)\n([1-9][0-9]{0,15})\n([^\n]+)", text)
    is_short = len(note.encode("utf-16-le")) <= 2 * 131_072 and signed.count("\n") <= 100
    if not stated or not is_short or not re.fullmatch(f"(?:{SIGNATURE})+", signed) or re.search("[\0-\t\v-\x1f]", note):
        raise ValueError("no checkpoint")
    if int(stated[2]) >= 2**53 or any(len(from_base64(blob)) <= 4 for _, blob in re.findall(SIGNATURE, signed)):
        raise ValueError("no checkpoint")
    return stated[1], int(stated[2]), from_base64(stated[3], 32), text, signed

def read(note, log_name, authorities):
    """The size and the root that a verified note states. `log_name`: what follows the name of the service.
    `authorities`: the trust anchor that is trusted, and the one in the file, which may list newer log keys."""
    authority, in_file = authorities
    origin, size, stated_root, text, signed = form(note)
    names = [authority["log"], *authority["log"]["previous"]]
    log = next((one for one in names if origin == f"{one['origin']}/{log_name}"), None)
    if log is None:
        raise Refused("another log")
    newer = in_file.get("log") or {"origin": "", "keys": []}
    newer = newer["keys"] if newer["origin"] == log["origin"] else []
    ids = {sha256(f"{origin}\n\1".encode() + key)[:4]: key for key in log_keys(authority, log, newer)}
    blobs = [base64.b64decode(blob) for name, blob in re.findall(SIGNATURE, signed) if name == origin]
    known = [(ids[blob[:4]], blob[4:]) for blob in blobs if blob[:4] in ids]
    message = f"{text}\n".encode()
    if not known or not all(verifies(*(base64.b64encode(one).decode() for one in pair), message) for pair in known):
        raise Refused("no signature of an endorsed key")
    return size, stated_root

def look(note, is_master, log_id, authorities, events):
    """The finding, or None, and the events behind those that the checkpoint covers. None: it covers none."""
    size, stated_root = read(note, f"{'masters' if is_master else 'ledgers'}/{log_id}", authorities)
    place, record = ("master_seq", "content_hash") if is_master else ("seq", "hash")
    covered = [e for e in events if e[place] is not None and e[place] < size]
    has_gap = any(e[place] != index for index, e in enumerate(covered))
    if len(covered) == size and not has_gap:
        leaves = [sha256(b"\0" + bytes.fromhex(e[record])) for e in covered]
        if root(leaves) == stated_root:
            return None, events[size:]
    is_longer = len(covered) < size and not has_gap and len(covered) == len(events)
    return "shorter_than_checkpoint" if is_longer else "wrong_checkpoint", None
