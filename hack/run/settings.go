package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// settings are the choices of the caller, by flags or by the environment.
type settings struct {
	checkout     string // absolute
	data         string // absolute
	httpPort     int
	kubePort     int
	tlsPort      int
	healthPort   int
	metricsPort  int
	flags        []string // further ones of Forgeplane
	split        bool     // whether each part of Forgeplane is a process with an account of its own
	samples      bool     // whether to declare the samples, and to add a merge request and an issue
	readyTimeout time.Duration
}

// port is the setting of a port: its flag, its variable and its purpose.
type port struct {
	number   *int
	flag     string
	variable string
	standard int
	purpose  string
}

func (s *settings) ports() []port {
	return []port{
		{&s.httpPort, "http-port", "HTTP_PORT", 8080, "git and REST clients"},
		{&s.kubePort, "kube-port", "KUBE_PORT", 16443, "kube-apiserver"},
		{&s.tlsPort, "tls-port", "TLS_PORT", 18443, "kube-apiserver to reach the REST API"},
		{&s.healthPort, "health-port", "HEALTH_PORT", 18081, "Forgeplane's health checks"},
		{&s.metricsPort, "metrics-port", "METRICS_PORT", 18082, "Forgeplane's metrics"},
	}
}

func parseSettings(args []string, messages io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	flags.SetOutput(messages)
	flags.Usage = func() {
		fmt.Fprint(messages, "Usage: make run [VARIABLE=value ...], or: bin/run [flags]\n\n"+
			"Starts a control plane and Forgeplane on this machine, on 127.0.0.1 only.\n\n")
		flags.PrintDefaults()
	}
	for _, p := range s.ports() {
		standard, err := environmentPort(p)
		if err != nil {
			return settings{}, err
		}
		flags.IntVar(p.number, p.flag, standard, fmt.Sprintf("`port` for %s (variable %s)", p.purpose, p.variable))
	}
	flags.StringVar(&s.data, "data", environment("DEV_DIR", ".dev"), "`directory` for all data (variable DEV_DIR)")
	flags.Func("flags", "further `flags` of forgeplane all, separated by spaces (variable RUN_FLAGS)", func(text string) error {
		s.flags = strings.Fields(text)
		return nil
	})
	s.flags = strings.Fields(os.Getenv("RUN_FLAGS"))
	split, err := environmentBool("RUN_SPLIT", false)
	if err != nil {
		return settings{}, err
	}
	flags.BoolVar(&s.split, "split", split, "whether to run the controllers and the server in separate processes, each with its own account (variable RUN_SPLIT)")
	samples, err := environmentBool("RUN_SAMPLES", true)
	if err != nil {
		return settings{}, err
	}
	flags.BoolVar(&s.samples, "samples", samples, "whether to declare config/samples, and to add a merge request and an issue (variable RUN_SAMPLES)")
	flags.StringVar(&s.checkout, "checkout", ".", "`directory` of the checkout, with config and bin in it")
	flags.DurationVar(&s.readyTimeout, "ready-timeout", time.Minute, "time limit for Forgeplane, and then for its objects, to become ready")
	if err := flags.Parse(args); err != nil {
		return settings{}, err
	}
	if flags.NArg() > 0 {
		return settings{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return s, errors.Join(absolute(&s.checkout), absolute(&s.data))
}

func environmentPort(p port) (int, error) {
	text := environment(p.variable, strconv.Itoa(p.standard))
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil || number == 0 {
		return 0, fmt.Errorf("the variable %s must be a port from 1 to 65535, and is %q", p.variable, text)
	}
	return int(number), nil
}

func environmentBool(name string, standard bool) (bool, error) {
	is, err := strconv.ParseBool(environment(name, strconv.FormatBool(standard)))
	if err != nil {
		return false, fmt.Errorf("the variable %s must be true or false, and is %q", name, os.Getenv(name))
	}
	return is, nil
}

func environment(name, standard string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return standard
}

func absolute(path *string) (err error) {
	*path, err = filepath.Abs(*path)
	return err
}

// shown returns a path as messages show it: relative to the checkout if it is in it.
func (s *settings) shown(path string) string {
	if relative, err := filepath.Rel(s.checkout, path); err == nil && !strings.HasPrefix(relative, "..") {
		return relative
	}
	return path
}

// url returns the address of Forgeplane for git and REST clients. host is its host and port.
func (s *settings) url() string  { return "http://" + s.host() }
func (s *settings) host() string { return loopback(s.httpPort) }

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
