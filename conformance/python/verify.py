"""Checks the vectors of the kit, or a recording of a service's answers.

python verify.py vectors FOLDER
python verify.py answers FILE [FILE …]
"""

import hashlib
import json
import pathlib
import sys

from aics_tlog import MerkleTree, leaf_hash, node_hash, verify_consistency, verify_inclusion
from aics_tlog.note import format_vkey
from aics_tlog.tiles import materialise_tiles

import ledgerlog
from ledgerlog import Checks, Log, Refusal, check_consistency, check_key, check_name, check_signature


class Report:
    """Counts checks, and prints each that failed."""

    def __init__(self):
        self.passed = self.failed = 0

    def take(self, what, check):
        try:
            check()
        except (Refusal, LookupError, TypeError, AttributeError) as error:
            # Python finds a member that is missing, or of another type, only when it uses it.
            refusal = error if isinstance(error, Refusal) else Refusal("malformed", f"{type(error).__name__} {error}")
            self.failed += 1
            print(f"refused {what}: {refusal}")
        else:
            self.passed += 1

    def holds(self, holds, what):
        self.passed, self.failed = self.passed + bool(holds), self.failed + (not holds)
        if not holds:
            print(f"refused {what}: vector: does not hold")


def accepts(check, *values):
    try:
        return check(*values) or True
    except Refusal:
        return False


def unhex(texts):
    return [bytes.fromhex(text) for text in texts]


def ed25519_vectors(file, report):
    for vector in file["vectors"]:
        key, message, signature = unhex(vector[name] for name in ("public_key_hex", "message_hex", "signature_hex"))
        is_accepted = accepts(check_key, key)
        report.holds(is_accepted == vector["key_accepted"], f"key: {vector['what']}")
        is_valid = is_accepted and accepts(check_signature, key, message, signature)
        report.holds(is_valid == vector["valid"], f"signature: {vector['what']}")


def proof_vectors(leaves, tree, vectors, report):
    """Verifies each proof, and makes it anew: the bytes of a proof are fixed."""
    for vector in vectors["inclusion"]:
        index, size, proof = vector["index"], vector["size"], unhex(vector["proof_hex"])
        is_right = verify_inclusion(leaf_hash(leaves[index]), index, size, proof, tree.root(size))
        report.holds(is_right and tree.inclusion_proof(index, size) == proof, f"inclusion of {index} in {size}")
    for vector in vectors["consistency"]:
        older, newer, proof = vector["from"], vector["to"], unhex(vector["proof_hex"])
        is_right = verify_consistency(older, newer, tree.root(older), tree.root(newer), proof)
        report.holds(is_right and tree.consistency_proof(older, newer) == proof, f"consistency of {older} and {newer}")


def merkle_vectors(file, report):
    leaves = unhex(file["small"]["leaves_hex"])
    tree = MerkleTree(leaves)
    for size, root in enumerate(file["small"]["roots_hex_by_size"]):
        report.holds(tree.root(size).hex() == root, f"root of {size} leaves")
    proof_vectors(leaves, tree, file["small"], report)

    big = file["big"]
    leaves = [hashlib.sha256(b"svc-test-leaf\x00" + i.to_bytes(8, "big")).digest() for i in range(big["size"])]
    tree = MerkleTree(leaves)
    for size, root in big["roots_hex"].items():
        report.holds(tree.root(int(size)).hex() == root, f"root of {size} leaves")
    for size, edge in big["edges_hex"].items():
        *left, root = unhex(edge)
        for subtree in reversed(left):
            root = node_hash(subtree, root)
        is_whole = len(edge) == int(size).bit_count() and root.hex() == big["roots_hex"][size]
        report.holds(is_whole, f"edge of {size} leaves")
    proof_vectors(leaves, tree, big, report)
    tiles = materialise_tiles(leaves)
    for tile in big["tiles"]:
        data = tiles.get(tile["path"], b"")
        is_same = len(data) == tile["bytes"] and hashlib.sha256(data).hexdigest() == tile["sha256_hex"]
        report.holds(is_same, tile["path"])


