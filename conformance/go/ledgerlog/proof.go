package ledgerlog

import (
	"strings"

	"filippo.io/torchwood"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/tlog"
)

// Inclusion verifies a proof file: that the record stands at the index that the reader expects. It returns the
// checkpoint that the file holds.
func (log *Log) Inclusion(file string, index int64, record []byte) (Checkpoint, error) {
	none := Checkpoint{}
	header, signed, found := strings.Cut(file, "\n\n")
	lines := strings.Split(header, "\n")
	if !found || len(lines) < 2 || lines[0] != "c2sp.org/tlog-proof@v1" {
		return none, refuse("malformed", "not a proof file")
	}
	// No line "extra": nothing authenticates it.
	stated, isIndex := strings.CutPrefix(lines[1], "index ")
	if !isIndex {
		return none, refuse("malformed", "%q instead of the index", lines[1])
	}
	number, err := Decimal(stated)
	if err != nil {
		return none, err
	}
	if number != index {
		return none, refuse("wrong_index", "%d instead of %d", number, index)
	}
	hashes, err := hashesOf(lines[2:])
	if err != nil {
		return none, err
	}
	checkpoint, err := log.Checkpoint(signed)
	if err != nil {
		return none, err
	}
	if index >= checkpoint.Size {
		return none, refuse("bad_proof", "index %d in a tree of size %d", index, checkpoint.Size)
	}
	leaf := tlog.RecordHash(record)
	// Both refuse a hash too many.
	if err := proof.VerifyInclusion(rfc6962.DefaultHasher, uint64(index), uint64(checkpoint.Size), leaf[:], hashes,
		checkpoint.Root[:]); err != nil {
		return none, refuse("bad_proof", "%v", err)
	}
	if err := torchwood.VerifyProof(log.policy, leaf, []byte(file)); err != nil {
		return none, refuse("bad_proof", "%v", err)
	}
	return checkpoint, nil
}

// Consistency verifies that the tree of the older checkpoint is a prefix of the newer one.
func Consistency(from, to Checkpoint, hashes [][]byte) error {
	if from.Size > to.Size {
		return refuse("bad_proof", "from %d to %d", from.Size, to.Size)
	}
	if err := proof.VerifyConsistency(rfc6962.DefaultHasher, uint64(from.Size), uint64(to.Size), hashes,
		from.Root[:], to.Root[:]); err != nil {
		return refuse("bad_proof", "%v", err)
	}
	var tree tlog.TreeProof
	for _, hash := range hashes {
		tree = append(tree, tlog.Hash(hash))
	}
	if err := tlog.CheckTree(tree, to.Size, to.Root, from.Size, from.Root); err != nil {
		return refuse("bad_proof", "%v", err)
	}
	return nil
}

func hashesOf(lines []string) ([][]byte, error) {
	var hashes [][]byte
	for _, line := range lines {
		hash, err := fromBase64(line, tlog.HashSize)
		if err != nil {
			return nil, err
		}
		hashes = append(hashes, hash)
	}
	return hashes, nil
}
