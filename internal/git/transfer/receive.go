package transfer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/object"
)

// receiver is a conversation with the receive-pack of another repository, as gitprotocol-pack(5) describes it. Servers of ssh and git talk
// to it directly, so no helper of git is needed, and the proxy is used for them as well.
type receiver struct {
	answers *bufio.Reader
	ask     io.Writer
	// secret must not appear in a message of the other side.
	secret string
	// left is the number of bytes of packets that the other side may still send.
	left int
	// refs are the refs of the other side, and able its capabilities.
	refs map[string]string
	able map[string]bool
}

// errBroken says that the other side does not follow the protocol.
var errBroken = errors.New("the server does not answer like Git")

// flush is the packet that ends a list.
const flush = "0000"

// maxPacket is the maximum length of a packet, including its length.
const maxPacket = 65520

func newReceiver(answers io.Reader, ask io.Writer) *receiver {
	return &receiver{answers: bufio.NewReaderSize(answers, 64<<10), ask: ask, left: maxAdvertised, refs: map[string]string{}, able: map[string]bool{}}
}

// packet reads a packet. It is nil for a flush.
func (r *receiver) packet() ([]byte, error) {
	var head [lengthSize]byte
	if _, err := io.ReadFull(r.answers, head[:]); err != nil {
		return nil, err
	}
	size, err := strconv.ParseUint(string(head[:]), 16, 16)
	if err != nil || size > maxPacket || size > 0 && size < lengthSize {
		return nil, errBroken
	}
	if r.left -= int(size); r.left < 0 {
		return nil, process.ErrOutputTooLarge
	}
	if size == 0 {
		return nil, nil
	}
	content := make([]byte, size-lengthSize)
	if _, err := io.ReadFull(r.answers, content); err != nil {
		return nil, err
	}
	if reason, ok := bytes.CutPrefix(content, []byte("ERR ")); ok {
		return nil, &ServerError{Reason: words(string(reason), r.secret)}
	}
	return content, nil
}

// ServerError is a reason that the other side gave for ending a conversation.
type ServerError struct {
	// Reason is in its words, on one line, and shortened.
	Reason string
}

func (e *ServerError) Error() string { return "the server says: " + e.Reason }

// words returns a message of the other side on one line, without control characters and a secret, and shortened.
func words(said, secret string) string {
	said = process.Redact(said, []string{secret})
	last := &process.Tail{Limit: maxReason}
	_, _ = io.WriteString(last, strings.Join(strings.Fields(strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, said)), " "))
	return last.String()
}

// list reads the refs and the capabilities of the other side.
func (r *receiver) list() error {
	for first := true; ; first = false {
		line, err := r.packet()
		if err != nil {
			return err
		}
		if line == nil {
			return nil
		}
		text, capabilities, found := strings.Cut(strings.TrimSuffix(string(line), "\n"), "\x00")
		if first && found {
			for _, c := range strings.Fields(capabilities) {
				r.able[c] = true
			}
		}
		id, name, _ := strings.Cut(text, " ")
		if object.IsID(id) && (strings.HasPrefix(name, object.BranchPrefix) || strings.HasPrefix(name, object.TagPrefix)) && object.CheckRefName(name) == nil {
			r.refs[name] = id
		}
	}
}

// format returns the object format of the other side.
func (r *receiver) format() string {
	for c := range r.able {
		if name, ok := strings.CutPrefix(c, "object-format="); ok {
			return name
		}
	}
	return "sha1"
}

// idLength returns the length of the object ids of the other side.
func (r *receiver) idLength() int {
	if r.format() == "sha256" {
		return 64
	}
	return 40
}

// push requests changes, sends the objects that they need, and returns the outcome of each change.
func (r *receiver) push(ctx context.Context, repo *git.Repository, changes []change) (map[string]string, error) {
	if !r.able["report-status"] {
		return nil, fmt.Errorf("%w: it does not report what it did", errBroken)
	}
	// Without side bands, the answer is the report alone. Messages for the user have no reader here.
	wanted := "report-status agent=forgeplane"
	if format := r.format(); format != "sha1" {
		wanted += " object-format=" + format
	}
	requests := bufio.NewWriter(r.ask)
	var tips bytes.Buffer
	objects := false
	for i, c := range changes {
		line := fmt.Sprintf("%s %s %s", orZeros(c.Old, c.New), orZeros(c.New, c.Old), c.Name)
		if i == 0 {
			line += "\x00" + wanted
		}
		fmt.Fprintf(requests, "%04x%s", len(line)+lengthSize, line)
		if c.New != "" {
			objects = true
			fmt.Fprintln(&tips, c.New)
		}
	}
	_, _ = requests.WriteString(flush)
	if err := requests.Flush(); err != nil {
		return nil, err
	}
	if objects {
		if err := r.pack(ctx, repo, &tips); err != nil {
			return nil, err
		}
	}
	return r.report()
}

// orZeros returns an object id, or the id of the same length as like that stands for no object.
func orZeros(id, like string) string {
	if id != "" {
		return id
	}
	return strings.Repeat("0", len(like))
}

// pack sends a pack of the objects of some tips that the other side does not have.
func (r *receiver) pack(ctx context.Context, repo *git.Repository, tips *bytes.Buffer) error {
	ids := slices.Compact(slices.Sorted(maps.Values(r.refs)))
	known, err := repo.Objects(ctx, ids...)
	if err != nil {
		return fmt.Errorf("looking for what the other side has: %w", err)
	}
	for _, o := range known {
		if o.ID != "" {
			fmt.Fprintln(tips, "^"+o.ID)
		}
	}
	args := []string{"pack-objects", "--stdout", "--revs", "--quiet", "--sparse"}
	if !r.able["no-thin"] {
		args = append(args, "--thin")
	}
	if r.able["ofs-delta"] {
		args = append(args, "--delta-base-offset")
	}
	c := process.In(repo.Dir(), args...)
	c.Stdin, c.Stdout = tips, r.ask
	return repo.Run(ctx, c)
}

// report reads the outcome of each change: why it was refused, or an empty string.
func (r *receiver) report() (map[string]string, error) {
	outcomes := map[string]string{}
	for first := true; ; first = false {
		line, err := r.packet()
		if err != nil {
			return outcomes, err
		}
		if line == nil {
			return outcomes, nil
		}
		status, rest, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		switch {
		case first && status == "unpack" && rest != "ok":
			return nil, &ServerError{Reason: words(rest, r.secret)}
		case status == "ok":
			outcomes[rest] = ""
		case status == "ng":
			name, reason, _ := strings.Cut(rest, " ")
			outcomes[name] = words(reason, r.secret)
			if outcomes[name] == "" {
				outcomes[name] = "refused"
			}
		}
	}
}
