package transfer_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
	"github.com/forgeplane/forgeplane/internal/git/update"
	"github.com/forgeplane/forgeplane/internal/git/upkeep"
)

// daemon serves the repositories below a directory with git's own daemon.
func daemon(t *testing.T, root string) string {
	t.Helper()
	return "git://" + gittest.Listen(t, func(conn net.Conn) {
		c := exec.CommandContext(t.Context(), "git", "daemon", "--inetd", "--export-all", "--enable=receive-pack", "--base-path="+root)
		c.Stdin, c.Stdout = conn, conn
		_ = c.Run()
	})
}

// ways are the ways to reach the target of a mirror without HTTP.
func ways(t *testing.T, m *mirror) map[string]func(o *transfer.PushOptions) {
	t.Helper()
	root := filepath.Dir(m.there.Dir())
	server := gittest.SSH(t, root)
	return map[string]func(o *transfer.PushOptions){
		"git": func(o *transfer.PushOptions) {
			o.URL, o.Username, o.Password = daemon(t, root)+"/there.git", "", ""
		},
		"a key": func(o *transfer.PushOptions) {
			o.URL, o.Username, o.Password = server.URL+"/there.git", "", ""
			o.Identity, o.KnownHosts = server.Identity, server.KnownHosts
		},
		"a password": func(o *transfer.PushOptions) {
			o.URL, o.KnownHosts = server.URL+"/there.git", server.KnownHosts
		},
	}
}

