package projects

import (
	"context"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// Statistics are the sizes of what belongs to a project, in bytes.
type Statistics struct {
	CommitCount           int   `json:"commit_count" doc:"Number of commits of the default branch."`
	StorageSize           int64 `json:"storage_size" doc:"All sizes together."`
	RepositorySize        int64 `json:"repository_size"`
	WikiSize              int64 `json:"wiki_size" doc:"Always 0."`
	LFSObjectsSize        int64 `json:"lfs_objects_size" doc:"Always 0."`
	JobArtifactsSize      int64 `json:"job_artifacts_size" doc:"Always 0."`
	PipelineArtifactsSize int64 `json:"pipeline_artifacts_size" doc:"Always 0."`
	PackagesSize          int64 `json:"packages_size" doc:"Always 0."`
	SnippetsSize          int64 `json:"snippets_size" doc:"Always 0."`
	UploadsSize           int64 `json:"uploads_size" doc:"Always 0."`
	ContainerRegistrySize int64 `json:"container_registry_size" doc:"Size of the images that have a tag, when they were last measured: by a request for the project alone, or daily."`
}

func (f *Family) statistics(ctx context.Context, p *v1alpha1.Project) (*Statistics, error) {
	commits, err := f.refs.Commits(ctx, p)
	if err != nil {
		return nil, err
	}
	counted := &Statistics{CommitCount: commits, RepositorySize: p.Status.SizeBytes}
	if f.images != nil {
		if counted.ContainerRegistrySize, err = f.images.Records.Size(ctx, p.UID); err != nil {
			return nil, err
		}
	}
	counted.StorageSize = counted.RepositorySize + counted.ContainerRegistrySize
	return counted, nil
}
