package main

import (
	"slices"
	"strings"

	"github.com/forgeplane/forgeplane/test/bench/figures"
)

// These are the rows, by the names that select them.
const (
	rowReady    = "protections/ready"
	rowReadyCPU = "protections/ready-cpu"

	rowRestart     = "restart/done"
	rowRestartCPU  = "restart/done-cpu"
	rowWrites      = "restart/writes"
	rowMemory      = "restart/memory"
	rowPeak        = "restart/memory-peak"
	rowFreshChange = "restart/fresh-change"
	rowReconcile   = "restart/reconcile"
	rowIdle        = "restart/idle"

	rowClone      = "git/clone"
	rowCloneLarge = "git/clone-large"
	rowCloneMany  = "git/clone-16"
	rowFork       = "git/fork"
	rowMove       = "git/move"
	rowMovePause  = "git/move-pause"
	rowMoveBlobs  = "git/move-blobs"

	rowEmpty       = "shard/empty"
	rowEmptyCPU    = "shard/empty-cpu"
	rowEmptyCores  = "shard/empty-cores"
	rowEmptyMemory = "shard/empty-memory"

	rowList = "git/ls-remote"

	rowCloneBeside     = "git/clone-beside-64"
	rowCloneBesideSame = "git/clone-beside-64-same"

	rowPush      = "git/push"
	rowPushRules = "git/push-500-rules"

	rowMirrorPush       = "mirrors/push"
	rowMirrorIdle       = "mirrors/idle"
	rowMirrorIdleWrites = "mirrors/idle-writes"

	rowRESTRule       = "rest/protected-branch"
	rowRESTRuleSlow   = "rest/protected-branch-p99"
	rowRESTProject    = "rest/project"
	rowRESTUser       = "rest/user"
	rowRESTRules      = "rest/protected-branches"
	rowRESTProjects   = "rest/projects"
	rowRESTCreate     = "rest/create"
	rowRESTMemory     = "rest/memory"
	rowRESTMemoryPeak = "rest/memory-peak"

	rowProjectCreate = "projects/create"
	rowProjectUse    = "projects/use"
	rowProjectReady  = "projects/ready"

	rowLabelList      = "labels/list"
	rowGroupLabelList = "labels/group-list"
	rowLabelCreate    = "labels/create"
	rowLabelApply     = "labels/apply"

	rowContentTree              = "content/tree"
	rowContentTreeHalf          = "content/tree-p50"
	rowContentBranches          = "content/branches"
	rowContentTags              = "content/tags"
	rowContentBlob              = "content/blob"
	rowContentBlobHalf          = "content/blob-p50"
	rowContentRaw               = "content/raw"
	rowContentCommits           = "content/commits"
	rowContentCompare           = "content/compare"
	rowContentCompareAgain      = "content/compare-again"
	rowContentMergeBase         = "content/merge-base"
	rowContentContributors      = "content/contributors"
	rowContentContributorsAgain = "content/contributors-again"
	rowContentArchive           = "content/archive"
	rowContentProcesses         = "content/processes"
	rowContentMemory            = "content/memory"

	rowRegistryPush  = "registry/push"
	rowRegistryPull  = "registry/pull"
	rowRegistryToken = "registry/token"
	rowRegistryTags  = "registry/tags"
	rowCleanup       = "registry/cleanup"

	rowHandOut              = "pipelines/hand-out"
	rowIdleRunners          = "pipelines/idle-runners"
	rowTrace                = "pipelines/trace"
	rowArtifactUpload       = "pipelines/artifact-upload"
	rowArtifactDownload     = "pipelines/artifact-download"
	rowArtifactFile         = "pipelines/artifact-file"
	rowArtifactFileHalf     = "pipelines/artifact-file-p50"
	rowPipelineList         = "pipelines/list"
	rowPipelineListFiltered = "pipelines/list-filtered"
	rowPipelineListBranches = "pipelines/list-branches"
	rowJobList              = "pipelines/jobs"

	rowMergeRequestList   = "merge-requests/list"
	rowMergeRequestFilter = "merge-requests/filter-p50"
	rowMergeRequest       = "merge-requests/get"
	rowMergeRequestDiff   = "merge-requests/diff-p50"
	rowMergeRequestNotes  = "merge-requests/notes"
	rowMerge              = "merge-requests/merge"

	rowFirstStart  = "start/first"
	rowSecondStart = "start/second"
)

