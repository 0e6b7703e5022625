package main

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/forgeplane/forgeplane/test/bench/reference"
	"github.com/forgeplane/forgeplane/test/bench/traffic"
)

const (
	artifactRounds = 7
	// artifactSize is the size of an artifact in bytes.
	artifactSize = 500_000_000
	// archiveFiles times archiveFile is the size of the archive that a file is read out of, in bytes.
	archiveFiles, archiveFile = 1000, 1_000_000
	// archivePath is the path of that file, in the middle of the archive.
	archivePath = "reports/summary.txt"
)

// measureArtifacts makes a runner store artifacts, each for another job of the same pipeline, and reads them.
func (p *pipelines) measureArtifacts(ctx context.Context) error {
	// One job more reads what the others have stored.
	const jobs = 1 + artifactRounds + 1 + 1
	project, err := p.project(ctx, "stored", fmt.Sprintf("build: {parallel: %d, script: [make], artifacts: {paths: [bin]}}\n", jobs))
	if err != nil {
		return err
	}
	all, err := p.register(ctx, project, 1)
	if err != nil {
		return err
	}
	if err := p.launch(ctx, project, 1); err != nil {
		return err
	}
	var taken []job
	for len(taken) < jobs {
		given, err := all[0].ask(ctx)
		if err != nil {
			return err
		}
		if given != nil {
			taken = append(taken, *given)
		}
	}
	if p.bench.wants(rowArtifactUpload, rowArtifactDownload) {
		if err := p.measureTransfers(ctx, taken[0], taken[2:]); err != nil {
			return err
		}
	}
	if !p.bench.wants(rowArtifactFile, rowArtifactFileHalf) {
		return nil
	}
	return p.measureFile(ctx, project, taken[1])
}

// measureTransfers compares uploads of artifacts of several jobs, and downloads of the last one by the runner of another job, with those of a server of
// files.
func (p *pipelines) measureTransfers(ctx context.Context, reader job, of []job) (err error) {
	files := filepath.Join(p.bench.directory, "artifacts")
	if err := os.Mkdir(files, 0o700); err != nil {
		return err
	}
	server, err := reference.StartFiles(ctx, files)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	content := make([]byte, artifactSize)
	if _, err := rand.Read(content); err != nil {
		return err
	}
	p.bench.say("storing %d artifacts", len(of))
	upload := func(round int) (float64, error) {
		settle()
		return speed(func() error { return p.upload(ctx, of[round], content) })
	}
	put := func(round int) (float64, error) {
		settle()
		return speed(func() error {
			address := fmt.Sprintf("http://%s/%d", server.Address, round)
			request, err := http.NewRequestWithContext(ctx, http.MethodPut, address, bytes.NewReader(content))
			if err != nil {
				return err
			}
			return p.expect(request, http.StatusOK)
		})
	}
	last := len(of) - 1
	if _, err := upload(last); err != nil {
		return err
	}
	if _, err := put(last); err != nil {
		return err
	}
	o, r, err := alternate(exactly(artifactRounds), upload, put)
	if err != nil {
		return err
	}
	p.bench.record(rowArtifactUpload, o, r)
	ours, err := p.request(ctx, fmt.Sprintf("%s/api/v4/jobs/%d/artifacts", p.URL(), of[last].ID))
	if err != nil {
		return err
	}
	ours.Header = http.Header{"Job-Token": {reader.Token}}
	same, err := p.request(ctx, fmt.Sprintf("http://%s/%d", server.Address, last))
	if err != nil {
		return err
	}
	if o, r, err = alternate(exactly(artifactRounds), download(ctx, ours), download(ctx, same)); err != nil {
		return err
	}
	p.bench.record(rowArtifactDownload, o, r)
	return nil
}

// speed returns how many megabytes of an artifact are transferred in a second.
func speed(transfer func() error) (float64, error) {
	took, err := timed(transfer)
	return artifactSize / 1e3 / took, err
}

// download returns a function that reads an artifact completely, with a new connection each time.
func download(ctx context.Context, request *http.Request) func(int) (float64, error) {
	return func(int) (float64, error) {
		return speed(func() (err error) {
			c, err := traffic.Plain(request)(ctx)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, c.Close()) }()
			status, err := c.Exchange(ctx)
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("%s was answered with %d", request.URL.Path, status)
			}
			return err
		})
	}
}

// upload stores the archive of a job in the way of its runner.
func (p *pipelines) upload(ctx context.Context, of job, content []byte) error {
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	if _, err := w.CreateFormFile("file", "artifacts.zip"); err != nil {
		return err
	}
	begin := form.Len()
	if err := w.Close(); err != nil {
		return err
	}
	body := io.MultiReader(bytes.NewReader(form.Bytes()[:begin]), bytes.NewReader(content), bytes.NewReader(form.Bytes()[begin:]))
	url := fmt.Sprintf("%s/api/v4/jobs/%d/artifacts?artifact_type=archive&artifact_format=zip", p.URL(), of.ID)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		return err
	}
	request.ContentLength = int64(form.Len() + len(content))
	request.Header.Set("JOB-TOKEN", of.Token)
	request.Header.Set("Content-Type", w.FormDataContentType())
	return p.expect(request, http.StatusCreated)
}

// expect sends a request of a runner, whose answer must have a status.
func (p *pipelines) expect(request *http.Request, status int) error {
	answer, text, err := do(p.runners, request)
	if err == nil && answer.StatusCode != status {
		err = fmt.Errorf("%s was answered with %s: %s", request.URL.Path, answer.Status, text)
	}
	return err
}

// measureFile reads one file out of a large archive, and compares the answers with those of a handler that writes the same bytes.
func (p *pipelines) measureFile(ctx context.Context, project int64, of job) error {
	content, err := archive()
	if err != nil {
		return err
	}
	p.bench.say("storing an archive of %.2f GB", float64(len(content))/1e9)
	if err := p.upload(ctx, of, content); err != nil {
		return err
	}
	return p.measureRate(ctx, question{
		row: rowArtifactFile, half: rowArtifactFileHalf, path: fmt.Sprintf("/projects/%d/jobs/%d/artifacts/%s", project, of.ID, archivePath),
	})
}

// archive returns a large archive in which only one file is compressed, as the others are random.
func archive() ([]byte, error) {
	packed := bytes.NewBuffer(make([]byte, 0, archiveFiles*(archiveFile+1000)))
	file := make([]byte, archiveFile)
	if _, err := rand.Read(file); err != nil {
		return nil, err
	}
	z := zip.NewWriter(packed)
	for n := range archiveFiles {
		header, content := &zip.FileHeader{Name: fmt.Sprintf("bin/program-%04d", n), Method: zip.Store}, file
		if n == archiveFiles/2 {
			header, content = &zip.FileHeader{Name: archivePath, Method: zip.Deflate}, []byte(strings.Repeat("A line of a report that is read often.\n", 200))
		}
		w, err := z.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(content); err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return packed.Bytes(), err
}
