module ledger-trust/conformance

go 1.27.0

require (
	filippo.io/edwards25519 v1.2.0
	filippo.io/torchwood v0.10.0
	github.com/gowebpki/jcs v1.0.2
	github.com/transparency-dev/merkle v0.0.2
	golang.org/x/mod v0.43.0
)

require (
	golang.org/x/crypto v0.56.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
)
