"""Whether an event had a right to be there, and is what the service writes (docs/verifying.md, sections 1 and 6)."""
import math, re

from formulas import canonical, time_of

# By the type of the ledger what GENESIS has, and what it may have.
OF_GENESIS = {"ORDER": ("buyer_actor_id supplier_actor_id", "buyer_organization_id supplier_organization_id"),
              "FACILITY_ROOT": ("primary_actor_id organization_id", ""),
              "ENTITY_ROOT": ("primary_actor_id counterparty_actor_id entity_id", ""),
              "ENGAGEMENT": ("primary_actor_id counterparty_actor_id purpose", "entity_id")}
ACTOR_TYPES = ("human", "service", "external", "device")
PARTIES = "buyer_actor_id supplier_actor_id primary_actor_id counterparty_actor_id".split()
NAMES = "traceledger_master_uuid business_ref scope buyer_actor_id supplier_actor_id".split()
OBJECTS = {"SUPPLIER": "organization_id", "LEDGER": "ledger_id", "MASTER": "traceledger_master_id"}
WRITERS = {"OWNER", "OPS", "AGENT", "FINANCE"}
NONE, READ, WRITE, OWNER, PARTY = range(5)
DELEGATES_MAX = 1000
UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
OPENINGS, CLOSINGS = ("ORDER_OPENED", "ORGANIZATION_REGISTERED"), ("MASTER_CLOSED", "LEDGER_CLOSED")
SERVICE_TYPES = ("GENESIS|ORDER_OPENED|ORGANIZATION_REGISTERED|TRACELEDGER_MASTER_CREATED|(LEDGER|MASTER)_CLOSED|"
                 "(SUPPLIER|LEDGER|MASTER)_DELEGATION_(GRANTED|REVOKED)")
OF_LEDGER = "GENESIS|ORDER_OPENED|ORGANIZATION_REGISTERED|LEDGER_CLOSED|(SUPPLIER|LEDGER)_DELEGATION_(GRANTED|REVOKED)"


def delegation(e):
    """(object, GRANTED or REVOKED), (None, None) for other events."""
    match = re.fullmatch("(SUPPLIER|LEDGER|MASTER)_DELEGATION_(GRANTED|REVOKED)", e["event_type"])
    return (OBJECTS[match[1]], match[2]) if match else (None, None)

def holds(grant, at):
    return "expires_at" not in grant or time_of(str(grant["expires_at"])) > time_of(at)

def is_room(grants, delegate, at):
    """Whether fewer than 1,000 other delegates of the object hold a grant."""
    return len(grants) < DELEGATES_MAX or sum(
        holds(grant, at) for one, grant in grants.items() if one != delegate) < DELEGATES_MAX

def forget(grants, at):
    """Of the grants of an object, by delegate, at most 1,000 are kept: those that ran out first are forgotten."""
    if len(grants) <= DELEGATES_MAX:
        return
    ran_out = [one for one, grant in grants.items() if not holds(grant, at)]
    ran_out.sort(key=lambda one: (time_of(str(grants[one]["expires_at"])), str(grants[one].get("link_id"))))
    for one in ran_out[:len(grants) - DELEGATES_MAX]:
        del grants[one]

def is_id(value):
    return isinstance(value, str) and bool(re.fullmatch(UUID, value))

def is_name(value):
    return isinstance(value, str) and bool(re.fullmatch("[^\0-\x1f\x7f-\x9f]{1,256}", value))

def is_label(value):
    return isinstance(value, str) and bool(re.fullmatch("[A-Za-z][A-Za-z0-9 _-]{0,63}", value))

def is_hand(one):
    """An item of a delivery chain."""
    return (isinstance(one, dict) and one.keys() == {"actor_id", "actor_type", "role"}
            and is_id(one["actor_id"]) and one["actor_type"] in ACTOR_TYPES and is_label(one["role"]))

def is_genesis(p):
    required, optional = OF_GENESIS.get(str(p.get("ledger_type")), ("none", ""))
    required, names = set(required.split()), p.keys() - {"ledger_type"}
    return (required <= names <= required | set(optional.split())
            and all(is_label(p[name]) if name == "purpose" else is_id(p[name]) for name in names))

def is_grant(p, name):
    """Whether the members of a grant have their forms. `name`: that of its object."""
    ids, permissions = {name, "delegate_actor_id", "link_id"}, p.get("permissions")
    others = {"role", "permissions", "expires_at", "access", "granted_at", "replaces_link_id"}
    return (ids | {"role", "permissions"} <= p.keys() <= ids | others
            and all(is_id(p[one]) for one in ids | p.keys() & {"replaces_link_id"})
            and is_label(p["role"]) and isinstance(permissions, dict)
            and permissions.get("access", "read") in ("read", "write")
            and ("access" not in p or (permissions, p["role"]) == ({"access": p["access"]}, "ACCESS"))
            and ("expires_at" not in p or not math.isnan(time_of(str(p["expires_at"])))))

