package main

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/forgeplane/forgeplane/internal/quota"
)

func bindQuotas(f *pflag.FlagSet, l *quota.Limits) {
	f.IntVar(&l.Projects, "quota-projects", l.Projects, "how many projects a user may make over REST in --home-namespace; 0 for any number. spec.projectsLimit of a User overrides it")
	f.IntVar(&l.Groups, "quota-groups", l.Groups, "how many groups a user may make over REST in --home-namespace; 0 for any number")
	f.IntVar(&l.Tokens, "quota-tokens", l.Tokens, "how many personal access tokens a user may have that are neither revoked nor expired; 0 for any number")
	f.IntVar(&l.Settings, "quota-settings", l.Settings, "how many labels a project or group may have when REST makes one, and likewise badges, members and so on; 0 for any number")
}

func validateQuotas(l quota.Limits) error {
	if min(l.Projects, l.Groups, l.Tokens, l.Settings) < 0 {
		return errors.New("--quota-projects, --quota-groups, --quota-tokens and --quota-settings must be 0 or more")
	}
	return nil
}