var (
	restartRows    = []string{rowRestart, rowRestartCPU, rowWrites, rowMemory, rowPeak, rowFreshChange, rowReconcile, rowIdle}
	protectionRows = append([]string{rowReady, rowReadyCPU}, restartRows...)
	gitRows        = []string{rowClone, rowCloneLarge, rowFork, rowMove, rowMovePause, rowMoveBlobs, rowCloneMany, rowCloneBeside, rowCloneBesideSame, rowList, rowPush, rowPushRules}
	shardRows      = []string{rowEmpty, rowEmptyCPU, rowEmptyCores, rowEmptyMemory}
	cleanupRows    = []string{rowCleanup}
	mirrorRows     = []string{rowMirrorPush, rowMirrorIdle, rowMirrorIdleWrites}
	rateRows       = append([]string{rowRESTRuleSlow}, rates()...)
	restRows       = append([]string{rowRESTCreate, rowRESTMemory, rowRESTMemoryPeak}, rateRows...)
	projectRows    = []string{rowProjectCreate, rowProjectUse, rowProjectReady}
	labelRows      = []string{rowLabelList, rowGroupLabelList, rowLabelCreate, rowLabelApply}
	contentRows    = []string{
		rowContentTree, rowContentTreeHalf, rowContentBranches, rowContentTags,
		throughKubernetes(rowContentTree), throughKubernetes(rowContentBranches), throughKubernetes(rowContentTags),
		rowContentBlob, rowContentBlobHalf, rowContentRaw, rowContentCommits, rowContentCompare,
		rowContentCompareAgain, rowContentMergeBase, rowContentContributors, rowContentContributorsAgain, rowContentArchive,
		rowContentProcesses, rowContentMemory,
	}
	registryRows = []string{rowRegistryPush, rowRegistryPull, rowRegistryToken, rowRegistryTags}
	pipelineRows = []string{
		rowHandOut, rowIdleRunners, rowTrace, rowArtifactUpload, rowArtifactDownload, rowArtifactFile, rowArtifactFileHalf,
		rowPipelineList, rowPipelineListFiltered, rowPipelineListBranches, rowJobList,
	}
	mergeRequestRows = []string{rowMerge, rowMergeRequest, rowMergeRequestDiff, rowMergeRequestList, rowMergeRequestFilter, rowMergeRequestNotes}
	startRows        = []string{rowFirstStart, rowSecondStart}
)

// rates are the rows of requests to the REST API, at both doors.
func rates() []string {
	all := []string{rowRESTRule, rowRESTProject, rowRESTUser, rowRESTRules, rowRESTProjects}
	for _, row := range all[:len(all):len(all)] {
		all = append(all, throughKubernetes(row))
	}
	return all
}

// throughKubernetes returns the name of the row of the same request through kube-apiserver.
func throughKubernetes(row string) string {
	return strings.Replace(row, "/", "-kubernetes/", 1)
}

