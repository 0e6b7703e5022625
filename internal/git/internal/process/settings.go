package process

import (
	"slices"
	"strconv"
	"strings"

	"github.com/forgeplane/forgeplane/internal/git/object"
)

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

// Setting is the key and the value of a configuration setting. It overrides the configuration of a repository.
type Setting [2]string

// UnpackLimit is the number of objects from which on they stay in a pack: syncing one pack is faster than syncing each object.
const UnpackLimit = 10

// settings apply to every command.
var settings = slices.Concat([]Setting{
	{"safe.directory", "*"},         // repositories can belong to another uid, for example on a shared volume
	{"protocol.allow", "never"},     // only Import and Push use the network
	{"core.hooksPath", "/dev/null"}, // only Serve uses hooks
	{"core.fsmonitor", "false"},
	// Concurrent changes of a ref wait for each other. By default, git gives up after a tenth of a second for a ref, and a second for
	// all packed refs. A lock that a killed git has left delays a change as well, before the change fails.
	{"core.filesRefLockTimeout", "5000"}, {"core.packedRefsTimeout", "5000"},
	{"gc.auto", "0"}, // maintenance runs separately
	{"maintenance.auto", "false"},
	{"receive.autogc", "false"},
	// Data that a client was told is stored must survive a power failure. By default, git does not sync loose objects.
	{"core.fsync", "committed,derived-metadata"},
	{"receive.unpackLimit", strconv.Itoa(UnpackLimit)},
	// Limit the memory and the processors of one process.
	{"pack.threads", "1"}, {"index.threads", "1"}, {"fetch.parallel", "1"},
	{"pack.windowMemory", "64m"}, {"pack.deltaCacheSize", "64m"}, {"core.deltaBaseCacheLimit", "32m"},
	{"core.bigFileThreshold", "32m"}, // larger files are never in memory as a whole
	{"receive.fsckObjects", "true"},
	{"fetch.fsckObjects", "true"},
	{"transfer.hideRefs", object.InternalRefs},
	{"uploadpack.allowFilter", "true"},
	{"uploadpack.allowAnySHA1InWant", "true"},
}, ignored("receive.fsck."), ignored("fetch.fsck."))

// harmless are flaws that old histories have and that do no harm.
var harmless = []string{"badTimezone", "missingSpaceBeforeDate", "zeroPaddedFilemode", "missingNameBeforeEmail", "missingSpaceBeforeEmail"}

// Strict is the argument with which "git index-pack" checks objects like those of a push. It does not read the settings.
var Strict = "--strict=" + strings.Join(harmless, "=ignore,") + "=ignore"

func ignored(prefix string) []Setting {
	all := make([]Setting, len(harmless))
	for i, flaw := range harmless {
		all[i] = Setting{prefix + flaw, "ignore"}
	}
	return all
}

// configuration returns settings as environment variables, which other users of the machine cannot see, unlike arguments.
func configuration(extra []Setting) []string {
	all := slices.Concat(settings, extra)
	env := make([]string, 0, 2*len(all)+1)
	env = append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(len(all)))
	for i, s := range all {
		k := strconv.Itoa(i)
		env = append(env, "GIT_CONFIG_KEY_"+k+"="+s[0], "GIT_CONFIG_VALUE_"+k+"="+s[1])
	}
	return env
}
