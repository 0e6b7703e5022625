package object

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // it is git's checksum
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
)

// Pack contains new objects for a repository, in the format of a push.
type Pack struct {
	newHash func() hash.Hash
	// ids are the ids of its objects.
	ids    map[string]bool
	body   bytes.Buffer
	squash *zlib.Writer
}

// NewPack returns an empty pack for a repository whose ids have idLength characters.
func NewPack(idLength int) *Pack {
	p := &Pack{newHash: sha1.New, ids: map[string]bool{}, squash: zlib.NewWriter(nil)}
	if idLength == 2*sha256.Size {
		p.newHash = sha256.New
	}
	return p
}

// packTypes are the numbers of object types in packs.
var packTypes = map[string]byte{"commit": 1, "tree": 2, "blob": 3}

// Add adds an object to the pack unless the pack has it, and returns its id.
func (p *Pack) Add(kind string, content []byte) (id string) {
	h := p.newHash()
	fmt.Fprintf(h, "%s %d\x00", kind, len(content))
	h.Write(content)
	id = hex.EncodeToString(h.Sum(nil))
	if p.ids[id] {
		return id
	}
	p.ids[id] = true
	// The lowest four bits of the size share a byte with the type. Groups of seven bits follow, and all bytes except the last have the
	// highest bit set.
	first, rest := packTypes[kind]<<4|byte(len(content)&15), uint64(len(content)>>4)
	if rest > 0 {
		p.body.WriteByte(first | 0x80)
		p.body.Write(binary.AppendUvarint(nil, rest))
	} else {
		p.body.WriteByte(first)
	}
	p.squash.Reset(&p.body)
	_, _ = p.squash.Write(content) // a buffer never fails
	_ = p.squash.Close()
	return id
}

// Length returns the number of objects.
func (p *Pack) Length() int { return len(p.ids) }

// Reader returns the whole pack.
func (p *Pack) Reader() io.Reader {
	header := []byte("PACK\x00\x00\x00\x02")
	header = binary.BigEndian.AppendUint32(header, uint32(len(p.ids)))
	sum := p.newHash()
	sum.Write(header)
	sum.Write(p.body.Bytes())
	return io.MultiReader(bytes.NewReader(header), bytes.NewReader(p.body.Bytes()), bytes.NewReader(sum.Sum(nil)))
}
