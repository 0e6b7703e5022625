package process

import (
	"bytes"
	"io"
	"os"
)

const (
	tailLines = 15
	tailBytes = 16 << 10
)

// Tail returns the last lines that this process wrote to its log: at most 15 lines of at most 16 KiB together. If the log cannot be read, it
// returns the reason.
func (p *Process) Tail() string {
	file, err := os.Open(p.program.Log)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = file.Close() }()
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return err.Error()
	}
	from := max(p.logOffset, end-tailBytes)
	text, err := io.ReadAll(io.NewSectionReader(file, from, end-from))
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-tailLines):], []byte("\n")))
}