func TestNativePush_makesTheOtherSideIdentical(t *testing.T) {
	for _, format := range gittest.Formats {
		m := newMirror(t, format)
		for way, by := range ways(t, m) {
			t.Run(format+" by "+way, func(t *testing.T) {
				m.client.Commit(t, "README", "more by "+way)
				m.client.Git(t, "commit", "--quiet", "--amend", "--message", "Rewritten")
				m.client.Git(t, "tag", "--force", "v1")
				m.client.Git(t, "push", "--quiet", "--mirror", m.here.Dir())
				m.client.Git(t, "push", "--quiet", "--force", m.there.Dir(), "HEAD~1:refs/heads/extra", "HEAD~1:refs/tags/extra")
				if r := m.pushed(t, by); r.Updated < 4 || len(r.Refused) > 0 {
					t.Errorf("got %+v", r)
				}
				m.same(t)
				if r := m.pushed(t, by); r.Updated != 0 {
					t.Errorf("again: %+v", r)
				}
				if err := upkeep.Fsck(t.Context(), m.there, true); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestNativePush_keepsDivergentRefs(t *testing.T) {
	for _, format := range gittest.Formats {
		t.Run(format, func(t *testing.T) { keepsDivergentRefs(t, format) })
	}
}

func keepsDivergentRefs(t *testing.T, format string) {
	t.Helper()
	m := newMirror(t, format)
	m.pushed(t, nil)
	other := gittest.New(t, format)
	other.Commit(t, "OTHER", "theirs")
	other.Git(t, "push", "--quiet", "--force", m.there.Dir(), "HEAD:refs/heads/topic/x", "HEAD:refs/tags/v1", "HEAD:refs/heads/extra")
	m.client.Git(t, "push", "--quiet", "--force", m.there.Dir(), "HEAD:refs/heads/behind")
	m.client.Commit(t, "README", "more")
	ahead := m.client.Commit(t, "README", "even more")
	// The side branch is behind main here and ahead of it there: that another branch has its commit is not enough.
	m.client.Git(t, "push", "--quiet", "--force", m.there.Dir(), "HEAD:refs/heads/side")
	m.client.Git(t, "push", "--quiet", m.here.Dir(), "HEAD:refs/heads/main", "HEAD~1:refs/heads/side", "HEAD~1:refs/heads/behind")
	kept := []string{"refs/heads/topic/x", "refs/tags/v1", "refs/heads/extra", "refs/heads/side"}
	before := listedRefs(t, m.there, kept...)
	for way, by := range ways(t, m) {
		t.Run(way, func(t *testing.T) {
			if err := os.WriteFile(m.argv, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			var told []string
			r := m.pushed(t, func(o *transfer.PushOptions) {
				by(o)
				o.Keep, o.Tell = true, func(u update.Ref, refused string) { told = append(told, u.Name+" "+refused) }
			})
			var names []string
			for _, refused := range r.Refused {
				names = append(names, refused.Name)
				if !refused.Diverged {
					t.Errorf("%s has not diverged: %s", refused.Name, refused.Reason)
				}
			}
			if strings.Join(names, " ") != "refs/heads/side refs/heads/topic/x refs/tags/v1" || len(told) < 3 {
				t.Errorf("got %+v, told %q", r, told)
			}
			argv, err := os.ReadFile(m.argv)
			if err != nil {
				t.Fatal(err)
			}
			if started := string(argv); strings.Contains(started, "merge-base") || strings.Count(started, "send-pack") != 1 {
				t.Errorf("more than one process looks for what has diverged:\n%s", started)
			}
		})
	}
	if after := listedRefs(t, m.there, kept...); strings.Join(after, " ") != strings.Join(before, " ") {
		t.Errorf("was %v, is %v", before, after)
	}
	if moved := listedRefs(t, m.there, "refs/heads/main"); len(moved) != 1 || !strings.HasPrefix(moved[0], ahead) {
		t.Errorf("main is %v, want %s", moved, ahead)
	}
}

func TestNativePush_reportsRefusedRefs(t *testing.T) {
	m := newMirror(t, "sha1")
	m.client.Git(t, "-C", m.there.Dir(), "config", "receive.denyDeletes", "true")
	m.client.Git(t, "push", "--quiet", m.there.Dir(), "HEAD:refs/heads/extra")
	for way, by := range ways(t, m) {
		t.Run(way, func(t *testing.T) {
			r := m.pushed(t, by)
			if len(r.Refused) != 1 || r.Refused[0].Name != "refs/heads/extra" || r.Refused[0].Reason != "deletion prohibited" {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestSSHPush_refuses(t *testing.T) {
	m := newMirror(t, "sha1")
	server := gittest.SSH(t, filepath.Dir(m.there.Dir()))
	other, identity := gittest.Key(t)
	address := strings.TrimPrefix(server.URL, "ssh://")
	tests := []struct {
		name   string
		change func(o *transfer.PushOptions)
		want   error
	}{
		{"a server without a pinned key", func(o *transfer.PushOptions) { o.KnownHosts = nil }, transfer.ErrHostKey},
		{"a server with another key", func(o *transfer.PushOptions) {
			o.KnownHosts = []byte(knownhosts.Line([]string{knownhosts.Normalize(address)}, other.PublicKey()))
		}, transfer.ErrHostKey},
		{"a malformed list of host keys", func(o *transfer.PushOptions) { o.KnownHosts = []byte("@@@") }, transfer.ErrHostKey},
		{"a wrong password", func(o *transfer.PushOptions) { o.Password = "wrong" }, transfer.ErrCredentials},
		{"another key", func(o *transfer.PushOptions) { o.Username, o.Password, o.Identity = "git", "", identity }, transfer.ErrCredentials},
		{"no credentials", func(o *transfer.PushOptions) { o.Username, o.Password = "", "" }, transfer.ErrCredentials},
		{"a malformed key", func(o *transfer.PushOptions) { o.Identity = []byte("secret") }, transfer.ErrIdentity},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := m.push(t, func(o *transfer.PushOptions) {
				o.URL, o.KnownHosts = server.URL+"/there.git", server.KnownHosts
				test.change(o)
			})
			if !errors.Is(err, test.want) || strings.Contains(err.Error(), gittest.Password) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
	if there := listedRefs(t, m.there, "refs/"); len(there) > 0 {
		t.Errorf("it has %v", there)
	}
}

func TestNativePush_saysWhyTheServerRefuses(t *testing.T) {
	m := newMirror(t, "sha1")
	for way, by := range ways(t, m) {
		t.Run(way, func(t *testing.T) {
			_, err := m.push(t, func(o *transfer.PushOptions) {
				by(o)
				o.URL = strings.Replace(o.URL, "there.git", "missing.git", 1)
			})
			refused := (*transfer.ServerError)(nil)
			if !errors.As(err, &refused) || refused.Reason == "" {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestNativePush_endsWhenTheServerIsSilent(t *testing.T) {
	m := newMirror(t, "sha1")
	address := gittest.Listen(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
	server := gittest.SSH(t, "/")
	for _, url := range []string{"git://" + address, "ssh://" + address} {
		_, err := m.push(t, func(o *transfer.PushOptions) {
			o.URL, o.Stall = url+"/x", 100*time.Millisecond
			o.KnownHosts = []byte(strings.ReplaceAll(string(server.KnownHosts), strings.TrimPrefix(server.URL, "ssh://127.0.0.1"), strings.TrimPrefix(address, "127.0.0.1")))
		})
		if !errors.Is(err, transfer.ErrTimeout) || !strings.Contains(err.Error(), "sent and taken nothing for 100ms") {
			t.Errorf("%s: got %v", url, err)
		}
	}
}

func TestNativePush_repeatsNoSecret(t *testing.T) {
	m := newMirror(t, "sha1")
	address := gittest.Listen(t, func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 1000))
		text := "ERR " + strings.Repeat("x", 190) + gittest.Password
		_, _ = fmt.Fprintf(conn, "%04x%s", len(text)+4, text)
	})
	_, err := m.push(t, func(o *transfer.PushOptions) { o.URL = "git://" + address + "/x" })
	if err == nil || strings.Contains(err.Error(), gittest.Password[:3]) {
		t.Errorf("got %v", err)
	}
}

func TestNativePush_refusesServersThatAreNotGit(t *testing.T) {
	m := newMirror(t, "sha1")
	for answer, want := range map[string]string{
		"":                         "ended the connection",
		"HTTP/1.1 400 Bad Request": "does not answer like Git",
		"0005":                     "ended the connection",
		"0000":                     "does not report what it did",
		"000fERR a\x1b[1m\nb":      "the server says: a [1m b",
		strings.Repeat("fff0x", 1): "ended the connection",
		"0003":                     "does not answer like Git",
	} {
		url := "git://" + gittest.Listen(t, func(conn net.Conn) {
			_, _ = conn.Read(make([]byte, 1000))
			_, _ = io.WriteString(conn, answer)
		})
		_, err := m.push(t, func(o *transfer.PushOptions) { o.URL = url + "/x" })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", answer, err, want)
		}
	}
}
