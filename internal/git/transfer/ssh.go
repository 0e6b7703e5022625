package transfer

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/skeema/knownhosts" // adds the choice of host key algorithms to x/crypto/ssh/knownhosts
	"golang.org/x/crypto/ssh"

	"github.com/forgeplane/forgeplane/internal/git/internal/process"
)

// Errors of the keys that ssh needs.
var (
	// ErrHostKey says that the key of a host is not the pinned one, or that none is pinned.
	ErrHostKey = errors.New("the host key of the server is not pinned")
	// ErrIdentity says that a private key cannot be read.
	ErrIdentity = errors.New("the private key is malformed, or needs a passphrase")
)

// defaultLogin is the user name for ssh if none is given.
const defaultLogin = "git"

// overSSH signs in, and starts receive-pack. Agents, configuration files and keys of the machine are not used.
func overSSH(conn net.Conn, u *url.URL, o PushOptions) (*wire, error) {
	config := &ssh.ClientConfig{User: o.Username, ClientVersion: "SSH-2.0-forgeplane"}
	if config.User == "" {
		config.User = defaultLogin
	}
	if len(o.Identity) > 0 {
		key, err := ssh.ParsePrivateKey(o.Identity)
		if err != nil {
			return nil, ErrIdentity // the error of the library could quote the key
		}
		config.Auth = append(config.Auth, ssh.PublicKeys(key))
	}
	if o.Password != "" {
		config.Auth = append(config.Auth, ssh.Password(o.Password), ssh.KeyboardInteractive(
			func(_, _ string, questions []string, _ []bool) ([]string, error) {
				answers := make([]string, len(questions))
				for i := range answers {
					answers[i] = o.Password
				}
				return answers, nil
			}))
	}
	address := net.JoinHostPort(u.Hostname(), portOf(u))
	if err := pin(config, address, o.KnownHosts); err != nil {
		return nil, err
	}
	secured, channels, requests, err := ssh.NewClientConn(conn, address, config)
	if err != nil {
		return nil, explainSSH(err, o.Password)
	}
	client := ssh.NewClient(secured, channels, requests)
	w, err := startReceive(client, u.Path)
	if err != nil {
		client.Close()
		return nil, explainSSH(err, o.Password)
	}
	w.secret = o.Password
	return w, nil
}

// pin makes a configuration accept only the host keys in the text of a known_hosts file.
func pin(config *ssh.ClientConfig, address string, known []byte) error {
	file, err := os.CreateTemp("", "known-hosts-*") // the library reads files only
	if err != nil {
		return fmt.Errorf("writing the host keys to a file: %w", err)
	}
	defer os.Remove(file.Name())
	_, err = file.Write(known)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("writing the host keys to a file: %w", err)
	}
	keys, err := knownhosts.NewDB(file.Name())
	if err != nil {
		return fmt.Errorf("%w: the list of host keys is malformed: it must have the format of a known_hosts file", ErrHostKey)
	}
	config.HostKeyCallback = keys.HostKeyCallback()
	if config.HostKeyAlgorithms = keys.HostKeyAlgorithms(address); len(config.HostKeyAlgorithms) == 0 {
		return fmt.Errorf("%w: the list has no key of %s", ErrHostKey, address)
	}
	return nil
}

// explainSSH words an error of the library, which can contain texts of the server.
func explainSSH(err error, secret string) error {
	switch {
	case knownhosts.IsHostKeyChanged(err) || knownhosts.IsHostUnknown(err):
		return fmt.Errorf("%w: it may be another server, or have a new key", ErrHostKey)
	case strings.Contains(err.Error(), "unable to authenticate"):
		return ErrCredentials
	}
	return fmt.Errorf("connecting with ssh: %s", words(err.Error(), secret))
}

// startReceive starts receive-pack for a repository.
func startReceive(client *ssh.Client, path string) (*wire, error) {
	session, err := client.NewSession()
	if err != nil {
		return nil, fmt.Errorf("opening a session: %w", err)
	}
	in, err := session.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := session.StdoutPipe()
	if err != nil {
		return nil, err
	}
	said := &process.Tail{Limit: process.KeptStderr}
	session.Stderr = said
	if err := session.Start("git-receive-pack " + quote(path)); err != nil {
		return nil, fmt.Errorf("starting git-receive-pack: %w", err)
	}
	ended := make(chan struct{})
	go func() { // ends with the connection
		defer close(ended)
		_ = session.Wait()
	}()
	return &wire{
		Reader: out, Writer: in, finish: func() { _ = in.Close() }, close: func() { client.Close() },
		said: func() string {
			client.Close()
			<-ended
			return said.String()
		},
	}, nil
}

// quote quotes a word for a shell as Git does.
func quote(word string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(word) + "'"
}
