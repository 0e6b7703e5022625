package history

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Change is a file that differs between two commits. A file that becomes another type, such as a link, has two changes: a removal and an
// addition.
type Change struct {
	// OldPath and NewPath differ only for a renamed file.
	OldPath, NewPath string
	// OldMode and NewMode have six octal digits. They are empty if there is no file before or after.
	OldMode, NewMode string
	// Names are the lines of a diff that name both files; empty if no lines differ.
	Names string
	// Text has the hunks, or a line about binary files; empty if only the name or mode has changed.
	Text string
	// TooLarge says that the text exists but exceeds the limits.
	TooLarge bool
}

// diffLimits limit the size of a diff.
type diffLimits struct {
	// changes is the maximum number of listed changes, and paths the maximum size of their paths in bytes; further changes are ignored.
	// Only the first files of them have a text.
	changes, paths, files int
	// text is the maximum size of the text of a file in bytes; lines and bytes are limits for all texts together.
	text, lines, bytes int
}

// maxPath is the maximum length of a path in bytes. The limits of file systems are far lower.
const maxPath = 64 << 10

// diffParser parses the output of `git diff-tree -r --raw -p -z`: all changes, and then the text of each.
type diffParser struct {
	in     *bufio.Reader
	limits diffLimits
	// changes is nil until all of them are known.
	changes []Change
	more    int // the number of changes that are not listed
	paths   int // the size of the listed paths

	text, names  bytes.Buffer
	lines, bytes int
}

var errDiff = errors.New("the output of git diff-tree is not as expected")

// parse reads to the end, or until nothing more can be kept. After an error, complete returns the part that was read before.
func (p *diffParser) parse() error {
	if err := p.readChanges(); err != nil {
		return err
	}
	return p.readTexts()
}

// readChanges parses ":<mode> <mode> <id> <id> <status>\0<path>\0", with a second path for a renamed file, up to an empty line.
func (p *diffParser) readChanges() error {
	for {
		meta, err := p.field()
		if errors.Is(err, io.EOF) || err == nil && meta == "" {
			return nil
		}
		if err != nil {
			return err
		}
		fields := strings.Fields(meta)
		if len(fields) != 5 || !strings.HasPrefix(meta, ":") || len(fields[0]) != 7 || len(fields[1]) != 6 {
			return fmt.Errorf("%w: %.100q", errDiff, meta)
		}
		c := Change{OldMode: fields[0][1:], NewMode: fields[1]}
		if c.OldPath, err = p.path(); err != nil {
			return err
		}
		c.NewPath = c.OldPath
		switch fields[4][0] {
		case 'R', 'C':
			if c.NewPath, err = p.path(); err != nil {
				return err
			}
			p.add(c)
		case 'A':
			c.OldMode = ""
			p.add(c)
		case 'D':
			c.NewMode = ""
			p.add(c)
		case 'T':
			begin := c
			begin.OldMode, c.NewMode = "", ""
			p.add(c)
			p.add(begin)
		default:
			p.add(c)
		}
	}
}

func (p *diffParser) add(c Change) {
	p.paths += len(c.OldPath) + len(c.NewPath)
	if p.more > 0 || len(p.changes) == p.limits.changes || p.paths > p.limits.paths {
		p.more++
		return
	}
	p.changes = append(p.changes, c)
}

// field reads up to the next zero byte. The error is io.EOF if there is nothing to read.
func (p *diffParser) field() (string, error) {
	var all []byte
	for {
		piece, err := p.in.ReadSlice(0)
		all = append(all, piece...)
		switch {
		case err == nil:
			return string(all[:len(all)-1]), nil
		case errors.Is(err, bufio.ErrBufferFull) && len(all) <= maxPath:
		case errors.Is(err, io.EOF) && len(all) == 0:
			return "", io.EOF
		case errors.Is(err, io.EOF), errors.Is(err, bufio.ErrBufferFull):
			return "", fmt.Errorf("%w: %.100q", errDiff, all)
		default:
			return "", err
		}
	}
}

func (p *diffParser) path() (string, error) {
	path, err := p.field()
	if errors.Is(err, io.EOF) || err == nil && path == "" {
		err = fmt.Errorf("%w: a path is missing", errDiff)
	}
	return path, err
}

// part is the part of a patch that a line belongs to.
type part int

const (
	inHeader part = iota // the raw change already has this information
	inNames
	inText
)

// readTexts parses patches: some lines about a file, two that name it, and hunks. No line of a hunk begins with a letter. It keeps what
// there is room for, piece by piece, because a line can be as long as a file.
func (p *diffParser) readTexts() error {
	current, at, begins := -1, inHeader, true
	for {
		piece, err := p.in.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return err
		}
		if begins && bytes.HasPrefix(piece, []byte("diff --git ")) {
			p.finish(current)
			current++
			at = inHeader
			if current >= min(len(p.changes), p.limits.files) {
				return p.overflow(current)
			}
		} else if len(piece) > 0 {
			if current < 0 {
				return fmt.Errorf("%w: %.100q", errDiff, piece)
			}
			if begins {
				at = at.next(piece)
			}
			if full := p.keep(current, at, piece); full {
				return p.overflow(current)
			}
		}
		if errors.Is(err, io.EOF) {
			p.finish(current)
			if current+1 != len(p.changes)+p.more {
				return fmt.Errorf("%w: there are %d changes and %d texts", errDiff, len(p.changes)+p.more, current+1)
			}
			return nil
		}
		begins = err == nil
	}
}

// next returns the part of a line that follows a line of part p.
func (p part) next(line []byte) part {
	switch {
	case p == inText:
		return inText
	case bytes.HasPrefix(line, []byte("@@ ")), bytes.HasPrefix(line, []byte("Binary files ")):
		return inText
	case bytes.HasPrefix(line, []byte("--- ")), bytes.HasPrefix(line, []byte("+++ ")):
		return inNames
	default:
		return inHeader
	}
}

// keep adds a piece of a line to the current change. It reports whether there is no more room.
func (p *diffParser) keep(current int, at part, piece []byte) (full bool) {
	c := &p.changes[current]
	switch {
	case at == inNames && p.names.Len() <= 4*maxPath:
		p.names.Write(piece)
	case at == inText:
		p.bytes += len(piece)
		p.lines += bytes.Count(piece, []byte("\n"))
		if p.lines > p.limits.lines || p.bytes > p.limits.bytes {
			return true
		}
		if c.TooLarge = c.TooLarge || p.text.Len()+len(piece) > p.limits.text; !c.TooLarge {
			p.text.Write(piece)
		}
	}
	return false
}

// finish sets the text of a change.
func (p *diffParser) finish(current int) {
	if current >= 0 && current < len(p.changes) && !p.changes[current].TooLarge {
		p.changes[current].Text, p.changes[current].Names = p.text.String(), p.names.String()
	}
	p.text.Reset()
	p.names.Reset()
}

// errOverflow ends parsing when the limits are reached.
var errOverflow = errors.New("the diff is beyond its limits")

// overflow marks all changes after the given one as too large.
func (p *diffParser) overflow(from int) error {
	for i := from; i < len(p.changes); i++ {
		p.changes[i].TooLarge = true
	}
	return errOverflow
}
