// Package argocd judges objects in the way of Argo CD, with the health check that Forgeplane ships.
package argocd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	lua "github.com/yuin/gopher-lua" // the interpreter in Argo CD
	"github.com/yuin/gopher-lua/parse"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// These are the statuses of health that a check can return.
const (
	Healthy     = "Healthy"
	Progressing = "Progressing"
	Degraded    = "Degraded"
	Suspended   = "Suspended"
)

// limit is the time that Argo CD allows a check.
const limit = time.Second

// Health is the result of a check.
type Health struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

// Check is a health check. It can be used concurrently.
type Check struct{ script *lua.FunctionProto }

// Directory returns the directory of the checks in a checkout. It has the layout of Argo CD's own repository, in which _ stands for all kinds.
func Directory(checkout string) string {
	return filepath.Join(checkout, "config", "argocd", "resource_customizations", v1alpha1.GroupVersion.Group, "_")
}

// Read reads the check of all kinds in a checkout.
func Read(checkout string) (*Check, error) {
	path := filepath.Join(Directory(checkout), "health.lua")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the health check: %w", err)
	}
	parsed, err := parse.Parse(strings.NewReader(string(text)), path)
	if err != nil {
		return nil, fmt.Errorf("parsing the health check: %w", err)
	}
	script, err := lua.Compile(parsed, path)
	if err != nil {
		return nil, fmt.Errorf("compiling the health check: %w", err)
	}
	return &Check{script}, nil
}

// Of runs the check on an object, with the libraries and within the time that Argo CD allows.
func (c *Check) Of(object map[string]any) (Health, error) {
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for name, open := range map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := l.CallByParam(lua.P{Fn: l.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return Health{}, fmt.Errorf("opening the library %q: %w", name, err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	l.SetContext(ctx)
	l.SetGlobal("obj", value(l, object))
	if err := l.CallByParam(lua.P{Fn: l.NewFunctionFromProto(c.script), NRet: 1, Protect: true}); err != nil {
		return Health{}, fmt.Errorf("running the health check: %w", err)
	}
	result, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		return Health{}, fmt.Errorf("the health check returned a value of the type %s instead of a table", l.Get(-1).Type())
	}
	return Health{Status: lua.LVAsString(result.RawGetString("status")), Message: lua.LVAsString(result.RawGetString("message"))}, nil
}

// Verify runs the check on an object of Forgeplane, and returns an error if kstatus judges otherwise or the health has no message.
func (c *Check) Verify(object *unstructured.Unstructured) (Health, error) {
	is, err := c.Of(object.Object)
	if err != nil {
		return is, err
	}
	want, err := expected(object)
	if err != nil {
		return is, err
	}
	if is.Status != want {
		return is, fmt.Errorf("the health check says %s, and kstatus and the conditions mean %s", is.Status, want)
	}
	if is.Message == "" {
		return is, fmt.Errorf("the health check says %s without a message", is.Status)
	}
	return is, nil
}

// expected returns the status of health that follows from the judgement of kstatus.
func expected(object *unstructured.Unstructured) (string, error) {
	judged, err := status.Compute(object)
	if err != nil {
		return "", fmt.Errorf("judging an object by kstatus: %w", err)
	}
	switch judged.Status {
	case status.FailedStatus:
		return Degraded, nil
	case status.CurrentStatus:
	default:
		return Progressing, nil
	}
	var found struct {
		Status v1alpha1.CommonStatus `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &found); err != nil {
		return "", fmt.Errorf("reading the conditions of an object: %w", err)
	}
	ready := meta.FindStatusCondition(found.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil || ready.Status != metav1.ConditionTrue:
		return Progressing, nil
	case ready.Reason == v1alpha1.ReasonSuspended:
		return Suspended, nil
	default:
		return Healthy, nil
	}
}

// value returns a value of an object for Lua.
func value(l *lua.LState, of any) lua.LValue {
	switch of := of.(type) {
	case bool:
		return lua.LBool(of)
	case string:
		return lua.LString(of)
	case int64:
		return lua.LNumber(of)
	case float64:
		return lua.LNumber(of)
	case []any:
		table := l.NewTable()
		for _, element := range of {
			table.Append(value(l, element))
		}
		return table
	case map[string]any:
		table := l.NewTable()
		for key, element := range of {
			table.RawSetString(key, value(l, element))
		}
		return table
	default:
		return lua.LNil
	}
}
