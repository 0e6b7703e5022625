// Package git is the Git engine: bare repositories on storage directories, worked on by the git binary.
//
// An Engine knows the binary and runs it in an environment of its own: nothing that the machine, the service's user or the
// caller's environment configures for git has an effect. It keeps processes by which it reads objects, which Close ends. A
// Repository is a cheap handle on one directory; it holds nothing open. All methods may be called from several goroutines at once.
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

// InternalRefs is the prefix of refs that the server keeps for itself: clients neither see nor change them.
const InternalRefs = "refs/forgeplane/"

// Options configure an Engine.
type Options struct {
	// Binary is the git to run, a path or a name to be found in PATH. "git" if empty.
	Binary string
	// ReaderIdle is how long a process that reads objects waits for its next use. 10 seconds if 0.
	ReaderIdle time.Duration
	// CommandTimeout is how long a command on a repository takes whose context has no deadline. A minute if 0.
	CommandTimeout time.Duration
	// Limits are those of all repositories and processes.
	Limits Limits
	// Slots are shared by those who call.
	Slots Slots
	// Memory is what this process itself holds for those who call: files and archives while they are taken. Any amount if nil.
	Memory *fair.Memory
	// MemoryWait is how long a command waits for its part of Limits.MemoryTotal. 30 seconds if 0.
	MemoryWait time.Duration
	// Scratch returns a directory of this process alone for what a command needs for a moment, and is asked each time: nobody else can
	// write into it, or replace it. What was left there of a process that was killed is removed. The directory for temporary files if nil.
	Scratch func() (string, error)
}

// commandTimeout is what CommandTimeout is if nobody says it.
const commandTimeout = time.Minute

// Engine runs the git binary.
type Engine struct {
	binary  string
	version Version
	env     []string
	bounds  bounds
	memory  *memory
	crowds  crowds
	// halts says that processes are bounded while they are halted.
	halts   bool
	readers *readers
	results *results
	asking  asking
	// empties has an emptiness by the directory of a repository.
	empties *lru.Cache
	// layouts has a layout by its layoutKind.
	layouts sync.Map
	// patience is for a command of which nobody has said how long it may take.
	patience time.Duration
	// What callers share.
	walks, archives, blobs *fair.Slots
	held                   *fair.Memory
	limits                 Limits
	reservations           reservations
	scratch                func() (string, error)
}

// Version is that of the git binary. What a vendor or a candidate has behind it, as in 2.39.5.windows.1, does not count.
type Version struct{ Major, Minor, Patch int }

// Needed is the oldest version that can be used: those before it can be made to write past their memory by what lies in a
// repository (CVE-2022-41903, CVE-2022-23521).
var Needed = Version{2, 39, 1}

// AtLeast reports whether v is w or newer.
func (v Version) AtLeast(w Version) bool {
	return slices.Compare([]int{v.Major, v.Minor, v.Patch}, []int{w.Major, w.Minor, w.Patch}) >= 0
}

func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// NewEngine looks for the git binary and asks for its version. The error says what to install where it is missing or too old.
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

// answer runs the first command, and finds out by it how processes can be bounded: some sandboxes do not allow to halt them.
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

// Close ends the processes that wait for their next use. Objects cannot be read through the engine any more.
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
		number[i], _ = strconv.Atoi(m[i+1]) // one that is not there is 0
	}
	return Version{number[0], number[1], number[2]}, nil
}

// environment is all that a git process sees of the world, but for settings of a single command. No GIT_ variable is
// inherited; of the rest, only what finding helpers, temporary files, proxies and certificate authorities takes.
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

// setting is a line of configuration. It outranks what stands in a repository.
type setting struct{ key, value string }

// unpackLimit is from how many objects on they stay in a pack: syncing one takes less time than syncing each of them.
const unpackLimit = 10

// settings hold for every command.
var settings = slices.Concat([]setting{
	{"safe.directory", "*"},         // repositories may belong to another uid, as on a shared volume
	{"protocol.allow", "never"},     // no command but Import talks to the network
	{"core.hooksPath", "/dev/null"}, // no hook but that of Serve
	{"core.fsmonitor", "false"},
	{"gc.auto", "0"}, // housekeeping has its own time
	{"maintenance.auto", "false"},
	{"receive.autogc", "false"},
	// What a client was told to be stored must survive a power cut: by default git does not sync loose objects.
	{"core.fsync", "committed,derived-metadata"},
	{"receive.unpackLimit", strconv.Itoa(unpackLimit)},
	// The memory and the processors of one process.
	{"pack.threads", "1"}, {"index.threads", "1"}, {"fetch.parallel", "1"},
	{"pack.windowMemory", "64m"}, {"pack.deltaCacheSize", "64m"}, {"core.deltaBaseCacheLimit", "32m"},
	{"core.bigFileThreshold", "32m"}, // what is larger is never in memory as a whole
	{"receive.fsckObjects", "true"},
	{"fetch.fsckObjects", "true"},
	{"transfer.hideRefs", InternalRefs},
	{"uploadpack.allowFilter", "true"},
	{"uploadpack.allowAnySHA1InWant", "true"},
}, ignored("receive.fsck."), ignored("fetch.fsck."))

// ignored are flaws that old histories have and that hurt nobody.
func ignored(prefix string) []setting {
	var all []setting
	for _, flaw := range []string{
		"badTimezone", "missingSpaceBeforeDate", "zeroPaddedFilemode", "missingNameBeforeEmail", "missingSpaceBeforeEmail",
	} {
		all = append(all, setting{prefix + flaw, "ignore"})
	}
	return all
}

// configuration renders settings as environment variables, which unlike arguments no other user of the machine can see.
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
