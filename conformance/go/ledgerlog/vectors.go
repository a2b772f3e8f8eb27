package ledgerlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"

	"filippo.io/torchwood"
	"golang.org/x/mod/sumdb/tlog"
)

type hexBytes []byte

func (data *hexBytes) UnmarshalText(text []byte) (err error) {
	*data, err = hex.DecodeString(string(text))
	return err
}

type inclusionVector struct {
	Index, Size int64
	Proof       []hexBytes `json:"proof_hex"`
}

type consistencyVector struct {
	From, To int64
	Proof    []hexBytes `json:"proof_hex"`
}

type logVector struct {
	Origin, VKey string
	Leaves       []hexBytes `json:"leaf_data_hex"`
	Checkpoints  []struct {
		Size       int64
		Root       hexBytes `json:"root_hex"`
		Text, Note string
	}
	Consistency []consistencyVector
	OwnPlace    []string `json:"proofs_at_own_place"`
	Whole       []string `json:"proofs_in_whole"`
}

// CheckVectors checks the files of ../vectors.
func CheckVectors(folder string, report *Report) error {
	for _, file := range []struct {
		name  string
		check func(data []byte, report *Report) error
	}{{"ed25519.json", ed25519Vectors}, {"merkle.json", merkleVectors}, {"logs.json", logVectors}} {
		data, err := os.ReadFile(filepath.Join(folder, file.name))
		if err != nil {
			return err
		}
		if err := file.check(data, report); err != nil {
			return fmt.Errorf("%s: %w", file.name, err)
		}
	}
	return nil
}

func (report *Report) is(holds bool, format string, args ...any) {
	var err error
	if !holds {
		err = refuse("vector", "does not hold")
	}
	report.Take(fmt.Sprintf(format, args...), err)
}

func ed25519Vectors(data []byte, report *Report) error {
	file := struct {
		Vectors []struct {
			What      string
			Key       hexBytes `json:"public_key_hex"`
			Message   hexBytes `json:"message_hex"`
			Signature hexBytes `json:"signature_hex"`
			Accepted  bool     `json:"key_accepted"`
			Valid     bool
		}
	}{}
	if err := json.Unmarshal(data, &file); err != nil {
		return err
	}
	for _, vector := range file.Vectors {
		keyAccepted := CheckKey(vector.Key) == nil
		valid := keyAccepted && CheckSignature(vector.Key, vector.Message, vector.Signature) == nil
		report.is(keyAccepted == vector.Accepted, "key: %s", vector.What)
		report.is(valid == vector.Valid, "signature: %s", vector.What)
	}
	return nil
}

func merkleVectors(data []byte, report *Report) error {
	file := struct {
		Small struct {
			Leaves      []hexBytes `json:"leaves_hex"`
			Roots       []hexBytes `json:"roots_hex_by_size"`
			Inclusion   []inclusionVector
			Consistency []consistencyVector
		}
		Big struct {
			Size        int64
			Roots       map[string]hexBytes   `json:"roots_hex"`
			Edges       map[string][]hexBytes `json:"edges_hex"`
			Inclusion   []inclusionVector
			Consistency []consistencyVector
			Tiles       []struct {
				Path  string
				Bytes int
				Sum   hexBytes `json:"sha256_hex"`
			}
		}
	}{}
	if err := json.Unmarshal(data, &file); err != nil {
		return err
	}
	small := &Tree{}
	for _, leaf := range file.Small.Leaves {
		small.Append(leaf)
	}
	for size, root := range file.Small.Roots {
		report.is(rootIs(small, int64(size), root), "root of %d leaves", size)
	}
	proofVectors(small, func(index int64) []byte { return file.Small.Leaves[index] },
		file.Small.Inclusion, file.Small.Consistency, report)

	big := &Tree{}
	bigLeaf := func(index int64) []byte {
		sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("svc-test-leaf\x00"), uint64(index)))
		return sum[:]
	}
	for index := range file.Big.Size {
		big.Append(bigLeaf(index))
	}
	for size, root := range file.Big.Roots {
		number, err := strconv.ParseInt(size, 10, 64)
		if err != nil {
			return err
		}
		report.is(rootIs(big, number, root), "root of %s leaves", size)
	}
	for size, edge := range file.Big.Edges {
		number, err := strconv.ParseInt(size, 10, 64)
		if err != nil {
			return err
		}
		report.is(edgeIs(big, number, edge), "edge of %s leaves", size)
	}
	proofVectors(big, bigLeaf, file.Big.Inclusion, file.Big.Consistency, report)
	for _, vector := range file.Big.Tiles {
		tile, err := torchwood.ParseTilePath(vector.Path)
		if err != nil {
			return err
		}
		content, err := tlog.ReadTileData(tile, big)
		sum := sha256.Sum256(content)
		report.is(err == nil && len(content) == vector.Bytes && bytes.Equal(sum[:], vector.Sum), "%s", vector.Path)
	}
	return nil
}

func rootIs(tree *Tree, size int64, expected []byte) bool {
	root := tree.Root(size)
	return bytes.Equal(root[:], expected)
}

// edgeIs compares the roots of the full subtrees of a tree, the largest first.
func edgeIs(tree *Tree, size int64, expected []hexBytes) bool {
	indexes := torchwood.RightEdge(size)
	sort.Slice(indexes, func(i, j int) bool {
		left, _ := tlog.SplitStoredHashIndex(indexes[i])
		right, _ := tlog.SplitStoredHashIndex(indexes[j])
		return left > right
	})
	hashes, err := tree.ReadHashes(indexes)
	if err != nil || len(hashes) != len(expected) {
		return false
	}
	for i, hash := range hashes {
		if !bytes.Equal(hash[:], expected[i]) {
			return false
		}
	}
	return true
}

