package git

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1" //nolint:gosec // it is git's checksum
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"regexp"
)

// pack contains new objects for a repository, in the format of a push.
type pack struct {
	newHash func() hash.Hash
	// ids are the ids of its objects.
	ids    map[string]bool
	body   bytes.Buffer
	squash *zlib.Writer
}

// newPack returns an empty pack for a repository whose ids have idLength characters.
func newPack(idLength int) *pack {
	p := &pack{newHash: sha1.New, ids: map[string]bool{}, squash: zlib.NewWriter(nil)}
	if idLength == 2*sha256.Size {
		p.newHash = sha256.New
	}
	return p
}

// packTypes are the numbers of object types in packs.
var packTypes = map[string]byte{"commit": 1, "tree": 2, "blob": 3}

// add adds an object to the pack unless it is there, and returns its id.
func (p *pack) add(kind string, content []byte) (id string) {
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

// reader returns the whole pack.
func (p *pack) reader() io.Reader {
	header := []byte("PACK\x00\x00\x00\x02")
	header = binary.BigEndian.AppendUint32(header, uint32(len(p.ids)))
	sum := p.newHash()
	sum.Write(header)
	sum.Write(p.body.Bytes())
	return io.MultiReader(bytes.NewReader(header), bytes.NewReader(p.body.Bytes()), bytes.NewReader(sum.Sum(nil)))
}

// RefusedObjectError is returned for objects that Git would also refuse in a push.
type RefusedObjectError struct {
	// Reason is Git's message, such as "hasDotgit: contains '.git'".
	Reason string
}

func (e *RefusedObjectError) Error() string { return "Git does not accept the content: " + e.Reason }

var refusedObject = regexp.MustCompile(`(?m)^error: object [0-9a-f]+: (.+)$`)

// store adds the objects of a pack to the repository, with the checks and commands of a push. Objects that they refer to must be in the
// pack or in the repository.
func (r *Repository) store(ctx context.Context, p *pack) error {
	if err := r.checkRoom(ctx); err != nil {
		return err
	}
	c := r.command("unpack-objects", "-q", "--strict")
	if len(p.ids) >= unpackLimit {
		c = r.command("index-pack", "--stdin", "--strict")
	}
	c.stdin = p.reader()
	err := r.run(ctx, c)
	if failed := (*Error)(nil); errors.As(err, &failed) {
		if said := refusedObject.FindStringSubmatch(failed.Stderr); said != nil {
			return &RefusedObjectError{Reason: said[1]}
		}
	}
	return err
}