def is_named(e, names, is_created):
    """Whether an event has the names of its master, and a delivery chain as the service writes it. `is_created`: the
    beginning of the master is at hand."""
    payload, (_, change) = e["payload"], delegation(e)
    if e["master_id"] is None or change:
        return True
    if any(name in payload and canonical(payload[name]) != canonical(value)
           for name, value in names.items() if value is not None):
        return False
    if e["event_type"] in ("TRACELEDGER_MASTER_CREATED", "MASTER_CLOSED"):
        return True
    chain = payload.get("delivery_chain", [])
    is_chain = isinstance(chain, list) and len(chain) <= 16 and all(map(is_hand, chain))
    return is_chain and (not is_created or all(name in payload for name in NAMES[1:3]))

def signed_faults(e, names):
    """Whether the payload holds what was not signed, or the other way round. `names`: those that the service adds."""
    payload, signed, kind = e["payload"], e["actor_sig_payload"], e["event_type"]
    if signed is None:
        return False
    _, change = delegation(e)
    added = {"TRACELEDGER_MASTER_CREATED": [one for one in names if one not in NAMES[1:3]], "MASTER_CLOSED": [],
             "LEDGER_CLOSED": ["requestor_sig", "requestor_signing_key_id"]}.get(kind, [*names, "delivery_chain"])
    if change == "REVOKED":
        added = ["link_id", "revoked_at"]
    if change == "GRANTED":
        access = {"access": signed["access"]} if "access" in signed else {}
        added = ["link_id", "granted_at", "replaces_link_id"] + ["role"] * bool(access)
        added += ["permissions"] * (canonical(payload.get("permissions")) == canonical(access))
    for name, value in signed.items():
        if value is None and name not in payload and kind in CLOSINGS:
            continue
        if name not in payload or canonical(payload[name]) != canonical(value):
            return True
    for name in (set(names) & payload.keys()) - signed.keys():
        is_form = is_id(payload[name]) if name.endswith("_id") else isinstance(payload[name], str)
        if names[name] is None and not is_form:
            return True
    is_callers = not change and kind not in ("TRACELEDGER_MASTER_CREATED", *CLOSINGS)
    return any(name not in signed and name not in added for name in payload) or (
        is_callers and signed.get(NAMES[0]) != e["master_id"])


