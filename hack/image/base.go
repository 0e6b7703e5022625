package main

import (
	"bytes"
	"debug/elf"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// user is the user and the group of the processes, as in the values of the chart.
const user = 65532

// kept are the files of packages that the image has, besides the libraries that the programs among them load. Git calls the commands that
// are part of it by itself, and the programs that it has for https, so all others are left out; those in Perl would need Perl.
var kept = []string{
	"usr/bin/dash",
	"usr/bin/git", "usr/bin/git-receive-pack", "usr/bin/git-upload-pack",
	"usr/lib/git-core/git", "usr/lib/git-core/git-remote-http", "usr/lib/git-core/git-remote-https",
	"usr/lib/*/gconv/*", // git converts messages that are not in UTF-8
	"usr/lib/os-release",
	"usr/share/common-licenses/*", // the texts to which the copyrights refer
}

// authorities are the certificates of the authorities, which the image has in one file.
const authorities = "usr/share/ca-certificates/mozilla/*.crt"

// base is the part of an image that is from packages.
type base struct {
	files tree
	// packages contains a package only if the image has files of it.
	packages []distPackage
}

// newBase assembles the base from packages.
func newBase(packages []distPackage) (*base, error) {
	all, owner := tree{}, map[string]int{}
	for i, p := range packages {
		for name, n := range p.files {
			all[name], owner[name] = n, i
		}
	}
	b := &base{files: tree{}}
	used := map[int]bool{}
	use := func(name string) {
		b.files[name] = all[name]
		used[owner[name]] = true
	}
	var certificates []byte
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if matches(name, authorities) {
			certificates = append(certificates, all[name].content...)
			used[owner[name]] = true
		}
		if slices.ContainsFunc(kept, func(pattern string) bool { return matches(name, pattern) }) {
			use(name)
		}
	}
	if err := useLibraries(all, b.files, use); err != nil {
		return nil, err
	}
	for i, p := range packages {
		if !used[i] {
			continue
		}
		b.packages = append(b.packages, p)
		// Scanners read which packages an image has from this directory if there is no package manager.
		b.files["var/lib/dpkg/status.d/"+p.Name] = file(0o644, p.control)
		copyright := "usr/share/doc/" + p.Name + "/copyright"
		if target, ok := all.follow(copyright); ok {
			b.files[copyright] = all[target]
		}
	}
	maps.Copy(b.files, made(certificates))
	if err := b.check(); err != nil {
		return nil, err
	}
	return b, nil
}

func matches(name, pattern string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// made returns the files that are in no package.
func made(certificates []byte) tree {
	t := tree{
		"etc/ssl/certs/ca-certificates.crt": file(0o644, certificates),
		"etc/passwd":                        file(0o644, fmt.Appendf(nil, "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\nforgeplane:x:%[1]d:%[1]d::/nonexistent:/usr/sbin/nologin\n", user)),
		"etc/group":                         file(0o644, fmt.Appendf(nil, "root:x:0:\nforgeplane:x:%d:\n", user)),
		"etc/nsswitch.conf":                 file(0o644, []byte("passwd: files\ngroup: files\nhosts: files dns\n")),
		"etc/os-release":                    {link: "../usr/lib/os-release"},
		"usr/bin/sh":                        {link: "dash"},
		"tmp":                               {dir: true, mode: 0o1777},
		"var/lib/forgeplane":                {dir: true, mode: 0o700, owner: user},
	}
	for _, dir := range merged {
		t[dir] = node{link: "usr/" + dir}
		t["usr/"+dir] = node{dir: true, mode: 0o755}
	}
	return t
}

func file(mode int64, content []byte) node { return node{mode: mode, content: content} }

// check fails if an important file is missing, or if a link leads nowhere.
func (b *base) check() error {
	for _, name := range []string{"usr/bin/dash", "usr/bin/git", "usr/lib/git-core/git", "usr/lib/git-core/git-remote-https", "usr/lib/os-release"} {
		if _, ok := b.files.follow(name); !ok {
			return fmt.Errorf("the packages do not contain /%s, which the image needs", name)
		}
	}
	for name, n := range b.files {
		if _, ok := b.files.follow(name); n.link != "" && !ok {
			return fmt.Errorf("the image would not contain the target of the link /%s, %s", name, n.link)
		}
	}
	if len(b.files["etc/ssl/certs/ca-certificates.crt"].content) == 0 {
		return fmt.Errorf("the packages do not contain %s: the image would trust no server", authorities)
	}
	return nil
}

// useLibraries uses the libraries that the used programs load, and those that these load.
func useLibraries(all, used tree, use func(name string)) error {
	waiting := slices.Sorted(maps.Keys(used))
	for len(waiting) > 0 {
		name := waiting[0]
		waiting = waiting[1:]
		libraries, err := loads(used[name])
		if err != nil {
			return fmt.Errorf("reading the libraries of %s: %w", name, err)
		}
		for _, library := range libraries {
			link, target, ok := find(all, path.Dir(name), library)
			if !ok {
				return fmt.Errorf("%s needs %s, which no package contains", name, library)
			}
			for _, found := range []string{link, target} {
				if _, ok := used[found]; !ok {
					use(found)
					waiting = append(waiting, found)
				}
			}
		}
	}
	return nil
}

// loads returns the libraries that a program or library loads, and the path of its loader.
func loads(n node) ([]string, error) {
	if !bytes.HasPrefix(n.content, []byte(elf.ELFMAG)) {
		return nil, nil
	}
	program, err := elf.NewFile(bytes.NewReader(n.content))
	if err != nil {
		return nil, err
	}
	libraries, err := program.ImportedLibraries()
	if err != nil {
		return nil, err
	}
	if loader := program.Section(".interp"); loader != nil {
		text, err := loader.Data()
		if err != nil {
			return nil, err
		}
		libraries = append(libraries, strings.TrimRight(string(text), "\x00"))
	}
	return libraries, nil
}

// find returns the path of a library that a file in a directory loads, and that of the file to which it leads.
func find(all tree, beside, library string) (link, target string, ok bool) {
	if path.IsAbs(library) {
		target, ok = all.follow(library)
		return clean(library), target, ok
	}
	directories := []string{beside, "usr/lib", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu"}
	for _, directory := range directories {
		link = path.Join(directory, library)
		if target, ok = all.follow(link); ok {
			return link, target, true
		}
	}
	return "", "", false
}
