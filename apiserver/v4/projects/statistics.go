package projects

import (
	"context"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/git"
)

// Statistics are the sizes of the content of a project, in bytes.
type Statistics struct {
	CommitCount           *int  `json:"commit_count" doc:"Number of commits of the default branch. Null while the repository is not available."`
	StorageSize           int64 `json:"storage_size" doc:"All sizes together."`
	RepositorySize        int64 `json:"repository_size"`
	WikiSize              int64 `json:"wiki_size" doc:"Always 0."`
	LFSObjectsSize        int64 `json:"lfs_objects_size" doc:"Always 0."`
	JobArtifactsSize      int64 `json:"job_artifacts_size"`
	PipelineArtifactsSize int64 `json:"pipeline_artifacts_size" doc:"Always 0."`
	PackagesSize          int64 `json:"packages_size" doc:"Always 0."`
	SnippetsSize          int64 `json:"snippets_size" doc:"Always 0."`
	UploadsSize           int64 `json:"uploads_size" doc:"Always 0."`
	ContainerRegistrySize int64 `json:"container_registry_size" doc:"Size of the tagged images at the last measurement, by a request for the single project or daily."`
}

func (f *Family) statistics(ctx context.Context, p *v1alpha1.Project) (*Statistics, error) {
	counted := &Statistics{RepositorySize: p.Status.SizeBytes}
	switch commits, err := f.Refs.Commits(ctx, p); {
	case err == nil:
		counted.CommitCount = &commits
	case !git.OutOfReach(err) && !ref.Missing(err): // a list also shows projects whose repository is lost
		return nil, err
	}
	var err error
	if counted.JobArtifactsSize, err = f.Activity.Pipelines.ArtifactsSize(ctx, p.UID); err != nil {
		return nil, err
	}
	if f.Images != nil {
		if counted.ContainerRegistrySize, err = f.Images.Records.Size(ctx, p.UID); err != nil {
			return nil, err
		}
	}
	counted.StorageSize = counted.RepositorySize + counted.JobArtifactsSize + counted.ContainerRegistrySize
	return counted, nil
}