// rows returns every row, not measured yet.
func rows() []*figures.Row {
	const backend, cache, byHand = "git http-backend", "informers alone", "git clone --mirror, git fsck"
	all := []*figures.Row{
		{ID: rowReady, Name: "1,000 new protections Ready", Unit: figures.Seconds, Against: "bare writes", Bound: atMost(10)},
		{ID: rowReadyCPU, Name: "1,000 new protections Ready, CPU of all servers", Unit: figures.Seconds, Against: "bare writes"},

		{ID: rowRestart, Name: "restart with 10,000, until all are reconciled", Unit: figures.Seconds, Against: cache},
		{ID: rowRestartCPU, Name: "restart with 10,000, until all are reconciled, CPU", Unit: figures.Seconds, Against: cache},
		{ID: rowWrites, Name: "restart with 10,000, requests that write", Unit: figures.Writes, Bound: atMost(0)},
		{ID: rowMemory, Name: "restart with 10,000, resident memory", Unit: figures.Megabytes, Against: cache, Bound: atMost(350)},
		{ID: rowPeak, Name: "restart with 10,000, resident memory at its peak", Unit: figures.Megabytes, Against: cache, Bound: atMost(350)},
		{ID: rowFreshChange, Name: "restart with 10,000, a fresh change Ready", Unit: figures.Seconds, Against: cache, Bound: ratio(1.3)},
		{ID: rowReconcile, Name: "restart with 10,000, mean reconcile of an unchanged one", Unit: figures.Milliseconds},
		{ID: rowIdle, Name: "CPU while nothing happens, 10,000 protections", Unit: figures.PercentCPU, Against: "kube-apiserver"},

		{ID: rowClone, Name: "clone of this repository", Unit: figures.Milliseconds, Against: backend, Bound: ratio(1.1)},
		{ID: rowCloneLarge, Name: "clone of 5,000 commits", Unit: figures.Milliseconds, Against: backend, Bound: ratio(1.1)},
		{ID: rowFork, Name: "fork of 5,000 commits, the repository", Unit: figures.Milliseconds, Against: "git clone --bare --shared", Bound: ratio(1.2)},
		{ID: rowMove, Name: "move of 5,000 commits to another storage", Unit: figures.Milliseconds, Against: byHand, Bound: ratio(1.2)},
		{ID: rowMovePause, Name: "the longest push during a move of 5,000 commits, 99th percentile", Unit: figures.Milliseconds, Against: "without a move", Bound: atMost(1000)},
		{ID: rowMoveBlobs, Name: "move of 1 GB of large blobs to another storage", Unit: figures.Milliseconds, Against: byHand, Bound: ratio(1.2)},
		{ID: rowCloneMany, Name: "16 clients clone this repository at once", Unit: figures.Milliseconds, Against: backend, Bound: ratio(1.1)},
		{ID: rowCloneBeside, Name: "clone of this repository, beside 64 slow ones by another client", Unit: figures.Milliseconds, Against: "without them", Bound: ratio(1.5)},
		{ID: rowCloneBesideSame, Name: "clone of 20,000 commits, beside 64 slow ones of them by another client", Unit: figures.Milliseconds, Against: "without them", Bound: ratio(1.5)},
		{ID: rowList, Name: "ls-remote of this repository", Unit: figures.Milliseconds, Against: backend},
		{ID: rowPush, Name: "push of one commit to this repository", Unit: figures.Milliseconds, Against: backend, Bound: ratio(1.5)},
		{ID: rowPushRules, Name: "push of one commit, 500 protection rules", Unit: figures.Milliseconds, Against: "1 rule",
			Bound: &figures.Bound{Of: figures.Difference, AtMost: 5}},

		{ID: rowEmpty, Name: "500 small projects moved off a storage that then is deleted, each", Unit: figures.Milliseconds, Against: byHand},
		{ID: rowEmptyCPU, Name: "the same, CPU for each", Unit: figures.Milliseconds, Against: byHand},
		{ID: rowEmptyCores, Name: "the same, CPU", Unit: figures.PercentCPU, Against: byHand},
		{ID: rowEmptyMemory, Name: "the same, resident memory at its peak", Unit: figures.Megabytes, Against: "before it"},

		{ID: rowMirrorPush, Name: "one commit from the answer to its push to a mirror", Unit: figures.Milliseconds, Against: "1.3 bare pushes of it",
			Bound: &figures.Bound{Of: figures.Difference, AtMost: 50}},
		{ID: rowMirrorIdle, Name: "CPU while nothing happens, 500 mirrors", Unit: figures.PercentCPU, Against: "no mirrors",
			Bound: &figures.Bound{Of: figures.Difference, AtMost: 0.5}},
		{ID: rowMirrorIdleWrites, Name: "requests that write while nothing happens, 500 mirrors", Unit: figures.Writes, Bound: atMost(0)},
	}
	all = slices.Concat(all, restRowsUnmeasured(), contentRowsUnmeasured(), hostileRowsUnmeasured(), pipelineRowsUnmeasured(), mergeRequestRowsUnmeasured())
	return append(all,
		&figures.Row{ID: rowProjectCreate, Name: "POST a project", Unit: figures.Milliseconds, Against: "a create in Kubernetes", Bound: ratio(3)},
		&figures.Row{ID: rowProjectUse, Name: "POST a project and at once a file in it", Unit: figures.Milliseconds, Against: "Kubernetes and a watch", Bound: ratio(1.5)},
		&figures.Row{ID: rowProjectReady, Name: "2,500 projects from one kubectl apply, Ready", Unit: figures.PerSecond, Against: "without Forgeplane",
			Bound: &figures.Bound{Of: figures.Ours, AtLeast: 60}},
		&figures.Row{ID: rowLabelList, Name: "list 20 of 200 labels", Unit: figures.PerSecond, Against: "a bare handler",
			Bound: &figures.Bound{Of: figures.Ratio, AtLeast: 0.25}},
		&figures.Row{ID: rowGroupLabelList, Name: "list 20 of 200 labels of a group", Unit: figures.PerSecond, Against: "a bare handler",
			Bound: &figures.Bound{Of: figures.Ratio, AtLeast: 0.25}},
		&figures.Row{ID: rowLabelCreate, Name: "POST a label", Unit: figures.Milliseconds, Against: "a create in Kubernetes", Bound: ratio(3)},
		&figures.Row{ID: rowLabelApply, Name: "1,000 labels from one kubectl apply, all Ready", Unit: figures.Seconds, Against: "without Forgeplane", Bound: atMost(15)},
		&figures.Row{ID: rowRegistryPush, Name: "push of an image of 1 GB", Unit: figures.Milliseconds, Against: upstream, Bound: ratio(1.05)},
		&figures.Row{ID: rowRegistryPull, Name: "pull of an image of 1 GB", Unit: figures.Milliseconds, Against: upstream, Bound: ratio(1.05)},
		&figures.Row{ID: rowRegistryToken, Name: "token for a pull", Unit: figures.PerSecond, Against: "a bare handler that signs", Bound: least(0.7)},
		&figures.Row{ID: rowRegistryTags, Name: "list 20 of 10,000 tags", Unit: figures.PerSecond, Against: bareHandler,
			Bound: &figures.Bound{Of: figures.Ours, AtLeast: 1500}},
		&figures.Row{ID: rowCleanup, Name: "cleanup of 10,000 tags of images with different times", Unit: figures.PerSecond, Against: "removing their directories by hand",
			Bound: &figures.Bound{Of: figures.Ours, AtLeast: 300}},
		&figures.Row{ID: rowSecondStart, Name: "make run again, to Ready", Unit: figures.Seconds, Against: "control plane alone", Bound: atMost(15)},
		&figures.Row{ID: rowFirstStart, Name: "fresh clone and empty caches, to Ready", Unit: figures.Seconds, Bound: atMost(540)},
	)
}

