package hook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// PreReceive is the pre-receive hook. It asks the server about the updates that git writes to stdin, shows the answer, and
// returns the exit code: 0 only if the server accepts the push.
func PreReceive(stdin io.Reader, stderr io.Writer, getenv func(string) string) int {
	return preReceive(stdin, stderr, getenv, answerTimeout)
}

func preReceive(stdin io.Reader, stderr io.Writer, getenv func(string) string, patience time.Duration) int {
	v, err := ask(stdin, getenv, patience)
	if err != nil {
		v = Verdict{Text: fmt.Sprintf("The server could not check this push, so nothing was changed: %v.\n"+
			"Try again later, and tell an administrator if the problem persists.", err)}
	}
	if v.Text != "" {
		fmt.Fprintln(stderr, strings.TrimSuffix(v.Text, "\n"))
	}
	if !v.Accepted {
		return 1
	}
	return 0
}

// ask returns errors that are fit for the person who pushes.
func ask(stdin io.Reader, getenv func(string) string, patience time.Duration) (Verdict, error) {
	socket, token := getenv(SocketEnv), getenv(TokenEnv)
	if socket == "" || token == "" {
		return Verdict{}, errors.New("it was not started by the server")
	}
	conn, err := (&net.Dialer{Timeout: sendTimeout}).DialContext(context.Background(), "unix", socket)
	if err != nil {
		return Verdict{}, errors.New("the component that checks pushes cannot be reached")
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return Verdict{}, errors.New("the connection cannot be set up")
	}
	if err := writePush(conn, token, getenv("GIT_QUARANTINE_PATH"), stdin); errors.Is(err, errMalformed) {
		return Verdict{}, errors.New("a ref has an invalid name")
	} else if err != nil {
		return Verdict{}, errors.New("the connection to the component that checks pushes was lost")
	}
	v, err := readVerdict(conn)
	if err != nil {
		return Verdict{}, errors.New("the component that checks pushes did not answer")
	}
	return v, nil
}
