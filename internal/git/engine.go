// Package git is the Git engine: it uses the git binary to work on bare repositories in storage directories.
//
// An Engine runs the binary in a clean environment, so the git configuration of the machine, of the service's user and of the caller's
// environment has no effect. It keeps processes that read objects; Close ends them. A Repository is a cheap handle on a directory and holds
// nothing open. All methods are safe for concurrent use.
package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/utils/lru"

	"github.com/forgeplane/forgeplane/internal/fair"
)

// InternalRefs is the prefix of refs that the server uses internally: clients can neither see nor change them.
const InternalRefs = "refs/forgeplane/"

// Options configure an Engine.
type Options struct {
	// Binary is the git to run: a path, or a name to look up in PATH. The default is "git".
	Binary string
	// ReaderIdle is how long an idle process that reads objects is kept. The default is 10 seconds.
	ReaderIdle time.Duration
	// CommandTimeout limits a command on a repository if its context has no deadline. The default is a minute.
	CommandTimeout time.Duration
	// Limits are the limits of all repositories and processes.
	Limits Limits
	// Slots are shared by all callers.
	Slots Slots
	// Memory limits what this process itself holds for its callers: files and archives while clients read them. nil means no limit.
	Memory *fair.Memory
	// MemoryWait is how long a command waits for its part of Limits.MemoryTotal. The default is 30 seconds.
	MemoryWait time.Duration
	// Scratch returns a directory for short-lived files of commands. It is called each time. The directory must belong to this process
	// alone, so that nobody else can write to it or replace it. What killed processes left there is removed. If Scratch is nil, the
	// directory for temporary files is used.
	Scratch func() (string, error)
}

// commandTimeout is the default of CommandTimeout.
const commandTimeout = time.Minute

// Engine runs the git binary.
type Engine struct {
	binary  string
	version Version
	env     []string
	bounds  bounds
	memory  *memory
	crowds  crowds
	// halts says that limits are set while a process is halted.
	halts   bool
	readers *readers
	results *results
	asking  asking
	// empties maps the directory of a repository to an emptiness.
	empties *lru.Cache
	// layouts maps a layoutKind to a layout.
	layouts sync.Map
	// patience is the timeout of a command without another one.
	patience time.Duration
	// The slots that callers share.
	walks, archives, blobs *fair.Slots
	held                   *fair.Memory
	limits                 Limits
	reservations           reservations
	scratch                func() (string, error)
}

// Version is the version of a git binary. Suffixes of vendors and release candidates, as in 2.39.5.windows.1, are ignored.
type Version struct{ Major, Minor, Patch int }

// Needed is the oldest supported version. In older ones, the content of a repository can cause writes beyond allocated memory
// (CVE-2022-41903, CVE-2022-23521).
var Needed = Version{2, 39, 1}

// AtLeast reports whether v is w or newer.
func (v Version) AtLeast(w Version) bool {
	return slices.Compare([]int{v.Major, v.Minor, v.Patch}, []int{w.Major, w.Minor, w.Patch}) >= 0
}

func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// NewEngine finds the git binary and determines its version. If the binary is missing or too old, the error says what to install.
func NewEngine(ctx context.Context, o Options) (*Engine, error) {
	if o.Binary == "" {
		o.Binary = "git"
	}
	path, err := exec.LookPath(o.Binary)
	if err != nil {
		return nil, fmt.Errorf("git %s or newer must be installed: %w", Needed, err)
	}
	e := &Engine{binary: path, env: environment(os.Getenv), held: o.Memory}
	e.limits, e.scratch = o.Limits.complete(), o.Scratch
	e.crowds.of = map[fair.Key]int{}
	e.bounds = bounds{memory: e.limits.Memory, cpu: e.limits.CPU}.atMost(bounds{memory: e.limits.MemoryTotal})
	e.memory = newMemory(e.limits.MemoryTotal, o.MemoryWait)
	e.empties = lru.New(shownEmpty)
	e.results, e.patience = newResults(), cmp.Or(o.CommandTimeout, commandTimeout)
	e.share(o.Slots)
	e.readers = newReaders(e, cmp.Or(o.ReaderIdle, readerIdle))
	e.memory.evict = e.readers.dismiss
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := e.answer(ctx, "version")
	if err != nil {
		return nil, fmt.Errorf("asking %s for its version: %w", path, err)
	}
	if e.version, err = parseVersion(string(out)); err != nil {
		return nil, fmt.Errorf("asking %s for its version: %w", path, err)
	}
	if !e.version.AtLeast(Needed) {
		return nil, fmt.Errorf("%s is git %s: %s or newer must be installed", path, e.version, Needed)
	}
	if err := e.sweep(); err != nil {
		return nil, err
	}
	return e, nil
}

