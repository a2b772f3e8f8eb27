#!/usr/bin/env bash
# Checks a running service by programs that share no code with it.
#
#   conformance/live.sh URL          makes a ledger there (EVENTS, 700 if not set) and checks all proofs of it
#   conformance/live.sh --self-test  checks the vectors, a stub's honest answers, and that each forged answer is refused
#
# Needs Go and Python 3.12, and network to fetch the libraries once. Ends with "N passed, N failed".
# Exit code: 0 all passed, 1 some failed, 2 no result, 3 a toolchain is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

usage() { sed -n '4,5s/^# *//p' live.sh >&2; exit 64; }
(($# == 1)) || usage
case $1 in --self-test | http://* | https://*) ;; *) usage ;; esac

# torchwood needs this version. Go 1.21 and newer fetch it.
export GOTOOLCHAIN=go1.27.3
export GOFLAGS='-mod=readonly -buildvcs=false'

missing() { echo "conformance: not run: there is no $1 here"; exit 3; }
python=
for candidate in python3.12 "$HOME"/.pyenv/versions/3.12.*/bin/python3.12 python3; do
  "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && python=$candidate && break
done
[[ $python ]] || missing 'Python 3.12'
command -v go >/dev/null || missing Go
[[ $(go env GOVERSION 2>/dev/null) == "$GOTOOLCHAIN"* ]] || missing "$GOTOOLCHAIN"

cache=$PWD/.cache
installed=$cache/python/requirements.txt
# Two runs at a time would install over each other.
mkdir -p "$cache"
exec 8>"$cache/lock"
! command -v flock >/dev/null || flock 8
if ! cmp -s python/requirements.txt "$installed"; then
  rm -rf "$cache/python"
  "$python" -m venv "$cache/python"
  "$cache/python/bin/python" -m pip install --quiet --disable-pip-version-check -r python/requirements.txt
  cp python/requirements.txt "$installed"
fi
(cd go && go build -o "$cache/go/" ./verify ./stub)
exec 8>&-
py() { "$cache/python/bin/python" -B "$@"; }
go_verify() { "$cache/go/verify" "$@"; }
py_verify() { py python/verify.py "$@"; }

work=$(mktemp -d)
stub_pid=
trap 'rm -rf "$work"; [[ ! $stub_pid ]] || kill "$stub_pid" 2>/dev/null || true' EXIT
passed=0
failed=0

# Counts what a verifier printed in its last line.
count() {
  local p f
  read -r p f < <(sed -n 's/^[a-z]*: \([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$1") || { cat "$1"; exit 2; }
  passed=$((passed + p)) failed=$((failed + f))
}

# Runs both verifiers, shows what they print, and counts it.
both() {
  for verifier in go_verify py_verify; do
    "$verifier" "$@" >"$work/out" 2>&1 || true
    sed '/^file: /d; s/^\(.\{400\}\).*/\1 …/' "$work/out"
    count "$work/out"
  done
}

self_check() {
  if "${@:2}"; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "failed: $1"; fi
}

# Each refusal as "file path code", in order.
refusals() {
  awk -F': ' '/^file: / { n = split($2, parts, "/"); file = parts[n] }
    /^refused / { print file, substr($1, 9), $2 }' | sort
}

# Each kind of forged answer, and the codes of all refusals that must follow from it.
forgeries='
relabelled-note             wrong_origin
upper-case-id               wrong_origin
other-service               wrong_origin
unlisted-key                unknown_log_key
identity-key                unknown_log_key,weak_key
mixed-order-key             weak_key
bad-endorsement             bad_endorsement
identity-r                  weak_signature
bad-signature               bad_signature
extension-line              malformed
leading-zero                malformed
loose-base64                malformed
extra-line                  malformed
other-format                malformed
empty-signature             malformed
left-over-hash-inclusion    bad_proof
missing-hash-inclusion      bad_proof
left-over-hash-consistency  bad_proof
missing-hash-consistency    bad_proof
other-index                 wrong_index
other-size                  wrong_size
smaller-size                checkpoint_behind
contradiction               checkpoints_contradict
rewritten-log               checkpoints_contradict,wrong_root
other-root-member           wrong_member
other-prev-hash             wrong_prev_hash
other-event                 wrong_record
other-case-event            wrong_record
other-case-member           malformed
other-integer               malformed,wrong_record
other-exponent              malformed,wrong_record
other-fraction              malformed,wrong_record
underflow                   malformed,wrong_record
half-pair                   malformed,wrong_record
absent-index                malformed
absent-keys                 malformed
absent-previous             malformed
absent-actor-sig            malformed,wrong_record
absent-hashes               malformed
null-hashes                 malformed
null-size                   malformed
fraction-index              malformed
fraction-seq                malformed,wrong_record
exponent-size               malformed
negative-zero               malformed,wrong_record
'

# Recordings in which nothing of a proof method was judged: a pattern of the lines that are kept.
unjudged='
empty                       ^$
authority-alone             "kind": "authority"
events-alone                "kind": "events"
no-proofs                   "kind": "(authority|events)"
no-events                   "kind": "(authority|checkpoint|inclusion|consistency)"
'

self_test() {
  both vectors vectors
  # The stub ends when the pipe to it is closed.
  mkfifo "$work/stub"
  "$cache/go/stub" <"$work/stub" >"$work/url" &
  stub_pid=$!
  exec 9>"$work/stub"
  until [[ -s $work/url ]]; do kill -0 "$stub_pid" && sleep 0.05; done
  local url kind expected found
  url=$(<"$work/url")
  py python/record.py 20 "$url" "$work/honest"
  both answers "$work/honest"
  # All kinds in one process each: most of the time would go into starting Python.
  local recordings=() files=()
  mkdir "$work/forged"
  while read -r kind expected; do
    recordings+=("$url/forge/$kind" "$work/forged/$kind") files+=("$work/forged/$kind")
  done < <(grep . <<<"$forgeries")
  py python/record.py 5 "${recordings[@]}"
  for verifier in go py; do
    ("${verifier}_verify" answers "${files[@]}" 2>&1 || true) | refusals >"$work/$verifier"
  done
  while read -r kind expected; do
    for verifier in go py; do
      found=$(sed -n "s/^$kind .* //p" "$work/$verifier" | sort -u | paste -sd, -)
      self_check "$kind by $verifier: $found instead of $expected" [ "$found" = "$expected" ]
    done
    self_check "$kind: the two programs refuse different answers" \
      cmp -s <(grep "^$kind " "$work/go") <(grep "^$kind " "$work/py")
  done < <(grep . <<<"$forgeries")
  while read -r kind kept; do
    grep -E "^\{\"ask\": \{$kept" "$work/honest" >"$work/$kind" || true
    for verifier in go py; do
      if "${verifier}_verify" answers "$work/$kind" >"$work/out" 2>&1; then found=0; else found=$?; fi
      self_check "a recording of $kind by $verifier ends with $found" [ "$found" = 1 ]
      self_check "a recording of $kind by $verifier: nothing is malformed" grep -q '^refused .*: malformed' "$work/out"
    done
  done < <(grep . <<<"$unjudged")
}

if [[ $1 == --self-test ]]; then
  self_test
else
  py python/record.py "${EVENTS:-700}" "$1" "$work/answers"
  both answers "$work/answers"
fi
echo "$passed passed, $failed failed"
((failed == 0 && passed > 0))
