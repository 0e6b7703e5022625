// Command forgeplane is the whole forge in one binary. Its subcommands select the parts that run.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	if err := command().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "forgeplane:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:   "forgeplane",
		Short: "A software forge whose settings are Kubernetes custom resources",
		Long: `Forgeplane hosts Git repositories. Teams and administrators declare projects, members, protected
branches and so on as custom resources, and its controllers put them into force.`,
		Version:       versionOf(number, commit),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(
		runCommand("all", "Run the controllers and the server in one process", parts{controllers: true, server: true}),
		runCommand("manager", "Run the controllers only, one of several replicas at a time", parts{controllers: true}),
		runCommand("apiserver", "Run the server only, Git and REST, in any number of replicas", parts{server: true}),
		registryCommand(),
	)
	for _, helper := range []*cobra.Command{applyCommand(), unregisterCommand(), checkCommand(), backupCommand()} {
		// People read the log of these, so it has the format of kubectl.
		helper.PreRun = func(*cobra.Command, []string) { ctrl.SetLogger(klog.Background()) }
		root.AddCommand(helper)
	}
	return root
}

// parts are the parts of the forge that one process runs.
type parts struct {
	controllers, server bool
	// registry is the container registry alone.
	registry bool
}

func runCommand(use, short string, p parts) *cobra.Command {
	o := defaults(p)
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			return run(cmd.Context(), p, o)
		},
	}
	o.bind(cmd.Flags(), p)
	return cmd
}
