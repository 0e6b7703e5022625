package transfer

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/forgeplane/forgeplane/internal/git/internal/process"
)

// target identifies another repository.
type target struct {
	URL                string
	Username, Password string
	Proxy              string
	allowFile          bool
}

// source is another repository: its URL without credentials, and the settings that commands need to reach it.
type source struct {
	url      string
	settings []process.Setting
	env      []string
	secrets  []string
	// authorized says that credentials are sent.
	authorized bool
}

// source checks the URL. The credentials are passed in the environment, which other users of the machine cannot see, unlike arguments.
func (t target) source() (*source, error) {
	u, err := url.Parse(t.URL)
	if err != nil { // the error of url.Parse quotes the URL with its credentials
		return nil, fmt.Errorf("%w: it is malformed", ErrURL)
	}
	switch {
	case u.Scheme == "file" && !t.allowFile, u.Scheme != "file" && u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%w: the scheme %q is not allowed", ErrURL, u.Scheme)
	case u.Scheme == "file" && (u.Host != "" || !filepath.IsAbs(u.Path)):
		return nil, fmt.Errorf("%w: a file URL must have an absolute path and no host", ErrURL)
	case u.Scheme != "file" && u.Host == "":
		return nil, fmt.Errorf("%w: it has no host", ErrURL)
	}
	if u.User != nil && t.Username == "" && t.Password == "" {
		t.Username = u.User.Username()
		t.Password, _ = u.User.Password()
	}
	u.User = nil
	s := &source{url: u.String(), settings: []process.Setting{{"protocol." + u.Scheme + ".allow", "always"}}}
	if err := s.through(t.Proxy); err != nil {
		return nil, err
	}
	if t.Username != "" || t.Password != "" {
		basic := base64.StdEncoding.EncodeToString([]byte(t.Username + ":" + t.Password))
		s.authorized = true
		s.secrets = append(s.secrets, basic, t.Password)
		if t.Password == "" {
			s.secrets = append(s.secrets, t.Username) // some servers accept a token as the user name
		}
		s.settings = append(s.settings, process.Setting{"http.extraHeader", "Authorization: Basic " + basic})
	}
	return s, nil
}

// through makes commands use a proxy, whatever the environment says.
func (s *source) through(proxy string) error {
	if proxy == "" {
		return nil
	}
	u, err := url.Parse(proxy)
	if err != nil || u.Host == "" {
		return fmt.Errorf("%w: the URL of the proxy is malformed", ErrURL)
	}
	if password, ok := u.User.Password(); ok {
		s.secrets = append(s.secrets, password)
	}
	s.settings = append(s.settings, process.Setting{"http.proxy", proxy}, process.Setting{"http.proxyAuthMethod", "basic"})
	s.env = append(s.env, "NO_PROXY=", "no_proxy=")
	return nil
}

func (s *source) local() bool { return strings.HasPrefix(s.url, "file:") }

// command returns a command that contacts the source.
func (s *source) command(args ...string) process.Command {
	return process.Command{Args: args, Settings: s.settings, Env: s.env, Secrets: s.secrets}
}
