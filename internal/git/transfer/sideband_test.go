package transfer_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
)

func packet(band int, text string) string { return fmt.Sprintf("%04x%c%s", len(text)+5, band, text) }

// A client receives the reason why git is ended before git's own message, or instead of it if it does not take messages.
func TestSideband_saysWhyGitIsEnded(t *testing.T) {
	why := &process.LimitError{Text: "This is why."}
	line := func(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }
	const fault, ok, ng = "unpack index-pack abnormal exit\n", "unpack ok\n", "ng refs/heads/a unpacker error\n"
	for about, c := range map[string]struct{ said, want string }{
		"a report":                {packet(1, line(fault)+line(ng)) + "0000", packet(2, "fatal: This is why.\n") + packet(1, line(fault)+line(ng)) + "0000"},
		"a report after progress": {packet(2, "1%") + packet(1, line(fault)) + "0000", packet(2, "1%") + packet(2, "fatal: This is why.\n") + packet(1, line(fault)) + "0000"},
		"a report without bands":  {line(fault) + line(ng) + "0000", line("unpack This is why.\n") + line(ng) + "0000"},
		"success without bands":   {line(ok) + line("ok refs/heads/a\n") + "0000", line(ok) + line("ok refs/heads/a\n") + "0000"},
		"another line":            {line("unshallow 1\n") + "0000", line("unshallow 1\n") + "0000"},
		"nothing":                 {"", line("ERR This is why.")},
		"the middle of a pack":    {line("NAK\n") + packet(2, "1%") + "ffff\x01PACK", line("NAK\n") + packet(2, "1%") + packet(3, "fatal: This is why.\n")},
		"packets of a pack":       {line("NAK\n") + packet(2, "1%") + "00", line("NAK\n") + packet(2, "1%") + packet(3, "fatal: This is why.\n")},
	} {
		for _, piece := range []int{1, 2, 3, 5, 7, 1000} {
			var got bytes.Buffer
			s := transfer.NewSideband(&got)
			s.Interject(why)
			for chunk := range slices.Chunk([]byte(c.said), piece) {
				if _, err := s.Write(chunk); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.End(why); err != nil {
				t.Fatal(err)
			}
			NewWithT(t).Expect(got.String()).To(Equal(c.want), "%s by %d", about, piece)
		}
	}
}

// Messages about a limit are replaced, however the packets are split. Everything else is forwarded byte by byte.
func TestSideband_saysWhichLimit(t *testing.T) {
	const limit = "This takes more than the 1 GiB of memory that the server allows a Git process."
	data := packet(1, strings.Repeat("PACK\x02\x03", 10_000))
	corrupt := "aborting due to possible repository corruption on the remote side."
	for about, c := range map[string]struct{ said, want string }{
		"nothing":    {"", ""},
		"usual":      {"0008NAK\n" + packet(2, "Counting objects: 1\n") + data + "0000", "0008NAK\n" + packet(2, "Counting objects: 1\n") + data + "0000"},
		"no packets": {"PACK\x00\x00\x00\x02" + strings.Repeat("\x02", 100), "PACK\x00\x00\x00\x02" + strings.Repeat("\x02", 100)},
		"memory": {data + packet(2, "fatal: Out of memory, malloc failed (tried to allocate 7 bytes)\n") + packet(3, corrupt),
			data + packet(2, "fatal: "+limit+"\n") + packet(3, "fatal: "+limit+"\n")},
		"another reason": {packet(2, "error: bad object\n") + packet(3, corrupt), packet(2, "error: bad object\n") + packet(3, corrupt)},
		"cut off":        {data + "00", data + "00"},
		"a mere band":    {"0005\x02" + "0005\x01" + "0004" + "0001", "0005\x02" + "0005\x01" + "0004" + "0001"},
	} {
		for _, piece := range []int{1, 2, 3, 5, 7, 1000, 1 << 20} {
			var got bytes.Buffer
			s := transfer.NewSideband(&got)
			for rest := []byte(c.said); len(rest) > 0; {
				n := min(piece, len(rest))
				if m, err := s.Write(rest[:n]); m != n || err != nil {
					t.Fatal(m, err)
				}
				rest = rest[n:]
			}
			if err := s.End(nil); err != nil {
				t.Fatal(err)
			}
			NewWithT(t).Expect(got.String()).To(Equal(c.want), "%s by %d: %.200q", about, piece, got.String())
		}
	}
}
