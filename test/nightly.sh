#!/usr/bin/env bash
# `npm run test:nightly`: runs every part, whatever became of those before it. Names those that failed, and exits with 1
# if any did. What a suite lacks fails it: a suite that is skipped shows nothing.
failed=()
run() { "$@" || failed+=("$*"); }
trap 'exit 130' INT TERM
on_cluster=(
  none 'silent internal connections'
  pipelining 'pipelining of events' 'pipelining of entities' 'unread answers'
  'grpc reflection' 'grpc unfinished' 'grpc unfinished with keys' 'grpc untaken' 'grpc details'
  'reads filtered' 'reads verified' 'reads abandoned' 'reads large'
)

run env TEST_NIGHTLY=1 REQUIRE_BACKENDS=1 vitest run
run npm run test:cluster-api
run npm run test:docker
run npm run test:generators
run npm run test:schemathesis
run npm run soak -- --rest-s 60
run npm run soak -- --heap-mib 256 --p99-ms 1000
run npm run soak -- --tls --minutes 2
run npm run soak -- --tls --minutes 2 --heap-mib 256 --rest-s 5
run npm run soak -- --cluster --minutes 5 --appends 50 "${on_cluster[@]/#/--attack=}"
run npm run campaign -- --faults 60 --acknowledged 30000

((${#failed[@]} == 0)) && exit 0
echo "Failed: ${#failed[@]} of the nightly run's commands."
printf '  %s\n' "${failed[@]}"
exit 1