// proofVectors verifies each proof, and makes it anew: the bytes of a proof are fixed.
func proofVectors(tree *Tree, leaf func(int64) []byte, inclusion []inclusionVector, consistency []consistencyVector,
	report *Report) {
	for _, vector := range inclusion {
		made, err := tlog.ProveRecord(vector.Size, vector.Index, tree)
		record := tlog.RecordHash(leaf(vector.Index))
		holds := err == nil && same(made, vector.Proof) &&
			tlog.CheckRecord(hashesFrom(vector.Proof), vector.Size, tree.Root(vector.Size), vector.Index, record) == nil
		report.is(holds, "inclusion of %d in %d", vector.Index, vector.Size)
	}
	for _, vector := range consistency {
		made, err := tlog.ProveTree(vector.To, vector.From, tree)
		from := Checkpoint{vector.From, tree.Root(vector.From)}
		to := Checkpoint{vector.To, tree.Root(vector.To)}
		holds := err == nil && same(made, vector.Proof) && Consistency(from, to, bytesFrom(vector.Proof)) == nil
		report.is(holds, "consistency of %d and %d", vector.From, vector.To)
	}
}

func hashesFrom(proof []hexBytes) (hashes []tlog.Hash) {
	for _, hash := range proof {
		hashes = append(hashes, tlog.Hash(hash))
	}
	return hashes
}

func bytesFrom(proof []hexBytes) (hashes [][]byte) {
	for _, hash := range proof {
		hashes = append(hashes, hash)
	}
	return hashes
}

func same(made []tlog.Hash, proof []hexBytes) bool {
	if len(made) != len(proof) {
		return false
	}
	for i, hash := range made {
		if !bytes.Equal(hash[:], proof[i]) {
			return false
		}
	}
	return true
}

func logVectors(data []byte, report *Report) error {
	file := struct {
		Ledger  logVector
		Masters []logVector
		LogKey  struct {
			Key string `json:"public_key_base64"`
		} `json:"log_key"`
		Endorsement struct {
			Digest hexBytes `json:"digest_hex"`
			Key    string   `json:"public_key_base64"`
			Sig    string
		}
		Origins struct{ Good, Bad []string }
		Refused []struct {
			What, Origin, Proof string
			Index               int64
			Record              hexBytes `json:"record_hex"`
		}
	}{}
	if err := json.Unmarshal(data, &file); err != nil {
		return err
	}
	logKey, err := fromBase64(file.LogKey.Key, 32)
	if err != nil {
		return err
	}
	for _, vector := range append(file.Masters, file.Ledger) {
		if err := vector.check(logKey, report); err != nil {
			return err
		}
	}
	for _, vector := range file.Refused {
		log, err := NewLog(vector.Origin, logKey)
		if err == nil {
			_, err = log.Inclusion(vector.Proof, vector.Index, vector.Record)
		}
		report.is(err != nil, "refused: %s", vector.What)
	}
	for _, name := range file.Origins.Good {
		report.is(CheckName(name) == nil, "name %q", name)
	}
	for _, name := range file.Origins.Bad {
		report.is(CheckName(name) != nil, "no name %q", name)
	}
	signer, err := base64.StdEncoding.DecodeString(file.Endorsement.Key)
	if err != nil {
		return err
	}
	signature, err := base64.StdEncoding.DecodeString(file.Endorsement.Sig)
	if err != nil {
		return err
	}
	digest := EndorsementDigest(file.Origins.Good[0], logKey)
	report.is(bytes.Equal(digest, file.Endorsement.Digest) && CheckKey(signer) == nil &&
		CheckSignature(signer, digest, signature) == nil, "endorsement")
	return nil
}

func (vector *logVector) check(logKey []byte, report *Report) error {
	log, err := NewLog(vector.Origin, logKey)
	if err != nil {
		return err
	}
	report.is(VKey(vector.Origin, logKey) == vector.VKey, "vkey of %s", vector.Origin)
	tree := &Tree{}
	for _, leaf := range vector.Leaves {
		tree.Append(leaf)
	}
	checkpoints := map[int64]Checkpoint{}
	for _, expected := range vector.Checkpoints {
		checkpoint, err := log.Checkpoint(expected.Note)
		report.is(err == nil && checkpoint.Size == expected.Size && bytes.Equal(checkpoint.Root[:], expected.Root) &&
			checkpoint.Root == tree.Root(expected.Size), "checkpoint %d of %s", expected.Size, vector.Origin)
		checkpoints[expected.Size] = checkpoint
	}
	for _, expected := range vector.Consistency {
		made, err := tlog.ProveTree(expected.To, expected.From, tree)
		report.is(err == nil && same(made, expected.Proof) &&
			Consistency(checkpoints[expected.From], checkpoints[expected.To], bytesFrom(expected.Proof)) == nil,
			"consistency of %d and %d of %s", expected.From, expected.To, vector.Origin)
	}
	for index, leaf := range vector.Leaves {
		own, err := log.Inclusion(vector.OwnPlace[index], int64(index), leaf)
		report.is(err == nil && own.Size == int64(index)+1, "%d of %s at its own place", index, vector.Origin)
		whole, err := log.Inclusion(vector.Whole[index], int64(index), leaf)
		report.is(err == nil && whole.Size == int64(len(vector.Leaves)), "%d of %s in the whole", index, vector.Origin)
	}
	return nil
}
