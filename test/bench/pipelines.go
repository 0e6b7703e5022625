package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/forgeplane/forgeplane/test/bench/figures"
	"github.com/forgeplane/forgeplane/test/bench/gitclient"
	"github.com/forgeplane/forgeplane/test/bench/reference"
	"github.com/forgeplane/forgeplane/test/bench/testbed"
	"github.com/forgeplane/forgeplane/test/bench/traffic"
	"github.com/forgeplane/forgeplane/test/bench/usage"
)

const (
	// handOutRunners is the number of runners that ask at once, for the jobs of handOutPipelines pipelines with pipelineJobs jobs each.
	handOutRunners                 = 50
	handOutPipelines, pipelineJobs = 10, 100
	handOutJobs                    = handOutPipelines * pipelineJobs
	handOutRounds                  = 5
	handOutTimeout                 = 2 * time.Minute

	idleRunners = 1000
	// pollTime is the time for which the server lets a runner wait.
	pollTime = 50 * time.Second

	fewPipelines, manyPipelines = 100, 10_000
	// advanceTimeout limits the time until the jobs of new pipelines wait for runners.
	advanceTimeout = 5 * time.Minute
)

func pipelineRowsUnmeasured() []*figures.Row {
	all := []*figures.Row{
		{
			ID: rowHandOut, Name: "jobs handed out to 50 runners", Unit: figures.PerSecond, Against: bareHandler,
			Bound: &figures.Bound{Of: figures.Ours, AtLeast: 200},
		},
		{
			ID: rowIdleRunners, Name: "CPU while 1,000 runners wait for jobs", Unit: figures.PercentCPU, Against: "no runners",
			Bound: &figures.Bound{Of: figures.Difference, AtMost: 5},
		},
		{
			ID: rowTrace, Name: "parts of 1 kB added to the logs of jobs", Unit: figures.PerSecond, Against: bareHandler,
			Bound: &figures.Bound{Of: figures.Ours, AtLeast: 1000},
		},
		{ID: rowArtifactUpload, Name: "upload of an artifact of 500 MB", Unit: figures.MegabytesPerSecond, Against: fileServer, Bound: least(0.6)},
		{ID: rowArtifactDownload, Name: "download of an artifact of 500 MB", Unit: figures.MegabytesPerSecond, Against: fileServer, Bound: least(0.6)},
		{ID: rowArtifactFile, Name: "GET a file out of an archive of 1 GB", Unit: figures.PerSecond, Against: bareHandler},
		{ID: rowArtifactFileHalf, Name: "GET a file out of an archive of 1 GB, median at 8 connections", Unit: figures.Milliseconds, Against: bareHandler, Bound: atMost(10)},
	}
	for _, l := range pipelineLists {
		// Half the answers in a second are twice the time for each.
		all = append(all, &figures.Row{ID: l.row, Name: l.name, Unit: figures.PerSecond, Against: "100 pipelines", Bound: least(0.5)})
	}
	return all
}

// pipelineLists are the lists of a project with many pipelines.
var pipelineLists = []struct{ row, name, path string }{
	{rowPipelineList, "list 20 of 10,000 pipelines", "pipelines?per_page=20"},
	{rowPipelineListFiltered, "list 20 of 10,000 pipelines of a branch with a status", "pipelines?ref=main&status=manual&per_page=20"},
	{rowPipelineListBranches, "list the newest of 10,000 pipelines of each branch", "pipelines?scope=branches&per_page=20"},
	{rowJobList, "list 20 jobs of 10,000 pipelines", "jobs?per_page=20"},
}

// pipelines is a testbed with projects that have CI configurations.
type pipelines struct {
	*rest
	client *gitclient.Client
	// runners is the client of all runners, with a connection for each.
	runners *http.Client
	// given has all jobs that runners have been given.
	given map[int64]bool
}

