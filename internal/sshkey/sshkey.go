// Package sshkey reads public SSH keys as people declare them.
package sshkey

import (
	"errors"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Parse parses a plain key in the form of an authorized_keys line. It rejects options that would be ignored, because users could rely on
// them.
func Parse(line string) (ssh.PublicKey, error) {
	line = strings.TrimSpace(line)
	key, _, options, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		return nil, err
	}
	_, certificate := key.(*ssh.Certificate)
	switch {
	case strings.ContainsAny(line, "\r\n"):
		return nil, errors.New("it has more than one line")
	case len(options) > 0:
		return nil, errors.New("it begins with options, which have no effect here")
	case certificate:
		return nil, errors.New("it is a certificate")
	}
	return key, nil
}
