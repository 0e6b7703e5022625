package gittest

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// Listen calls serve for each connection until the test ends, and returns the address.
func Listen(t testing.TB, serve func(net.Conn)) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	return l.Addr().String()
}

// Key returns a new key for ssh, and its private half as a client gives it.
func Key(t testing.TB) (signer ssh.Signer, private []byte) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	if signer, err = ssh.NewSignerFromKey(key); err != nil {
		t.Fatal(err)
	}
	return signer, pem.EncodeToMemory(block)
}

// SSHServer is a server of ssh.
type SSHServer struct {
	// URL has no path. KnownHosts has its key, and Identity is the private key of the user git. The user ann has Password.
	URL                  string
	KnownHosts, Identity []byte
}

// SSH serves pushes to the repositories below a directory until the test ends.
func SSH(t testing.TB, root string) SSHServer {
	t.Helper()
	host, _ := Key(t)
	user, identity := Key(t)
	config := &ssh.ServerConfig{
		PasswordCallback: func(c ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
			if c.User() == "ann" && string(password) == Password {
				return nil, nil
			}
			return nil, errors.New("no")
		},
		PublicKeyCallback: func(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if c.User() == "git" && bytes.Equal(key.Marshal(), user.PublicKey().Marshal()) {
				return nil, nil
			}
			return nil, errors.New("no")
		},
	}
	config.AddHostKey(host)
	address := Listen(t, func(conn net.Conn) {
		_, channels, requests, err := ssh.NewServerConn(conn, config)
		if err != nil {
			return
		}
		go ssh.DiscardRequests(requests)
		for c := range channels {
			serveSession(t, c, root)
		}
	})
	return SSHServer{
		URL: "ssh://" + address, Identity: identity,
		KnownHosts: []byte(knownhosts.Line([]string{knownhosts.Normalize(address)}, host.PublicKey()) + "\n"),
	}
}

func serveSession(t testing.TB, c ssh.NewChannel, root string) {
	t.Helper()
	channel, requests, err := c.Accept()
	if err != nil {
		return
	}
	defer channel.Close()
	for r := range requests {
		_ = r.Reply(r.Type == "exec", nil)
		if r.Type != "exec" {
			continue
		}
		words := string(r.Payload[4 : 4+binary.BigEndian.Uint32(r.Payload)])
		command := exec.CommandContext(t.Context(), "sh", "-c", words)
		command.Dir = root
		if _, path, ok := strings.Cut(words, " '/"); ok { // the root of the server is a directory of the test
			command.Args[2] = "git-receive-pack '" + filepath.Join(root, path)
		}
		command.Env = append(command.Environ(), "PATH="+strings.TrimSpace(output(t, "git", "--exec-path"))+":"+"/usr/local/bin:/usr/bin:/bin")
		command.Stdout, command.Stderr = channel, channel.Stderr()
		in, err := command.StdinPipe()
		if err != nil || command.Start() != nil {
			return
		}
		go func() {
			_, _ = io.Copy(in, channel)
			in.Close()
		}()
		code := uint32(0)
		if command.Wait() != nil {
			code = 1
		}
		_, _ = channel.SendRequest("exit-status", false, binary.BigEndian.AppendUint32(nil, code))
		return
	}
}

func output(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