class Rules:
    """The state of one ledger, and of its masters. Takes its events in order."""
    def __init__(self):
        self.genesis, self.closed, self.previous = None, False, None
        self.grants = {"organization_id": {}, "ledger_id": {}}
        self.masters, self.created, self.links = {}, {}, {}

    def take(self, e, is_whole):
        """The findings of the next event. `is_whole`: it and all events of the ledger before it are at hand."""
        names, is_created = self.names(e), e["master_id"] in self.created
        found = ["contradiction"] * (
            not is_named(e, names, is_created) or signed_faults(e, names) or self.misplaced(e))
        if e["event_type"] == "TRACELEDGER_MASTER_CREATED":
            self.created[e["master_id"]] = {name: e["payload"][name] for name in NAMES if name in e["payload"]}
        decided = self.decided(e, is_whole)
        self.apply(e, decided in ([], ["contradiction"]))
        self.previous = e["event_type"]
        return found + decided

    def decided(self, e, is_whole):
        if not self.is_form(e):
            return ["contradiction"]
        if is_whole:
            return self.refused(e) or ["contradiction"] * (not self.is_written(e))
        master, (name, change) = self.masters.get(e["master_id"]), delegation(e)
        if e["event_type"] in ("GENESIS", *OPENINGS):
            return []
        if self.is_closed(e):
            return ["closed"]
        is_other = master and master["is_whole"] and (e["master_seq"] or 0) <= master["seq"] + 1 and (
            e["event_type"] == "TRACELEDGER_MASTER_CREATED" or change and not self.is_delegation(e, name, change))
        return ["contradiction"] * bool(is_other)

    def is_form(self, e):
        """Whether the payload has the form of its type, as far as one event shows it."""
        p, (name, change) = e["payload"], delegation(e)
        if e["master_id"] is None and not re.fullmatch(OF_LEDGER, e["event_type"]):
            return False
        if e["event_type"] == "GENESIS":
            return is_genesis(p)
        if e["event_type"] == "TRACELEDGER_MASTER_CREATED":
            return isinstance(p.get("business_ref"), str) and isinstance(p.get("scope"), str)
        if change == "REVOKED":
            return is_id(p.get("link_id")) and is_id(p.get("delegate_actor_id"))
        if change != "GRANTED":
            return True
        if not is_grant(p, name) or p.get("granted_at") != e["created_at"]:
            return False
        lasting = {one: value for one, value in p.items() if one not in ("granted_at", "replaces_link_id")}
        identity = canonical([e["event_type"], lasting])
        return self.links.setdefault(p["link_id"], identity) == identity

    def is_closed(self, e):
        """Whether its ledger or its master was closed before it, and it is no revocation."""
        master, (_, change) = self.masters.get(e["master_id"]), delegation(e)
        is_masters = master and not re.fullmatch(OF_LEDGER, e["event_type"])
        return change != "REVOKED" and bool(self.closed or (is_masters and master["closed"]))

    def misplaced(self, e):
        kind, master_id, p = e["event_type"], e["master_id"], e["payload"]
        (name, change), is_ledgers = delegation(e), bool(re.fullmatch(OF_LEDGER, kind))
        named = {} if is_ledgers else {name if change else NAMES[0]: master_id}
        if name == "ledger_id" or kind in ("TRACELEDGER_MASTER_CREATED", *CLOSINGS):
            named["ledger_id"] = e["ledger_id"]
        if kind in CLOSINGS:
            named |= {"requested_by_actor_id": e["actor_id"], "status": "CLOSED"}
        return (
            (kind == "GENESIS") != (e["seq"] == 0) or (kind == "GENESIS") != (e["actor_id"] is None)
            or (master_id is None) != is_ledgers
            or (master_id is None) != (e["master_seq"] is None)
            or (master_id and (kind == "TRACELEDGER_MASTER_CREATED") != (e["master_seq"] == 0))
            or p.get("caused_by_hash") != e["caused_by_hash"]
            or any(p.get(one) != value for one, value in named.items()))

    def level(self, e, objects):
        """What its actor may do, by the parties and by the grants of these objects."""
        if e["actor_id"] is not None and e["actor_id"] in [self.genesis.get(name) for name in PARTIES]:
            return PARTY
        best = NONE
        for name, grants in objects.items():
            grant = grants.get(e["actor_id"])
            if grant is None or not holds(grant, e["created_at"]):
                continue
            permissions = grant["permissions"] if isinstance(grant.get("permissions"), dict) else {}
            access = permissions.get("access", "write" if str(grant.get("role")) in WRITERS else "read")
            is_owner = name == "ledger_id" and grant.get("role") == "OWNER"
            best = max(best, READ if access != "write" else OWNER if is_owner else WRITE)
        return best

    def refused(self, e):
        kind, master = e["event_type"], self.masters.get(e["master_id"])
        if kind == "GENESIS":
            return []
        if self.genesis is None or (e["master_id"] and not master and kind != "TRACELEDGER_MASTER_CREATED"):
            return ["contradiction"]
        name, change = delegation(e)
        needed = OWNER if change and name != "organization_id" else WRITE
        if name == "organization_id" or kind in (*OPENINGS, "LEDGER_CLOSED", "MASTER_CLOSED"):
            needed = PARTY
        objects = self.grants | ({"traceledger_master_id": master["grants"]} if master else {})
        if self.level(e, objects) < needed or (name == "organization_id" and name not in self.genesis):
            return ["not_permitted"]
        return ["closed"] * self.is_closed(e)

    def names(self, e):
        """What the service adds to the payloads of the master of an event. None: no event at hand shows the value."""
        created = self.created.get(e["master_id"], {})
        names = {"traceledger_master_uuid": e["master_id"], "business_ref": created.get("business_ref"),
                 "scope": created.get("scope")}
        if self.genesis:
            actors = {"ORDER": {one: one for one in PARTIES[:2]}, "FACILITY_ROOT": {PARTIES[1]: PARTIES[2]}}
            of_type = actors.get(str(self.genesis.get("ledger_type")), {})
            return names | {name: self.genesis.get(one) for name, one in of_type.items()}
        # The event that creates a master names the same actors as all others of it.
        is_created = e["master_id"] in self.created
        return names | {one: created.get(one) for one in PARTIES[:2] if one in created or not is_created}

    def is_written(self, e):
        """Whether the payload is what the service writes."""
        g, p, kind = self.genesis or {}, e["payload"], e["event_type"]
        names, is_root = self.names(e), g.get("ledger_type") == "FACILITY_ROOT"
        closing = {"ledger_id": e["ledger_id"], "ledger_type": g.get("ledger_type"), "status": "CLOSED",
                   "requested_by_actor_id": e["actor_id"], "supplier_actor_id": names.get("supplier_actor_id"),
                   "buyer_organization_id": g.get("buyer_organization_id"),
                   "supplier_organization_id": g.get("organization_id" if is_root else "supplier_organization_id")}
        name, change = delegation(e)
        if kind in ("GENESIS", "LEDGER_CLOSED", *OPENINGS) and e["actor_type"] != "service":
            return False
        if canonical(e["actor_sig_payload"]) == canonical(p):
            return False
        opening = {"ORDER": "ORDER_OPENED", "FACILITY_ROOT": "ORGANIZATION_REGISTERED"}.get(g.get("ledger_type"))
        if (kind in OPENINGS or self.previous == "GENESIS" and opening) and (
                self.previous, kind) != ("GENESIS", opening):
            return False
        if kind == "GENESIS":
            return is_genesis(p)
        elif kind == "ORDER_OPENED":
            expected = {one: g.get(one) for one in PARTIES[:2]}
        elif kind == "ORGANIZATION_REGISTERED":
            return p.get("organization_id") == g.get("organization_id")
        elif kind == "TRACELEDGER_MASTER_CREATED":
            expected = names | {one: p[one] for one in NAMES[1:3]} | {"ledger_id": e["ledger_id"]}
        elif kind == "MASTER_CLOSED":
            expected = closing | {"traceledger_master_uuid": e["master_id"], "entity_id": g.get("entity_id")}
        elif kind == "LEDGER_CLOSED":
            request = {one: p.get(one) for one in ("requestor_sig", "requestor_signing_key_id")}
            expected = closing | request | {"buyer_actor_id": g.get("buyer_actor_id")}
        elif change:
            return self.is_delegation(e, name, change)
        else:
            expected = p | {one: value for one, value in names.items() if one in p or one in NAMES[:3]}
            return canonical(p) == canonical(expected)
        return canonical(p) == canonical({one: value for one, value in expected.items() if value is not None})

    def is_delegation(self, e, name, change):
        """Whether a grant or its end is what the service writes in this state. Its form was checked."""
        p, at, grants = e["payload"], e["created_at"], self.grants_of(e, name)
        old = grants.get(p["delegate_actor_id"], {}).get("link_id")
        ids = {"organization_id": (self.genesis or {}).get("organization_id"), "ledger_id": e["ledger_id"]}
        object_id = ids.get(name, e["master_id"])
        if p.get(name) != object_id:
            return False
        if change == "REVOKED":
            return old == p["link_id"] and p == {name: object_id, "revoked_at": at, "link_id": old,
                                                 "delegate_actor_id": p["delegate_actor_id"]}
        return p.get("replaces_link_id") == old and holds(p, at) and is_room(grants, p["delegate_actor_id"], at)

    def grants_of(self, e, name):
        return self.masters[e["master_id"]]["grants"] if name == "traceledger_master_id" else self.grants[name]

    def apply(self, e, takes_effect):
        kind, p, master_id = e["event_type"], e["payload"], e["master_id"]
        name, change = delegation(e)
        if master_id is not None:
            self.go_on(e)
        if not takes_effect or (master_id is None and not re.fullmatch(OF_LEDGER, kind)):
            return
        if kind == "GENESIS" and e["seq"] == 0:
            self.genesis = p
        elif kind == "LEDGER_CLOSED":
            self.closed = True
        elif kind == "MASTER_CLOSED":
            self.masters[master_id]["closed"] = True
        elif change == "GRANTED":
            grants, delegate = self.grants_of(e, name), str(p.get("delegate_actor_id"))
            if is_room(grants, delegate, e["created_at"]):
                grants[delegate] = p
                forget(grants, e["created_at"])
        elif change == "REVOKED":
            self.grants_of(e, name).pop(str(p.get("delegate_actor_id")), None)

    def go_on(self, e):
        """Notes that a master exists, whether or not it was permitted, and whether no event of it is missing."""
        known, seq = self.masters.get(e["master_id"]), e["master_seq"] or 0.0
        is_whole = seq == 0 and e["event_type"] == "TRACELEDGER_MASTER_CREATED"
        if known:
            is_whole = known["is_whole"] and seq == known["seq"] + 1
        state = known or {"closed": False, "grants": {}}
        self.masters[e["master_id"]] = state | {"seq": seq, "is_whole": is_whole}
