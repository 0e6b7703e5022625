package git

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// The bands of gitprotocol-pack(5): a pack, or what has become of a push; and text for a person, of the progress and why all has ended.
const (
	dataBand     = 1
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
	// open says that git is in the middle of what it says in bands.
	open bool
	// reached is the limit that git has spoken of. last is its last message, which waits for the end of git.
	reached error
	last    []byte
	// out is what is passed on next. The part behind whole waits for the end of its packet, so that another one can follow.
	out   []byte
	whole int
	begun bool
	// due is a limit that git does not know of, which the client is to read before what git says next.
	due atomic.Pointer[LimitError]
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
	for len(p) > 0 {
		switch {
		case s.raw:
			s.out, p = append(s.out, p...), nil
			s.whole = len(s.out)
		case s.left > 0:
			k := min(s.left, len(p))
			s.out, p, s.left = append(s.out, p[:k]...), p[k:], s.left-k
			if s.left == 0 {
				s.whole = len(s.out)
			}
		default:
			k := min(s.want-len(s.packet), len(p))
			s.packet, p = append(s.packet, p[:k]...), p[k:]
			if len(s.packet) == s.want {
				s.advance()
			}
		}
	}
	if s.whole == 0 {
		return n, nil
	}
	s.begun = true
	_, err := s.to.Write(s.out[:s.whole])
	s.out, s.whole = s.out[:copy(s.out, s.out[s.whole:])], 0
	return n, err
}

// interject has the client read why git is ended. It may be called while git writes.
func (s *sideband) interject(why *LimitError) { s.due.Store(why) }

// advance looks at as much of a packet as was wanted.
func (s *sideband) advance() {
	size, err := strconv.ParseUint(string(s.packet[:lengthSize]), 16, 16)
	s.raw = err != nil
	if s.raw || size < headSize { // "0000" and its like are packets without content
		s.open = false
		s.pass()
		return
	}
	if len(s.packet) == lengthSize {
		s.want = headSize
		return
	}
	band, due := s.packet[lengthSize], s.due.Load()
	s.open = band <= fatalBand
	if band == dataBand && due != nil && s.reached == nil {
		s.reached = due
		s.out = append(s.out, message(progressBand, due)...)
	}
	bare := due != nil && !s.begun && band == unpackReport[0]
	switch {
	case !bare && band != progressBand && band != fatalBand:
		s.begin(int(size) - headSize)
	case len(s.packet) < int(size):
		s.want = int(size)
	case bare:
		s.report(due)
		s.pass()
	case band == fatalBand:
		s.last, s.packet, s.want = s.packet, nil, lengthSize
	default:
		s.explain()
		s.pass()
	}
}

// pass passes on what was looked at, a whole packet.
func (s *sideband) pass() {
	s.begin(0)
}

// begin passes on what was looked at, and the rest of the packet when it comes.
func (s *sideband) begin(left int) {
	s.out = append(s.out, s.packet...)
	s.packet, s.want, s.left = s.packet[:0], lengthSize, left
	if left == 0 {
		s.whole = len(s.out)
	}
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

// unpackReport begins what a client reads of a push that takes no bands, of which this is the first packet.
const unpackReport = "unpack "

// report replaces why the objects of a push were not taken.
func (s *sideband) report(why *LimitError) {
	said := string(s.packet[lengthSize:])
	if strings.HasPrefix(said, unpackReport) && strings.TrimSpace(said) != unpackReport+"ok" {
		s.reached = why
		s.packet = fmt.Appendf(nil, "%04x%s%s\n", lengthSize+len(unpackReport)+len(why.Text)+1, unpackReport, why.Text)
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
	case s.last != nil || s.open:
		s.out, s.packet = nil, nil
		s.last = message(fatalBand, s.reached)
	case !s.begun && len(s.out)+len(s.packet) == 0:
		s.last = fmt.Appendf(nil, "%04xERR %s", lengthSize+len("ERR ")+len(s.reached.Error()), s.reached)
	}
	rest := slices.Concat(s.out, s.packet, s.last)
	if len(rest) == 0 {
		return nil
	}
	_, err = s.to.Write(rest)
	return err
}