func restRowsUnmeasured() []*figures.Row {
	all, aggregated := ratesUnmeasured([]rate{
		{rowRESTRule, "GET one protected branch", 0.3, 0.4},
		{rowRESTProject, "GET a project", 0.3, 0.4},
		{rowRESTUser, "GET /user", 0.3, 0.4},
		{rowRESTRules, "list 20 of 45 protected branches", 0.25, 0.4},
		{rowRESTProjects, "list 20 of 2,500 projects", 0.15, 0.25},
	})
	all = append(all, &figures.Row{
		ID: rowRESTRuleSlow, Name: "GET one protected branch, 99th percentile", Unit: figures.Milliseconds, Against: bareHandler, Bound: atMost(20),
	})
	return append(append(all, aggregated...),
		&figures.Row{ID: rowRESTCreate, Name: "POST a protected branch", Unit: figures.Milliseconds, Against: "a create in Kubernetes", Bound: ratio(3)},
		&figures.Row{ID: rowRESTMemory, Name: "resident memory with 2,500 projects of 20 rules", Unit: figures.Megabytes, Against: "informers alone", Bound: atMost(600)},
		&figures.Row{ID: rowRESTMemoryPeak, Name: "the same at its peak", Unit: figures.Megabytes, Against: "informers alone"},
	)
}

