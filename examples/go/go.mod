module example.com/ledger-trust-walk

go 1.24

require github.com/gowebpki/jcs v1.0.2
