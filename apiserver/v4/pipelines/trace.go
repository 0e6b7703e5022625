package pipelines

import (
	"context"
	"io"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

func (f *Family) trace(ctx context.Context, s auth.ProjectRecord[foundJob], _ *endpoint.None) (endpoint.Content, error) {
	size, err := f.Activity.Pipelines.LogSize(ctx, s.Record.ID)
	if err != nil {
		return endpoint.Content{}, err
	}
	return endpoint.Content{Type: "text/plain; charset=utf-8", Size: size, Write: func(w io.Writer) error {
		for at := int64(0); at < size; {
			piece, err := f.Activity.Pipelines.ReadLog(ctx, s.Record.ID, at)
			if err != nil {
				return err
			}
			if len(piece) == 0 {
				return io.ErrUnexpectedEOF // it was erased meanwhile
			}
			piece = piece[:min(int64(len(piece)), size-at)]
			if _, err := w.Write(piece); err != nil {
				return err
			}
			at += int64(len(piece))
		}
		return nil
	}}, nil
}