const (
	bareHandler = "a bare handler"
	fileServer  = "a file server"
	upstream    = "the distribution registry alone"
)

// rate is a request whose answers are counted, with the minimum ratios to the answers of a bare handler, for each server.
type rate struct {
	id, name               string
	least, leastAggregated float64
}

// ratesUnmeasured returns the rows of requests to Forgeplane's own listener, and of the same requests through kube-apiserver.
func ratesUnmeasured(rates []rate) (direct, aggregated []*figures.Row) {
	for _, r := range rates {
		direct = append(direct, &figures.Row{ID: r.id, Name: r.name, Unit: figures.PerSecond, Against: bareHandler, Bound: least(r.least)})
		aggregated = append(aggregated, &figures.Row{
			ID: throughKubernetes(r.id), Name: r.name + " through kube-apiserver", Unit: figures.PerSecond,
			Against: bareHandler + " behind kube-apiserver", Bound: least(r.leastAggregated),
		})
	}
	return direct, aggregated
}

func contentRowsUnmeasured() []*figures.Row {
	more := func(value float64) *figures.Bound { return &figures.Bound{Of: figures.Difference, AtMost: value} }
	all, aggregated := ratesUnmeasured([]rate{
		{rowContentTree, "list 20 files of 5,000 commits", 0.15, 0.4},
		{rowContentBranches, "list 20 of 500 branches", 0.15, 0.3},
		{rowContentTags, "list 20 of 200 annotated tags", 0.15, 0.3},
	})
	return append(append(all, aggregated...), []*figures.Row{
		{ID: rowContentTreeHalf, Name: "list 20 files, median at 8 connections", Unit: figures.Milliseconds, Against: bareHandler, Bound: atMost(2)},
		{ID: rowContentBlob, Name: "GET a small blob", Unit: figures.PerSecond, Against: bareHandler, Bound: least(0.15)},
		{ID: rowContentBlobHalf, Name: "GET a small blob, median at 8 connections", Unit: figures.Milliseconds, Against: bareHandler, Bound: atMost(2)},
		{ID: rowContentRaw, Name: "GET a raw blob of 10 MB", Unit: figures.PerSecond, Against: fileServer, Bound: least(0.7)},
		{
			ID: rowContentCommits, Name: "list 20 of 5,000 commits", Unit: figures.PerSecond, Against: "git log",
			Bound: &figures.Bound{Of: figures.Ours, AtLeast: 400},
		},
		{ID: rowContentCompare, Name: "compare 200 commits", Unit: figures.Milliseconds, Against: "git diff and git log", Bound: ratio(1.3)},
		{ID: rowContentCompareAgain, Name: "the same 200 commits again", Unit: figures.Milliseconds, Bound: atMost(5)},
		{ID: rowContentMergeBase, Name: "merge base", Unit: figures.Milliseconds, Against: "git merge-base", Bound: more(2)},
		{ID: rowContentContributors, Name: "contributors of 5,000 commits", Unit: figures.Milliseconds, Against: "git shortlog", Bound: ratio(1.2)},
		{ID: rowContentContributorsAgain, Name: "the same contributors again", Unit: figures.Milliseconds, Bound: atMost(2)},
		{ID: rowContentArchive, Name: "archive as tar.gz", Unit: figures.Milliseconds, Against: "git archive | gzip", Bound: ratio(1.1)},
		{ID: rowContentProcesses, Name: "processes left after all of it", Unit: figures.Processes, Bound: atMost(0)},
		{ID: rowContentMemory, Name: "resident memory after all of it", Unit: figures.Megabytes, Against: "before it", Bound: more(kept)},
	}...)
}

func least(value float64) *figures.Bound { return &figures.Bound{Of: figures.Ratio, AtLeast: value} }

func atMost(value float64) *figures.Bound { return &figures.Bound{Of: figures.Ours, AtMost: value} }

func ratio(value float64) *figures.Bound { return &figures.Bound{Of: figures.Ratio, AtMost: value} }