func (b *bench) measurePipelines(ctx context.Context) error {
	return b.with(ctx, "pipelines", func(ctx context.Context, t *testbed.Testbed) error {
		r, err := b.newREST(t)
		if err != nil {
			return err
		}
		p := &pipelines{rest: r, given: map[int64]bool{}}
		p.runners = &http.Client{Transport: &http.Transport{DialContext: dialFromSeveral(), MaxIdleConnsPerHost: idleRunners, DisableCompression: true}}
		defer p.runners.CloseIdleConnections()
		if p.client, err = b.client(t); err != nil {
			return err
		}
		if err := p.introduce(ctx); err != nil {
			return err
		}
		return b.measureParts(ctx,
			group{[]string{rowIdleRunners}, p.measureIdleRunners},
			group{[]string{rowHandOut, rowTrace}, p.measureHandOut},
			group{[]string{rowArtifactUpload, rowArtifactDownload, rowArtifactFile, rowArtifactFileHalf}, p.measureArtifacts},
			group{[]string{rowPipelineList, rowPipelineListFiltered, rowPipelineListBranches, rowJobList}, p.measureLists},
		)
	})
}

// project creates a project with a CI configuration, and returns its id.
func (p *pipelines) project(ctx context.Context, name, configuration string) (int64, error) {
	directory, err := newDirectory(p.bench.directory, "ci-"+name)
	if err != nil {
		return 0, err
	}
	if _, err := p.client.Run(ctx, directory, nil, "init", "--quiet", "--initial-branch=main"); err != nil {
		return 0, err
	}
	if err := os.WriteFile(filepath.Join(directory, ".gitlab-ci.yml"), []byte(configuration), 0o600); err != nil {
		return 0, err
	}
	for _, args := range [][]string{{"add", "."}, {"commit", "--quiet", "--message=Configure the pipeline"}} {
		if _, err := p.client.Run(ctx, directory, nil, args...); err != nil {
			return 0, err
		}
	}
	project := newProject(restNamespace, name, fileURL(directory))
	err = p.Create(ctx, project)
	return project.Spec.ID, err
}