// answer runs the first command, and so determines how to limit processes: some sandboxes do not allow halting them.
func (e *Engine) answer(ctx context.Context, args ...string) ([]byte, error) {
	e.halts = true
	out, err := e.output(ctx, 1024, command{args: args})
	failed := (*Error)(nil)
	if !errors.As(err, &failed) || failed.ExitCode >= 0 || ctx.Err() != nil || errors.Is(err, ErrOutputTooLarge) {
		return out, err
	}
	e.halts = false
	return e.output(ctx, 1024, command{args: args})
}

// Close ends the idle processes. The engine can no longer read objects afterwards.
func (e *Engine) Close() {
	e.readers.close()
	e.results.StopAllGoroutines()
}

// Version returns the version of the git binary.
func (e *Engine) Version() Version { return e.version }

var versionText = regexp.MustCompile(`^git version (\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?(?:[^0-9].*)?\s*$`)

func parseVersion(text string) (Version, error) {
	m := versionText.FindStringSubmatch(text)
	if m == nil {
		return Version{}, errors.New("the answer is not that of git")
	}
	var number [3]int
	for i := range number {
		number[i], _ = strconv.Atoi(m[i+1]) // a missing number is 0
	}
	return Version{number[0], number[1], number[2]}, nil
}

// environment returns the environment of a git process, except for settings of a single command. It inherits no GIT_ variable, and of the
// other variables only those for finding helpers, temporary files, proxies and certificate authorities.
func environment(getenv func(string) string) []string {
	env := []string{
		"LC_ALL=C",
		"HOME=/nonexistent",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_ASKPASS=",
		"SSH_ASKPASS=",
		"GIT_NO_REPLACE_OBJECTS=1",
		"GIT_NO_LAZY_FETCH=1",
	}
	for _, name := range []string{
		"PATH", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
	} {
		if v := getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// setting is a configuration setting. It overrides the configuration of a repository.
type setting struct{ key, value string }

// unpackLimit is the number of objects from which on they stay in a pack: syncing one pack is faster than syncing each object.
const unpackLimit = 10

// settings apply to every command.
var settings = slices.Concat([]setting{
	{"safe.directory", "*"},         // repositories can belong to another uid, for example on a shared volume
	{"protocol.allow", "never"},     // only Import and Push use the network
	{"core.hooksPath", "/dev/null"}, // only Serve uses hooks
	{"core.fsmonitor", "false"},
	{"gc.auto", "0"}, // maintenance runs separately
	{"maintenance.auto", "false"},
	{"receive.autogc", "false"},
	// Data that a client was told is stored must survive a power failure. By default, git does not sync loose objects.
	{"core.fsync", "committed,derived-metadata"},
	{"receive.unpackLimit", strconv.Itoa(unpackLimit)},
	// Limit the memory and the processors of one process.
	{"pack.threads", "1"}, {"index.threads", "1"}, {"fetch.parallel", "1"},
	{"pack.windowMemory", "64m"}, {"pack.deltaCacheSize", "64m"}, {"core.deltaBaseCacheLimit", "32m"},
	{"core.bigFileThreshold", "32m"}, // larger files are never in memory as a whole
	{"receive.fsckObjects", "true"},
	{"fetch.fsckObjects", "true"},
	{"transfer.hideRefs", InternalRefs},
	{"uploadpack.allowFilter", "true"},
	{"uploadpack.allowAnySHA1InWant", "true"},
}, ignored("receive.fsck."), ignored("fetch.fsck."))

// ignored are flaws that old histories have and that do no harm.
func ignored(prefix string) []setting {
	var all []setting
	for _, flaw := range []string{
		"badTimezone", "missingSpaceBeforeDate", "zeroPaddedFilemode", "missingNameBeforeEmail", "missingSpaceBeforeEmail",
	} {
		all = append(all, setting{prefix + flaw, "ignore"})
	}
	return all
}

// configuration returns settings as environment variables, which other users of the machine cannot see, unlike arguments.
func configuration(extra []setting) []string {
	all := slices.Concat(settings, extra)
	env := make([]string, 0, 2*len(all)+1)
	env = append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(len(all)))
	for i, s := range all {
		k := strconv.Itoa(i)
		env = append(env, "GIT_CONFIG_KEY_"+k+"="+s.key, "GIT_CONFIG_VALUE_"+k+"="+s.value)
	}
	return env
}
