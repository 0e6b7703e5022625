package expansion_test

import (
	"maps"
	"slices"
)

// longForms bring the values of keywords into the forms that Forgeplane's structs have.
var longForms = map[string]func(of any) any{
	"variables": func(of any) any { return variables(of) }, "matrix": matrix, "timeout": nanoseconds, "start_in": nanoseconds,
	"image": image, "services": each(image), "needs": each(need), "cache": each(cache), "artifacts": artifacts, "environment": environment,
	"release": release, "trigger": trigger,
	"retry": func(of any) any {
		m := named(of, "max")
		lists(m, "when", "exit_codes")
		return m
	},
	"allow_failure": func(of any) any {
		m := named(of, "always")
		lists(m, "exit_codes")
		return m
	},
	"id_tokens": func(of any) any {
		made := []any{}
		for _, name := range slices.Sorted(maps.Keys(of.(map[string]any))) {
			made = append(made, map[string]any{"name": name, "audience": items(of.(map[string]any)[name].(map[string]any)["aud"])})
		}
		return made
	},
	"inherit_variables": func(of any) any {
		if names, ok := of.([]any); ok {
			return map[string]any{"names": names}
		}
		return map[string]any{"none": of == "false"}
	},
}

// long brings the keywords of a job into their long forms.
func long(job map[string]any) {
	fill(job, map[string]any{"stage": "test"})
	lists(job, "script", "before_script", "after_script", "tags")
	rename(job, "manual_confirmation", "confirmation")
	if hooks, ok := job["hooks"].(map[string]any); ok {
		job["pre_get_sources"] = items(hooks["pre_get_sources_script"])
	}
	if inherit, ok := job["inherit"].(map[string]any); ok {
		job["inherit_variables"] = inherit["variables"]
	}
	if parallel, ok := job["parallel"].(map[string]any); ok {
		job["matrix"] = parallel["matrix"]
		delete(job, "parallel")
	}
	delete(job, "hooks")
	delete(job, "inherit")
	for key, form := range longForms {
		if job[key] != nil {
			job[key] = form(job[key])
		}
	}
}

// each returns the form of a list.
func each(form func(any) any) func(any) any {
	return func(of any) any {
		made := []any{}
		for _, item := range items(of) {
			made = append(made, form(item))
		}
		return made
	}
}

func image(of any) any {
	m := named(of, "name")
	lists(m, "entrypoint", "command", "pull_policy")
	rename(m, "pull_policy", "pull_policies")
	if docker, ok := m["docker"].(map[string]any); ok {
		maps.Copy(m, docker)
	}
	delete(m, "docker")
	m["variables"] = variables(m["variables"])
	return m
}

func need(of any) any {
	m := named(of, "job")
	fill(m, map[string]any{"artifacts": true})
	return m
}

func cache(of any) any {
	m := named(of, "key")
	fill(m, map[string]any{"key": "default", "policy": "pull-push", "when": "on_success"})
	if key, ok := m["key"].(map[string]any); ok {
		m["key"], m["key_files"], m["key_prefix"] = nil, items(key["files"]), key["prefix"]
	}
	lists(m, "paths", "fallback_keys")
	return m
}

func artifacts(of any) any {
	m := named(of, "paths")
	fill(m, map[string]any{"when": "on_success", "access": "all"})
	lists(m, "paths", "exclude")
	m["expire_in"] = nanoseconds(m["expire_in"])
	reports := map[string]any{}
	for kind, value := range named(m["reports"], "none") {
		report, isMap := value.(map[string]any)
		if !isMap {
			report = map[string]any{"path": value}
		}
		reports[kind] = map[string]any{"paths": items(report["path"]), "coverage_format": report["coverage_format"]}
	}
	m["reports"] = reports
	return m
}

func environment(of any) any {
	m := named(of, "name")
	fill(m, map[string]any{"action": "start"})
	rename(m, "deployment_tier", "tier")
	rename(m, "auto_stop_in", "auto_stop_text")
	return m
}

func release(of any) any {
	m := named(of, "tag_name")
	links := []any{}
	for _, link := range items(named(m["assets"], "none")["links"]) {
		l := named(link, "url")
		rename(l, "filepath", "file_path")
		rename(l, "link_type", "type")
		links = append(links, l)
	}
	delete(m, "assets")
	m["links"] = links
	return m
}

func trigger(of any) any {
	m := named(of, "project")
	forward := named(m["forward"], "none")
	fill(forward, map[string]any{"yaml_variables": true})
	m["forward_variables"], m["forward_pipelines"], m["depend"] = forward["yaml_variables"], forward["pipeline_variables"], m["strategy"] != nil
	delete(m, "forward")
	delete(m, "strategy")
	children := items(m["include"])
	for i := range children {
		children[i] = named(children[i], "local")
	}
	m["include"] = children
	return m
}

// matrix returns the variables of each instance: all combinations of the values in each map.
func matrix(of any) any {
	made := []any{}
	for _, item := range items(of) {
		combinations := [][]any{nil}
		for _, name := range slices.Sorted(maps.Keys(item.(map[string]any))) {
			var more [][]any
			for _, before := range combinations {
				for _, value := range items(item.(map[string]any)[name]) {
					more = append(more, append(slices.Clip(before), assignment(name, value.(string), false)))
				}
			}
			combinations = more
		}
		for _, variables := range combinations {
			made = append(made, variables)
		}
	}
	return made
}