// launch creates pipelines of a project, and returns when their jobs wait for runners or for a user.
func (p *pipelines) launch(ctx context.Context, project int64, number int) error {
	creates, limited := errgroup.WithContext(ctx)
	creates.SetLimit(creators)
	for range number {
		creates.Go(func() error { return p.post(limited, fmt.Sprintf("/projects/%d/pipeline", project), "ref=main") })
	}
	if err := creates.Wait(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, advanceTimeout, fmt.Errorf("new pipelines did not begin within %s", advanceTimeout))
	defer cancel()
	for {
		text, err := p.get(ctx, fmt.Sprintf("/projects/%d/pipelines?status=created&per_page=1", project))
		if err != nil || strings.TrimSpace(string(text)) == "[]" {
			return err
		}
		if pause(ctx, 100*time.Millisecond); ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// measureHandOut measures how fast runners get jobs, and then how fast they send logs.
func (p *pipelines) measureHandOut(ctx context.Context) error {
	project, err := p.project(ctx, "handed", fmt.Sprintf("test: {parallel: %d, script: [make test]}\n", pipelineJobs))
	if err != nil {
		return err
	}
	all, err := p.register(ctx, project, handOutRunners)
	if err != nil {
		return err
	}
	next := func() ([]job, time.Duration, error) {
		if err := p.launch(ctx, project, handOutPipelines); err != nil {
			return nil, 0, err
		}
		return p.handOut(ctx, all, handOutJobs)
	}
	p.bench.say("giving %d jobs to %d runners, %d times", handOutJobs, len(all), handOutRounds+1)
	taken, _, err := next() // it does not count
	if err != nil {
		return err
	}
	if p.bench.wants(rowHandOut) {
		if err := p.compareHandOut(ctx, taken[0].text, next); err != nil {
			return err
		}
	}
	if !p.bench.wants(rowTrace) {
		return nil
	}
	return p.measureTrace(ctx, taken)
}

// compareHandOut compares the jobs that runners get in a second with the answers of a handler that writes the same bytes as for one of them.
func (p *pipelines) compareHandOut(ctx context.Context, example []byte, next func() ([]job, time.Duration, error)) error {
	return p.bench.withBareHandler(ctx, reference.StartBytes, example, func(address string) error {
		same, err := p.request(ctx, "http://"+address+"/api/v4/jobs/request")
		if err != nil {
			return err
		}
		o, r, err := alternate(exactly(handOutRounds),
			func(int) (float64, error) {
				taken, took, err := next()
				return float64(len(taken)) / took.Seconds(), err
			},
			func(int) (float64, error) {
				result, err := traffic.Run(ctx, traffic.Through(p.runners, same), handOutRunners, rateTime)
				return result.Rate, err
			})
		p.bench.record(rowHandOut, o, r)
		return err
	})
}

// measureIdleRunners compares the work of Forgeplane while many runners wait for jobs, which there are not, and without runners.
func (p *pipelines) measureIdleRunners(ctx context.Context) error {
	project, err := p.project(ctx, "idle", "test: {script: [make test]}\n")
	if err != nil {
		return err
	}
	p.bench.say("making %d runners", idleRunners)
	all, err := p.register(ctx, project, idleRunners)
	if err != nil {
		return err
	}
	if err := p.AwaitQuiet(ctx, "project", 0); err != nil {
		return err
	}
	without, err := p.cpu(ctx)
	if err != nil {
		return err
	}
	polling, stop := context.WithCancel(ctx)
	defer stop()
	waiting, polling := errgroup.WithContext(polling)
	for n, r := range all {
		waiting.Go(func() error {
			pause(polling, pollTime*time.Duration(n)/idleRunners) // runners do not all begin at once
			return r.wait(polling)
		})
	}
	pause(polling, pollTime)
	with, err := p.cpu(polling)
	stop()
	if err := errors.Join(err, waiting.Wait()); err != nil {
		return err
	}
	p.bench.record(rowIdleRunners, []float64{with}, []float64{without})
	return nil
}

// cpu returns the share of a core that Forgeplane uses while a runner waits once.
func (p *pipelines) cpu(ctx context.Context) (percent float64, err error) {
	before, err := usage.CPUTime(p.PID())
	if err != nil {
		return 0, err
	}
	if pause(ctx, pollTime); ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	after, err := usage.CPUTime(p.PID())
	return 100 * (after - before).Seconds() / pollTime.Seconds(), err
}

// measureLists compares lists of a project that has many pipelines with the same lists of a project that has few.
func (p *pipelines) measureLists(ctx context.Context) error {
	const configuration = "deploy: {script: [make deploy], when: manual, allow_failure: false}\n"
	few, err := p.project(ctx, "few", configuration)
	if err != nil {
		return err
	}
	many, err := p.project(ctx, "many", configuration)
	if err != nil {
		return err
	}
	p.bench.say("making %d pipelines", manyPipelines)
	if err := errors.Join(p.launch(ctx, few, fewPipelines), p.launch(ctx, many, manyPipelines)); err != nil {
		return err
	}
	for _, l := range pipelineLists {
		if !p.bench.wants(l.row) {
			continue
		}
		ours, err := p.request(ctx, fmt.Sprintf("%s/api/v4/projects/%d/%s", p.URL(), many, l.path))
		if err != nil {
			return err
		}
		same, err := p.request(ctx, fmt.Sprintf("%s/api/v4/projects/%d/%s", p.URL(), few, l.path))
		if err != nil {
			return err
		}
		if err := p.compare(ctx, question{row: l.row}, traffic.Plain(ours), traffic.Plain(same)); err != nil {
			return fmt.Errorf("%s: %w", l.row, err)
		}
	}
	return nil
}