def log_vectors(file, report):
    key = ledgerlog.from_base64(file["log_key"]["public_key_base64"], 32)
    for vector in [file["ledger"], *file["masters"]]:
        log, leaves, found = Log(vector["origin"], [key]), unhex(vector["leaf_data_hex"]), {}
        tree = MerkleTree(leaves)
        report.holds(format_vkey(log.vkeys[0]) == vector["vkey"], f"vkey of {log.origin}")
        for expected in vector["checkpoints"]:
            size, root = expected["size"], bytes.fromhex(expected["root_hex"])
            found[size] = accepts(log.checkpoint, expected["note"])
            is_right = found[size] == ledgerlog.Checkpoint(size, root) and root == tree.root(size)
            report.holds(is_right, f"checkpoint {size} of {log.origin}")
        for expected in vector.get("consistency", []):
            older, newer, proof = expected["from"], expected["to"], unhex(expected["proof_hex"])
            is_right = accepts(check_consistency, found[older], found[newer], proof)
            is_same = tree.consistency_proof(older, newer) == proof
            report.holds(is_right and is_same, f"consistency of {older} and {newer} of {log.origin}")
        for index, leaf in enumerate(leaves):
            own = accepts(log.inclusion, vector["proofs_at_own_place"][index], index, leaf)
            report.holds(own and own.size == index + 1, f"{index} of {log.origin} at its own place")
            whole = accepts(log.inclusion, vector["proofs_in_whole"][index], index, leaf)
            report.holds(whole and whole.size == len(leaves), f"{index} of {log.origin} in the whole")
    for vector in file["refused"]:
        record = bytes.fromhex(vector["record_hex"])
        is_taken = accepts(lambda v: Log(v["origin"], [key]).inclusion(v["proof"], v["index"], record), vector)
        report.holds(not is_taken, f"refused: {vector['what']}")
    for name in file["origins"]["good"]:
        report.holds(accepts(check_name, name), f"name {name!r}")
    for name in file["origins"]["bad"]:
        report.holds(not accepts(check_name, name), f"no name {name!r}")
    endorsement = file["endorsement"]
    signer, signature = (ledgerlog.from_base64(endorsement[name]) for name in ("public_key_base64", "sig"))
    digest = ledgerlog.endorsement_digest(file["origins"]["good"][0], key)
    is_signed = accepts(check_key, signer) and accepts(check_signature, signer, digest, signature)
    report.holds(is_signed and digest.hex() == endorsement["digest_hex"], "endorsement")


def vectors(folder, report):
    files = {"ed25519": ed25519_vectors, "merkle": merkle_vectors, "logs": log_vectors}
    for name, check in files.items():
        check(json.loads(pathlib.Path(folder, f"{name}.json").read_text("utf-8")), report)


def refuse_recording():
    raise Refusal("malformed", "it lacks the trust anchor, the events or all proofs")


def answers(path, report):
    checks, pages, ledger_id, asked, is_named = Checks(), [], "", [], False
    for line in pathlib.Path(path).read_bytes().splitlines():
        answer = json.loads(line)
        match answer["ask"]["kind"]:
            case "authority":
                is_named = True
                report.take(answer["path"], lambda: checks.trust_anchor(answer["body"]))
            case "events":
                ledger_id = answer["ask"]["id"]
                pages.append(answer["body"])
            case _:
                asked.append(answer)
    if not (is_named and pages and asked):
        report.take("the recording", refuse_recording)
    report.take(f"the events of ledger {ledger_id}", lambda: checks.events(ledger_id, pages))
    for answer in asked:
        report.take(answer["path"], lambda: checks.judge(answer))
    print(f"service {checks.name}, log keys: {len(checks.keys)}, answers: {len(asked)}")


def main():
    commands = {"vectors": vectors, "answers": answers}
    if len(sys.argv) < 3 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    report = Report()
    for path in sys.argv[2:]:
        print(f"file: {path}")
        commands[sys.argv[1]](path, report)
    print(f"python: {report.passed} passed, {report.failed} failed")
    sys.exit(1 if report.failed or not report.passed else 0)


main()
