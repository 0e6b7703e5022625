package main

import (
	"maps"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"

	"github.com/forgeplane/forgeplane/apiserver/ratelimit"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git"
)

// parse returns the options of a process with all parts.
func parse(t *testing.T, args ...string) *options {
	t.Helper()
	p := parts{controllers: true, server: true}
	o := defaults(p)
	flags := pflag.NewFlagSet("forgeplane", pflag.ContinueOnError)
	o.bind(flags, p)
	NewWithT(t).Expect(flags.Parse(args)).To(Succeed())
	return o
}

func TestValidate_namesTheWrongFlag(t *testing.T) {
	for flag, args := range map[string][]string{
		"--first-id":                    {"--first-id=0"},
		"--concurrency":                 {"--concurrency=0"},
		"--external-url":                {"--external-url=forge.example"},
		"--root-groups":                 {"--root-groups=team-a"},
		"--rate-limit-authenticated":    {"--rate-limit-authenticated=-1"},
		"--rate-limit-costly":           {"--rate-limit-costly=archive=-1"},
		"archive, blob, changelog":      {"--rate-limit-costly=tree=5"},
		"--trusted-proxies":             {"--trusted-proxies=everybody"},
		"--max-connections-per-address": {"--max-connections-per-address=-1"},
		"--tls-cert-file":               {"--tls-cert-file=tls.crt"},
		"--audit-policy-file":           {"--audit-log-path=-"},
		"--kubernetes-url":              {"--kubernetes-url=localhost"},
		"--maintenance-concurrency":     {"--maintenance-concurrency=-1"},
		"--maintenance-timeout":         {"--maintenance-timeout=0s"},
		"--git-memory-limit":            {"--git-memory-limit=10Mi"},
		"--git-memory-total":            {"--git-memory-total=10Mi"},
		"--git-cpu-limit":               {"--git-cpu-limit=10ms"},
		"--max-archive-size":            {"--max-archive-size=-1"},
		"--max-push-unpacked-size":      {"--max-push-unpacked-size=-1Gi"},
		"--max-push-size":               {"--max-push-size=-1Gi"},
		"--max-repository-size":         {"--max-repository-size=-1"},
		"--max-refs":                    {"--max-refs=-1"},
		"--max-import-size":             {"--max-import-size=-1"},
		"--max-import-unpacked-size":    {"--max-import-unpacked-size=-1Gi"},
		"--import-timeout":              {"--import-timeout=-1s"},
		"--activity-database":           {"--activity-database=postgres://localhost/forgeplane"},
		"--rate-limit-failed-sign-ins":  {"--rate-limit-failed-sign-ins=-1"},
		"--slots: tree=5":               {"--slots=tree=5"},
		"--slots: git=0":                {"--slots=git=0"},
		"--slots: bodies=5":             {"--slots=bodies=5"},
		"--request-memory-total":        {"--request-memory-total=10Mi"},
		"--upload-disk-total":           {"--upload-disk-total=10Mi"},
		"--slots-per-caller":            {"--slots-per-caller=0"},
		"--quota-tokens":                {"--quota-tokens=-1"},
		"--quota-retained and":          {"--quota-retained=-1"},
		"--quota-retained-size":         {"--quota-retained-size=-1Gi"},
		"--slots-reserved":              {"--slots-reserved=100"},
		"--rest-writes":                 {"--rest-writes=Deny"},
		"--registry must be":            {"--registry=on"},
		"--registry-collect-interval":   {"--registry-collect-interval=1s"},
		"--registry-collect-grace":      {"--registry-collect-grace=1m"},
		"--registry-token-lifetime":     {"--registry-token-lifetime=48h"},
		"--registry-url must":           {"--registry-url=https://registry.example/images"},
		"--registry-max-size":           {"--registry-max-size=-1Gi"},
	} {
		NewWithT(t).Expect(parse(t, args...).validate()).To(MatchError(ContainSubstring(flag)))
	}
	NewWithT(t).Expect(parse(t).validate()).To(Succeed())
}

