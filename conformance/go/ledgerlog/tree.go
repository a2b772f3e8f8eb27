package ledgerlog

import "golang.org/x/mod/sumdb/tlog"

// Tree holds all hashes of a tree in memory, in the order of tlog.StoredHashes.
type Tree struct {
	hashes []tlog.Hash
	size   int64
}

// ReadHashes is how the functions of tlog read a tree.
func (tree *Tree) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		hashes[i] = tree.hashes[index]
	}
	return hashes, nil
}

// Append adds a record.
func (tree *Tree) Append(record []byte) {
	hashes, err := tlog.StoredHashes(tree.size, record, tree)
	if err != nil {
		panic(err)
	}
	tree.hashes = append(tree.hashes, hashes...)
	tree.size++
}

// Size returns the number of records.
func (tree *Tree) Size() int64 { return tree.size }

// Root returns the root of the first size records.
func (tree *Tree) Root(size int64) tlog.Hash {
	root, err := tlog.TreeHash(size, tree)
	if err != nil {
		panic(err)
	}
	return root
}
