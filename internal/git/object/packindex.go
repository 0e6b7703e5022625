package object

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sort"
	"syscall"
)

// PackIndex is the list of the objects in a pack, read from the file of its index (gitformat-pack(5)). The file is mapped, so that an index
// with millions of objects takes little memory.
type PackIndex struct {
	mapped []byte
	ids    []byte
	size   int
}

const (
	// indexHeader is the length of the signature and the version, and indexFanOut that of the table behind it.
	indexHeader, indexFanOut = 8, 256 * 4
)

var errIndex = errors.New("it is not an index of version 2")

// OpenPackIndex opens the index at a path, of a repository whose ids have idLength characters. The caller must call Close.
func OpenPackIndex(path string, idLength int) (*PackIndex, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() < indexHeader+indexFanOut {
		return nil, fmt.Errorf("reading %s: %w", path, errIndex)
	}
	mapped, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping %s: %w", path, err)
	}
	x := &PackIndex{mapped: mapped, size: idLength / 2}
	count := int(binary.BigEndian.Uint32(mapped[indexHeader+indexFanOut-4:]))
	end := indexHeader + indexFanOut + count*x.size
	if !bytes.HasPrefix(mapped, []byte("\xfftOc\x00\x00\x00\x02")) || end > len(mapped) {
		return nil, errors.Join(fmt.Errorf("reading %s: %w", path, errIndex), x.Close())
	}
	x.ids = mapped[indexHeader+indexFanOut : end]
	return x, nil
}

// Length returns the number of objects.
func (x *PackIndex) Length() int { return len(x.ids) / x.size }

// Find returns the position of an object in the order of ids, or -1 if the pack does not have it. id is the id as bytes.
func (x *PackIndex) Find(id []byte) int {
	if len(id) != x.size {
		return -1
	}
	// The table has the number of objects whose id begins with at most that byte.
	table := func(first byte) int { return int(binary.BigEndian.Uint32(x.mapped[indexHeader+4*int(first):])) }
	from, to := 0, min(table(id[0]), x.Length())
	if id[0] > 0 {
		from = min(table(id[0]-1), to)
	}
	at := from + sort.Search(to-from, func(i int) bool { return bytes.Compare(x.at(from+i), id) >= 0 })
	if at < to && bytes.Equal(x.at(at), id) {
		return at
	}
	return -1
}

func (x *PackIndex) at(i int) []byte { return x.ids[i*x.size : (i+1)*x.size] }

// Close unmaps the index.
func (x *PackIndex) Close() error { return syscall.Munmap(x.mapped) }
