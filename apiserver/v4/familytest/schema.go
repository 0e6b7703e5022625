package familytest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// Schemas refuse what kube-apiserver would refuse, by the definitions of the kinds.
type Schemas struct {
	scheme *runtime.Scheme
	kinds  map[string]*kind
}

type kind struct {
	schema    *schema.Structural
	validator validation.SchemaValidator
	rules     *cel.Validator
}

// LoadSchemas reads the definitions in a directory.
func LoadSchemas(directory string) (*Schemas, error) {
	files, err := filepath.Glob(filepath.Join(directory, "forgeplane.dev_*.yaml"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("there are no definitions in %s", directory)
	}
	if err != nil {
		return nil, err
	}
	s := &Schemas{scheme: runtime.NewScheme(), kinds: map[string]*kind{}}
	if err := v1alpha1.AddToScheme(s.scheme); err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if s.kinds[crd.Spec.Names.Kind], err = load(crd); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return s, nil
}

func load(crd *apiextensionsv1.CustomResourceDefinition) (*kind, error) {
	internal := &apiextensions.JSONSchemaProps{}
	declared := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(declared, internal, nil); err != nil {
		return nil, err
	}
	structural, err := schema.NewStructural(internal)
	if err != nil {
		return nil, err
	}
	validator, _, err := validation.NewSchemaValidator(internal)
	return &kind{structural, validator, cel.NewValidator(structural, true, celconfig.PerCallLimit)}, err
}

// Admit sets the defaults of an object, and returns the error with which kube-apiserver would refuse it. was is the previous state; nil for
// a new object. Objects of other API groups are accepted.
func (s *Schemas) Admit(ctx context.Context, is, was client.Object) error {
	gvk, err := apiutil.GVKForObject(is, s.scheme)
	if runtime.IsNotRegisteredError(err) {
		return nil
	}
	if err != nil {
		return err
	}
	k := s.kinds[gvk.Kind]
	after, err := runtime.DefaultUnstructuredConverter.ToUnstructured(is)
	if err != nil {
		return err
	}
	defaulting.Default(after, k.schema)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(after, is); err != nil {
		return err
	}
	wrong := apivalidation.ValidateObjectMetaAccessor(is, is.GetNamespace() != "", apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	wrong = append(wrong, validation.ValidateCustomResource(nil, after, k.validator)...)
	if len(wrong) == 0 {
		var before any
		if was != nil {
			if before, err = runtime.DefaultUnstructuredConverter.ToUnstructured(was); err != nil {
				return err
			}
		}
		wrong, _ = k.rules.Validate(ctx, nil, k.schema, after, before, celconfig.RuntimeCELCostBudget)
	}
	if len(wrong) > 0 {
		return apierrors.NewInvalid(gvk.GroupKind(), is.GetName(), wrong)
	}
	return nil
}