func TestValidate_requiresTheURLOfASeparateRegistryOfServersOnly(t *testing.T) {
	g := NewWithT(t)
	i := defaultImages()
	i.mode = registrySeparate
	g.Expect(i.validate(parts{server: true})).To(MatchError(ContainSubstring("--registry=separate requires --registry-url")))
	g.Expect(i.validate(parts{controllers: true})).To(Succeed(), "a manager has no --registry-url")
}

func TestLimits_areUnlimitedWhenZero(t *testing.T) {
	g := NewWithT(t)
	usual := git.DefaultLimits
	usual.MemoryTotal = git.HalfMemory()
	g.Expect(usual.MemoryTotal).To(BeNumerically(">", 0))
	g.Expect(parse(t).gitLimits.git()).To(Equal(usual))
	none := parse(t, "--git-memory-limit=0", "--git-memory-total=0", "--git-cpu-limit=0s", "--max-archive-size=0", "--max-push-size=0", "--max-push-unpacked-size=0", "--max-repository-size=0", "--max-refs=0",
		"--max-import-size=0", "--max-import-unpacked-size=0", "--import-timeout=0s")
	g.Expect(none.validate()).To(Succeed())
	g.Expect(none.gitLimits.git()).To(Equal(git.Limits{
		Memory: -1, MemoryTotal: -1, CPU: -1, Archive: -1, Push: -1, PushUnpacked: -1, Repository: -1, Refs: -1, Import: -1, ImportTime: -1, ImportUnpacked: -1,
	}))
	chosen := parse(t, "--git-memory-limit=2Gi", "--git-memory-total=3Gi", "--git-cpu-limit=1m", "--max-archive-size=3M", "--max-push-size=4Mi", "--max-push-unpacked-size=8Mi",
		"--max-repository-size=5Mi", "--max-refs=7",
		"--max-import-size=6Mi", "--max-import-unpacked-size=9Mi", "--import-timeout=7m")
	g.Expect(chosen.validate()).To(Succeed())
	g.Expect(chosen.gitLimits.git()).To(Equal(git.Limits{
		Memory: 2 << 30, MemoryTotal: 3 << 30, CPU: time.Minute, Archive: 3_000_000, Push: 4 << 20, PushUnpacked: 8 << 20, Repository: 5 << 20, Refs: 7, Import: 6 << 20, ImportTime: 7 * time.Minute, ImportUnpacked: 9 << 20,
	}))
}

func TestSlots_areSharedByPercentage(t *testing.T) {
	g := NewWithT(t)
	usual := parse(t)
	g.Expect(usual.slots.of("git")).To(Equal(fair.Limits{Total: 64, Share: 16, Reserved: 16}))
	g.Expect(usual.slots.engine()).To(Equal(git.DefaultSlots()))
	chosen := parse(t, "--slots=git=100,walks=10", "--slots-per-caller=10", "--slots-reserved=50")
	g.Expect(chosen.validate()).To(Succeed())
	g.Expect(chosen.slots.of("git")).To(Equal(fair.Limits{Total: 100, Share: 10, Reserved: 50}))
	g.Expect(chosen.slots.engine().Walks).To(Equal(fair.Limits{Total: 10, Share: 1, Reserved: 5}))
	g.Expect(chosen.slots.of("archives")).To(Equal(fair.Limits{Total: 16, Share: 1, Reserved: 8}))
	g.Expect(usual.slots.memory.Value()).To(BeEquivalentTo(256 << 20))
	g.Expect(usual.slots.requests()).NotTo(BeNil())
	g.Expect(usual.slots.disk.Value()).To(BeEquivalentTo(8 << 30))
	g.Expect(usual.slots.onDisk()).NotTo(BeNil())
	unbounded := parse(t, "--request-memory-total=0", "--upload-disk-total=0")
	g.Expect(unbounded.validate()).To(Succeed())
	g.Expect(unbounded.slots.requests()).To(BeNil())
	g.Expect(unbounded.slots.onDisk()).To(BeNil())
}

