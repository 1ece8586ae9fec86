#!/usr/bin/env bash
# Guess: a manager applies `labels: {a: b}` by server-side apply, then `labels: {}`. The object has an empty map of labels.
# Seen: the object has `labels: null`. The library of the API server removes the key that the manager no longer applies, and
# the map with its last key, although the manager still applies the map. If the field is not nullable, its schema refuses the
# null. If the manager applies `labels: {}` first, the object has an empty map.
set -euo pipefail
cd "$(mktemp -d)"
cat > go.mod <<'GO'
module finding

go 1.26.0

require sigs.k8s.io/structured-merge-diff/v6 v6.4.2
GO
export GOWORK=off GOFLAGS=-mod=mod
cat > main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

const schema = `types:
- name: object
  map:
    fields:
    - name: labels
      type:
        map:
          elementType:
            scalar: string
`

// One version of the object, so that nothing is converted.
type same struct{}

func (same) Convert(object *typed.TypedValue, _ fieldpath.APIVersion) (*typed.TypedValue, error) {
	return object, nil
}
func (same) IsMissingVersionError(error) bool { return false }

func applied(texts ...string) string {
	parser, err := typed.NewParser(schema)
	if err != nil {
		panic(err)
	}
	updater := (&merge.UpdaterBuilder{Converter: same{}}).BuildUpdater()
	object, managers := parser.Type("object"), fieldpath.ManagedFields{}
	live, err := object.FromYAML("{}")
	if err != nil {
		panic(err)
	}
	for _, text := range texts {
		config, err := object.FromYAML(typed.YAMLObject(text))
		if err != nil {
			panic(err)
		}
		next, after, err := updater.Apply(live, config, "v1", managers, "user", false)
		if err != nil {
			panic(err)
		}
		if managers = after; next != nil {
			live = next
		}
	}
	labels, found := live.AsValue().AsMap().Get("labels")
	switch {
	case !found:
		return "no labels"
	case labels.IsNull():
		return "labels: null"
	default:
		return fmt.Sprintf("labels: a map of %d", labels.AsMap().Length())
	}
}

func main() {
	first, second := applied("labels: {}"), applied("labels: {a: b}", "labels: {}")
	fmt.Println("labels: {} over nothing:          ", first)
	fmt.Println("labels: {} over the own {a: b}:   ", second)
	if first != "labels: a map of 0" || second != "labels: null" {
		fmt.Println("this has changed")
		os.Exit(1)
	}
}
GO
echo "structured-merge-diff v6.4.2, as Kubernetes 1.37.2 has it:"
go run .
