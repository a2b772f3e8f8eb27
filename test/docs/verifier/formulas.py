"""What the formulas of docs/verifying.md are made of: canonical JSON (RFC 8785), base64, times, Ed25519 (section 7)."""
import base64, hashlib, json, math, re
from datetime import date
from decimal import Decimal

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def number(token):
    value, mantissa = float(token), re.split("[eE]", token)[0]
    if not math.isfinite(value) or (value == 0 and re.search("[1-9]", mantissa)):
        raise ValueError(f"{token} is no double")
    if value != 0:
        _, digits, exponent = Decimal(token).as_tuple()
        short = "".join(map(str, digits)).rstrip("0")
        is_fraction = exponent + len(digits) - len(short) < 0
        if Decimal(token) != Decimal(repr(value)) and not (is_fraction and len(short) <= 17):
            raise ValueError(f"{token} would become {value}")
    return value

def number_text(value):
    if value == 0:
        return "0"
    _, digits, exponent = Decimal(repr(abs(value))).normalize().as_tuple()
    digits, n = "".join(map(str, digits)), len(digits) + exponent
    if len(digits) <= n <= 21:
        text = digits + "0" * (n - len(digits))
    elif 0 < n <= 21:
        text = f"{digits[:n]}.{digits[n:]}"
    elif -6 < n <= 0:
        text = f"0.{'0' * -n}{digits}"
    else:
        text = digits[0] + ("." + digits[1:] if digits[1:] else "") + f"e{n - 1:+d}"
    return "-" + text if value < 0 else text

def canonical(value):
    if isinstance(value, dict):
        members = sorted(value.items(), key=lambda member: member[0].encode("utf-16-be"))
        return "{" + ",".join(f"{canonical(name)}:{canonical(member)}" for name, member in members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    return number_text(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)

def jcs(value):
    return canonical(value).encode()

def sha256(data):
    return hashlib.sha256(data).digest()

def members_of(pairs):
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a name is given twice")
    return dict(pairs)

def depth(value):
    items = value.values() if isinstance(value, dict) else value
    return 1 + max(map(depth, items), default=0) if isinstance(value, (dict, list)) else 0

def parse(text):
    hooks = {"parse_int": number, "parse_float": number, "parse_constant": number, "object_pairs_hook": members_of}
    value = json.loads(text, **hooks)
    if depth(value) > 128:
        raise ValueError("nested too deeply")
    jcs(value)  # raises for half a surrogate pair, which json.loads takes
    return value

def from_base64(text, length=None):
    data = base64.b64decode(text, validate=True)
    if len(data) != (length or len(data)) or base64.b64encode(data).decode() != text:
        raise ValueError("not base64 of this length")
    return data


# Section 7: Ed25519
P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P

def add(a, b):
    (x1, y1), (x2, y2) = a, b
    t = D * x1 * x2 * y1 * y2
    return (x1 * y2 + x2 * y1) * pow(1 + t, -1, P) % P, (y1 * y2 + x1 * x2) * pow(1 - t, -1, P) % P

def has_prime_order(key):
    y = int.from_bytes(key, "little") & (1 << 255) - 1
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if y >= P or (x * x - square) % P or (x == 0 and key[31] >> 7):
        return False
    point, result, n = (x if x % 2 == key[31] >> 7 else P - x, y), (0, 1), L
    is_identity = point == result
    while n:
        result, point, n = add(result, point) if n & 1 else result, add(point, point), n >> 1
    return result == (0, 1) and not is_identity

def verifies(public_key, signature, digest, known={}):
    try:
        key, signature = from_base64(public_key, 32), from_base64(signature, 64)
        if not known.setdefault(key, has_prime_order(key) if key not in known else None):
            return False
        if signature[:32] == b"\x01" + bytes(31):
            return False
        Ed25519PublicKey.from_public_bytes(key).verify(signature, digest)
        return True
    except (ValueError, InvalidSignature):
        return False


RFC_3339 = (r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]|60)(?:\.([0-9]+))?"
            r"(?:[Zz]|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))")
# Days of 400 years, after which the calendar repeats; `date` knows no year 0.
CYCLE_DAYS, MINUTE_MS, DAY_MS = 146097, 60_000, 86_400_000

def days_of(year, month, day):
    return date(year, month, day).toordinal() if year else date(400, month, day).toordinal() - CYCLE_DAYS

FIRST_MS, LAST_MS = days_of(0, 1, 1) * DAY_MS, (days_of(9999, 12, 31) + 1) * DAY_MS

def time_of(text, shift_s=0):
    """Milliseconds. NaN, with which every comparison is false, for what is no time of RFC 3339."""
    match = re.fullmatch(RFC_3339, text)
    try:
        year, month, day, hour, minute, second = map(int, match.groups()[:6])
        start = days_of(year, month, day) * DAY_MS + (hour * 60 + minute) * MINUTE_MS
    except (AttributeError, ValueError):
        return math.nan
    fraction, sign, hours, minutes = match.groups()[6:]
    start -= (int(hours) * 60 + int(minutes)) * MINUTE_MS * (-1 if sign == "-" else 1) if sign else 0
    time = start + second * 1000 + int(f"{fraction or ''}000"[:3])
    if not FIRST_MS <= time < LAST_MS or (second == 60 and not ends_half_year(start + MINUTE_MS)):
        return math.nan
    return time + shift_s * 1000

def ends_half_year(next_minute):
    """Whether June or December, UTC, ends before this minute."""
    days, rest = divmod(next_minute, DAY_MS)
    next_day = date.fromordinal(days % CYCLE_DAYS + CYCLE_DAYS)
    return rest == 0 and (next_day.month, next_day.day) in ((1, 1), (7, 1))