func TestRates_areLimitedInDevelopmentOnlyIfGiven(t *testing.T) {
	g := NewWithT(t)
	perMinute := func(args ...string) (ratelimit.Options, error) {
		o := parse(t, args...)
		return o.rates.limits(o.development)
	}
	usual, err := perMinute()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect([]any{usual.Authenticated, usual.Unauthenticated, usual.Endpoints}).To(Equal([]any{2000, 500, true}))
	chosen, err := perMinute("--rate-limit-authenticated=7", "--rate-limit-unauthenticated=0", "--trusted-proxies=10.0.0.0/8")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect([]any{chosen.Authenticated, chosen.Unauthenticated, len(chosen.TrustedProxies)}).To(Equal([]any{7, 0, 1}))
	all := map[string]int{"archive": 0, "blob": 0, "changelog": 0, "ci_lint": 0, "file": 0, "housekeeping": 0, "trigger": 0}
	off, err := perMinute("--development", "--trusted-proxies=10.0.0.0/8")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(off).To(Equal(ratelimit.Options{Endpoints: true, Costly: all, TrustedProxies: chosen.TrustedProxies}))
	for flag, limited := range map[string]func(*ratelimit.Options){
		"--rate-limit-authenticated=7":       func(o *ratelimit.Options) { o.Authenticated = 7 },
		"--rate-limit-unauthenticated=7":     func(o *ratelimit.Options) { o.Unauthenticated = 7 },
		"--rate-limit-git-authenticated=7":   func(o *ratelimit.Options) { o.GitAuthenticated = 7 },
		"--rate-limit-git-unauthenticated=7": func(o *ratelimit.Options) { o.GitUnauthenticated = 7 },
		"--rate-limit-failed-sign-ins=7":     func(o *ratelimit.Options) { o.FailedSignIns = 7 },
		"--rate-limit-authenticated=2000":    func(o *ratelimit.Options) { o.Authenticated = 2000 },
		"--rate-limit-costly=blob=7":         func(o *ratelimit.Options) { o.Costly["blob"] = 7 },
	} {
		want := ratelimit.Options{Endpoints: true, Costly: maps.Clone(all), TrustedProxies: chosen.TrustedProxies}
		limited(&want)
		g.Expect(perMinute("--development", "--trusted-proxies=10.0.0.0/8", flag)).To(Equal(want), flag)
	}
	manager := defaults(parts{controllers: true})
	manager.bind(pflag.NewFlagSet("manager", pflag.ContinueOnError), parts{controllers: true})
	manager.development = true
	g.Expect(manager.validate()).To(Succeed(), "a process without a server has no such flags")
}

func TestFeatures_areNamedInTheHelpAndInErrors(t *testing.T) {
	g := NewWithT(t)
	p := parts{server: true}
	o := defaults(p)
	flags := pflag.NewFlagSet("forgeplane", pflag.ContinueOnError)
	o.bind(flags, p)
	g.Expect(flags.FlagUsages()).To(MatchRegexp("--feature name=bool .*by default changelog_commits_limitation is on, and ci_job_token_scope, mr_approved_filter, " +
		"restrict_merge_status_recheck, ssh_certificates_rest_endpoints are off\n"))
	g.Expect(flags.Parse([]string{"--feature=changelog_commits_limitation=false", "--feature=mr_approved_filter=true"})).To(Succeed())
	g.Expect(o.features).To(Equal(features{"changelog_commits_limitation": false, "mr_approved_filter": true}))
	g.Expect(o.features.String()).To(Equal("changelog_commits_limitation=false,mr_approved_filter=true"))
	g.Expect(flags.Parse([]string{"--feature=dark_mode=true"})).To(MatchError(And(ContainSubstring("--feature"), ContainSubstring("name one of changelog_commits"))))
	g.Expect(flags.Parse([]string{"--feature=mr_approved_filter"})).To(MatchError(ContainSubstring("must be mr_approved_filter=true or")))
}

func TestExternal_isTheURLOrTheHTTPAddress(t *testing.T) {
	g := NewWithT(t)
	for want, args := range map[string][]string{
		"http://localhost:8080":       nil,
		"http://127.0.0.1:9000":       {"--http-address=127.0.0.1:9000"},
		"https://forge.example/forge": {"--external-url=https://forge.example/forge"},
	} {
		u, err := parse(t, args...).external()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(u.String()).To(Equal(want))
	}
}
