package git

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
)

// The bands of gitprotocol-pack(5) that carry text for a person: the progress, and why all has ended.
const (
	progressBand = 2
	fatalBand    = 3
)

// sentence is what a client reads instead of words of git.
type sentence struct {
	words *regexp.Regexp
	limit error
}

// sideband passes on what a service says to its client. Where git speaks of a limit that was reached, or of a repository that may be
// corrupt although it has only run out of memory, the client reads a sentence about the limit instead.
type sideband struct {
	to        io.Writer
	sentences []sentence

	// packet is a packet line as far as it must be known, want bytes next.
	packet []byte
	want   int
	// left is how much of a packet is passed on without a look; raw says that no packets follow.
	left int
	raw  bool
	// reached is the limit that git has spoken of. last is its last message, which waits for the end of git.
	reached error
	last    []byte
	out     []byte
	begun   bool
}

const (
	lengthSize = 4
	headSize   = lengthSize + 1 // with the band
)

func newSideband(to io.Writer, sentences []sentence) *sideband {
	return &sideband{to: to, sentences: sentences, want: lengthSize}
}

// Write implements io.Writer.
func (s *sideband) Write(p []byte) (int, error) {
	n := len(p)
	s.out = s.out[:0]
	for len(p) > 0 {
		switch {
		case s.raw:
			s.out, p = append(s.out, p...), nil
		case s.left > 0:
			k := min(s.left, len(p))
			s.out, p, s.left = append(s.out, p[:k]...), p[k:], s.left-k
		default:
			k := min(s.want-len(s.packet), len(p))
			s.packet, p = append(s.packet, p[:k]...), p[k:]
			if len(s.packet) == s.want {
				s.advance()
			}
		}
	}
	if len(s.out) == 0 {
		return n, nil
	}
	s.begun = true
	_, err := s.to.Write(s.out)
	return n, err
}

// advance looks at as much of a packet as was wanted.
func (s *sideband) advance() {
	size, err := strconv.ParseUint(string(s.packet[:lengthSize]), 16, 16)
	s.raw = err != nil
	if s.raw || size < headSize { // "0000" and its like are packets without content
		s.pass()
		return
	}
	if len(s.packet) == lengthSize {
		s.want = headSize
		return
	}
	switch band := s.packet[lengthSize]; {
	case band != progressBand && band != fatalBand:
		s.pass()
		s.left = int(size) - headSize
	case len(s.packet) < int(size):
		s.want = int(size)
	case band == fatalBand:
		s.last, s.packet, s.want = s.packet, nil, lengthSize
	default:
		s.explain()
		s.pass()
	}
}

// pass passes on what was looked at.
func (s *sideband) pass() {
	s.out = append(s.out, s.packet...)
	s.packet, s.want = s.packet[:0], lengthSize
}

// explain replaces a message about a limit.
func (s *sideband) explain() {
	for _, known := range s.sentences {
		if known.words.Match(s.packet[headSize:]) {
			s.reached = known.limit
			s.packet = message(progressBand, s.reached)
			return
		}
	}
}

func message(band byte, text error) []byte {
	return fmt.Appendf(nil, "%04x%cfatal: %s\n", headSize+len("fatal: \n")+len(text.Error()), band, text)
}

// end passes on the last message, now that git has ended with err.
func (s *sideband) end(err error) error {
	if reached := LimitReached(err); reached != "" && s.reached == nil {
		s.reached = &LimitError{Text: reached}
	}
	switch {
	case s.reached == nil:
	case s.last != nil:
		s.last = message(fatalBand, s.reached)
	case !s.begun && len(s.packet) == 0:
		s.last = fmt.Appendf(nil, "%04xERR %s", lengthSize+len("ERR ")+len(s.reached.Error()), s.reached)
	}
	rest := slices.Concat(s.packet, s.last)
	if len(rest) == 0 {
		return nil
	}
	_, err = s.to.Write(rest)
	return err
}
