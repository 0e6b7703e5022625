package transfer

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
)

// The bands of gitprotocol-pack(5): a pack or the result of a push; messages for the user; and a fatal error.
const (
	dataBand     = 1
	progressBand = 2
	fatalBand    = 3
)

// sideband forwards the output of a service to its client. It replaces git's messages about an exceeded limit, or about a repository that
// may be corrupt although git has only run out of memory, with a sentence about the limit.
type sideband struct {
	to io.Writer
	// limitOf returns the limit that a message of git is about, or nil.
	limitOf func(message []byte) error

	// packet is the inspected part of a packet line; want more bytes are needed.
	packet []byte
	want   int
	// left is the number of bytes of a packet to forward without inspection. raw says that no packets follow.
	left int
	raw  bool
	// open says that git is using bands at the moment.
	open bool
	// reached is the limit that git has reported. last is git's last message, which is held back until git ends.
	reached error
	last    []byte
	// out is the next output. The part after whole is held back until its packet is complete, so that another packet can follow.
	out   []byte
	whole int
	begun bool
	// due is a limit that git does not know of, which must be sent to the client before git's next message.
	due atomic.Pointer[process.LimitError]
}

const (
	lengthSize = 4
	headSize   = lengthSize + 1 // including the band
)

func newSideband(to io.Writer, limitOf func(message []byte) error) *sideband {
	return &sideband{to: to, limitOf: limitOf, want: lengthSize}
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

// interject sends the client the reason why git is being ended. It can be called while git writes.
func (s *sideband) interject(why *process.LimitError) { s.due.Store(why) }

// advance inspects a part of a packet.
func (s *sideband) advance() {
	size, err := strconv.ParseUint(string(s.packet[:lengthSize]), 16, 16)
	s.raw = err != nil
	if s.raw || size < headSize { // "0000" and similar are packets without content
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

// pass forwards a complete packet that was inspected.
func (s *sideband) pass() {
	s.begin(0)
}

// begin forwards the inspected part of a packet, and later the rest.
func (s *sideband) begin(left int) {
	s.out = append(s.out, s.packet...)
	s.packet, s.want, s.left = s.packet[:0], lengthSize, left
	if left == 0 {
		s.whole = len(s.out)
	}
}

// explain replaces a message about a limit.
func (s *sideband) explain() {
	if limit := s.limitOf(s.packet[headSize:]); limit != nil {
		s.reached = limit
		s.packet = message(progressBand, limit)
	}
}

// unpackReport is the beginning of the report on a push without bands. It is the beginning of the first packet.
const unpackReport = "unpack "

// report replaces the reason why the objects of a push were refused.
func (s *sideband) report(why *process.LimitError) {
	said := string(s.packet[lengthSize:])
	if strings.HasPrefix(said, unpackReport) && strings.TrimSpace(said) != unpackReport+"ok" {
		s.reached = why
		s.packet = fmt.Appendf(nil, "%04x%s%s\n", lengthSize+len(unpackReport)+len(why.Text)+1, unpackReport, why.Text)
	}
}

func message(band byte, text error) []byte {
	return fmt.Appendf(nil, "%04x%cfatal: %s\n", headSize+len("fatal: \n")+len(text.Error()), band, text)
}

// end forwards the last message, once git has ended with err.
func (s *sideband) end(err error) error {
	if reached := git.LimitReached(err); reached != "" && s.reached == nil {
		s.reached = &process.LimitError{Text: reached}
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
