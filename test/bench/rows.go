package main

import "github.com/forgeplane/forgeplane/test/bench/figures"

// The rows, by the names that choose them.
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
	rowList       = "git/ls-remote"
	rowPush       = "git/push"
	rowPushRules  = "git/push-500-rules"

	rowFirstStart  = "start/first"
	rowSecondStart = "start/second"
)

var (
	restartRows    = []string{rowRestart, rowRestartCPU, rowWrites, rowMemory, rowPeak, rowFreshChange, rowReconcile, rowIdle}
	protectionRows = append([]string{rowReady, rowReadyCPU}, restartRows...)
	gitRows        = []string{rowClone, rowCloneLarge, rowCloneMany, rowList, rowPush, rowPushRules}
	startRows      = []string{rowFirstStart, rowSecondStart}
)

// rows returns every row, not measured yet.
func rows() []*figures.Row {
	const backend, cache = "git http-backend", "informers alone"
	return []*figures.Row{
		{ID: rowReady, Name: "1,000 new protections Ready", Unit: figures.Seconds, Against: "bare writes", Bound: atMost(10)},
		{ID: rowReadyCPU, Name: "1,000 new protections Ready, CPU of all servers", Unit: figures.Seconds, Against: "bare writes"},

		{ID: rowRestart, Name: "restart with 10,000, until all are reconciled", Unit: figures.Seconds, Against: cache},
		{ID: rowRestartCPU, Name: "restart with 10,000, until all are reconciled, CPU", Unit: figures.Seconds, Against: cache},
		{ID: rowWrites, Name: "restart with 10,000, requests that write", Unit: figures.Writes, Bound: atMost(0)},
		{ID: rowMemory, Name: "restart with 10,000, resident memory", Unit: figures.Megabytes, Against: cache, Bound: atMost(350)},
		{ID: rowPeak, Name: "restart with 10,000, resident memory at its peak", Unit: figures.Megabytes, Against: cache, Bound: atMost(350)},
		{ID: rowFreshChange, Name: "restart with 10,000, a fresh change Ready", Unit: figures.Seconds, Against: cache, Bound: atMost(2)},
		{ID: rowReconcile, Name: "restart with 10,000, mean reconcile of an unchanged one", Unit: figures.Milliseconds},
		{ID: rowIdle, Name: "CPU while nothing happens, 10,000 protections", Unit: figures.PercentCPU, Against: "kube-apiserver"},

		{ID: rowClone, Name: "clone of this repository", Unit: figures.Milliseconds, Against: backend, Bound: ratio(1.1)},
		{ID: rowCloneLarge, Name: "clone of 5,000 commits", Unit: figures.Milliseconds, Against: backend, Bound: ratio(1.1)},
		{ID: rowCloneMany, Name: "16 clients clone this repository at once", Unit: figures.Milliseconds, Against: backend, Bound: ratio(1.1)},
		{ID: rowList, Name: "ls-remote of this repository", Unit: figures.Milliseconds, Against: backend},
		{ID: rowPush, Name: "push of one commit to this repository", Unit: figures.Milliseconds, Against: backend, Bound: ratio(1.5)},
		{ID: rowPushRules, Name: "push of one commit, 500 protection rules", Unit: figures.Milliseconds, Against: "1 rule",
			Bound: &figures.Bound{Of: figures.Difference, AtMost: 5}},

		{ID: rowSecondStart, Name: "make run again, to Ready", Unit: figures.Seconds, Against: "control plane alone", Bound: atMost(15)},
		{ID: rowFirstStart, Name: "fresh clone and empty caches, to Ready", Unit: figures.Seconds, Bound: atMost(600)},
	}
}

func atMost(value float64) *figures.Bound { return &figures.Bound{Of: figures.Ours, AtMost: value} }

func ratio(value float64) *figures.Bound { return &figures.Bound{Of: figures.Ratio, AtMost: value} }
