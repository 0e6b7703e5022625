// Package virtualtest has a virtual resource for tests.
package virtualtest

import (
	"maps"
	"strconv"

	"k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/apiserver/aggregated/virtual"
)

// GroupVersion is the group of toys.
var GroupVersion = schema.GroupVersion{Group: "activity.forgeplane.dev", Version: "v1alpha1"}

// Toy is a virtual object.
type Toy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Status            ToyStatus `json:"status"`
}

// ToyStatus describes a toy.
type ToyStatus struct {
	State string `json:"state"`
	Price int64  `json:"price"`
}

// ToyList is a list of toys.
type ToyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Toy `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (t *Toy) DeepCopyObject() runtime.Object {
	c := *t
	t.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// DeepCopyObject implements runtime.Object.
func (l *ToyList) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = nil
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*Toy))
	}
	return &c
}

// Group returns a group with the toys of a source.
func Group(source virtual.Source) virtual.Group {
	toys := virtual.Resource{
		Singular: "toy", ShortNames: []string{"ty"},
		New: func() client.Object { return &Toy{} }, NewList: func() client.ObjectList { return &ToyList{} },
		Columns: []virtual.Column{
			{
				TableColumnDefinition: metav1.TableColumnDefinition{Name: "State", Type: "string", Description: "Whether the toy is whole."},
				Cell:                  func(obj client.Object) any { return obj.(*Toy).Status.State },
			},
			{
				TableColumnDefinition: metav1.TableColumnDefinition{Name: "Price", Type: "integer", Priority: 1, Description: "Price of the toy."},
				Cell:                  func(obj client.Object) any { return obj.(*Toy).Status.Price },
			},
		},
		Fields: Fields,
		Source: source,
	}
	return virtual.Group{GroupVersion: GroupVersion, Resources: map[string]virtual.Resource{"toys": toys}, Definitions: definitions}
}

// Fields returns the fields by which clients can select a toy, beside its name and namespace.
func Fields(obj client.Object) fields.Set {
	t := obj.(*Toy)
	return fields.Set{"status.state": t.Status.State, "status.price": strconv.FormatInt(t.Status.Price, 10)}
}

// The names of definitions. openapi-gen makes them from the package of the types.
const (
	toyName, toyListName = "dev.forgeplane.activity.v1alpha1.Toy", "dev.forgeplane.activity.v1alpha1.ToyList"
)

// OpenAPIModelName returns the name of the definition.
func (Toy) OpenAPIModelName() string { return toyName }

// OpenAPIModelName returns the name of the definition.
func (ToyList) OpenAPIModelName() string { return toyListName }

func definitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	objectMeta, listMeta := metav1.ObjectMeta{}.OpenAPIModelName(), metav1.ListMeta{}.OpenAPIModelName()
	all, item := openapi.GetOpenAPIDefinitions(ref), schemaAt(ref(toyName))
	maps.Copy(all, map[string]common.OpenAPIDefinition{
		toyName: {
			Schema: *kind("Toy is a virtual object.").
				SetProperty("metadata", schemaAt(ref(objectMeta))).
				SetProperty("status", *new(spec.Schema).Typed("object", "").WithDescription("State and price of the toy.").
					SetProperty("state", *spec.StringProperty().WithDescription("Whole or broken.")).
					SetProperty("price", *spec.Int64Property().WithDescription("Price of the toy."))),
			Dependencies: []string{objectMeta},
		},
		toyListName: {
			Schema: *kind("ToyList is a list of toys.").
				SetProperty("metadata", schemaAt(ref(listMeta))).
				SetProperty("items", *spec.ArrayProperty(&item)),
			Dependencies: []string{listMeta, toyName},
		},
	})
	return all
}

func schemaAt(ref spec.Ref) spec.Schema { return spec.Schema{SchemaProps: spec.SchemaProps{Ref: ref}} }

func kind(description string) *spec.Schema {
	return new(spec.Schema).Typed("object", "").WithDescription(description).
		SetProperty("apiVersion", *spec.StringProperty()).SetProperty("kind", *spec.StringProperty())
}
