// Package job is AcmeJob `acme.example.org/v1acme1` for Troupe: a number of workers, each of which knows its index.
//
// Change Describe for what the plugin serves, Plan for its pods, and Judge for its status. `wit/framework.wit` explains
// every field; `bindings/` has its types in Go, made by `troupe plugin build`. The same arguments must give the same
// answer: there is no clock, no chance and no network, and the host may call any of them again. Sort what comes from a map.
package job

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	types "acme.example.org/acme/bindings/troupe_framework_types"
	wit "go.bytecodealliance.org/pkg/wit/types"
)

// worker is the one role: its pods are called `JOB-worker-INDEX`.
const worker = "worker"

// label is on all pods of these jobs. The host watches pods that have it.
const label = "acme.example.org/job-name"

// maxReplicas is the most that the host makes for a role.
const maxReplicas = 10000

// Describe says what the plugin serves.
func Describe() types.Descriptor {
	return types.Descriptor{
		Name:    "acme",
		Version: "0.1.0",
		Kinds: []types.KindInfo{{
			Group:       "acme.example.org",
			Version:     "v1acme1",
			Kind:        "AcmeJob",
			Plural:      "acmejobs",
			Switches:    types.Switches{Suspend: wit.Some("/suspend")},
			Roles:       []string{worker},
			EventSource: "acme-plugin",
			Queueing:    types.QueueingHost,
		}},
		Children: []types.ChildKind{{
			ApiVersion: "v1",
			Kind:       "Pod",
			Plural:     "pods",
			Selector:   wit.Some(label),
			OwnedBy:    types.OwnedByJob,
		}},
		ConfigSchema: `{"type":"object","additionalProperties":false}`,
		Grants:       "{}",
	}
}

// spec is what of a job's spec matters.
type spec struct {
	replicas uint32
}

// text returns the value as JSON.
func text(value any) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// parsed returns the value of a text of JSON.
func parsed(text string) any {
	var value any
	decoder := json.NewDecoder(strings.NewReader(text))
	// A float64 would change large integers.
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		panic(err)
	}
	return value
}

// object returns the fields of an object, or nil if the value is none.
func object(value any) map[string]any {
	fields, _ := value.(map[string]any)
	return fields
}

// integer returns the value of a number without a fraction.
func integer(value any) (int64, bool) {
	number, ok := value.(json.Number)
	if !ok {
		return 0, false
	}
	if whole, err := number.Int64(); err == nil {
		return whole, true
	}
	float, err := number.Float64()
	return int64(float), err == nil && float == math.Trunc(float) && math.Abs(float) < 1<<53
}

// checked returns the job's spec, or refuses it with every field that is wrong.
func checked(job types.JobView) (spec, *types.Refusal) {
	var errors []types.FieldError
	wrong := func(path, message string, values ...any) {
		errors = append(errors, types.FieldError{Path: path, Message: fmt.Sprintf(message, values...)})
	}
	whole := object(parsed(job.Spec))
	if suspend := whole["suspend"]; suspend != nil {
		if _, ok := suspend.(bool); !ok {
			wrong("spec.suspend", "must be a boolean, not %s", text(suspend))
		}
	}
	var count int64
	if fields := object(whole["worker"]); fields == nil {
		wrong("spec.worker", "is required: replicas and a template")
	} else {
		replicas, there := fields["replicas"]
		var ok bool
		count, ok = integer(replicas)
		switch {
		case !there:
			wrong("spec.worker.replicas", "must be an integer, not missing")
		case !ok:
			wrong("spec.worker.replicas", "must be an integer, not %s", text(replicas))
		case count < 1 || count > maxReplicas:
			wrong("spec.worker.replicas", "must be from 1 to %d, not %d", maxReplicas, count)
		}
		template := object(fields["template"])
		pod := object(template["spec"])
		containers, _ := pod["containers"].([]any)
		switch {
		case template == nil:
			wrong("spec.worker.template", "is required: a pod template with at least one container")
		case pod == nil:
			wrong("spec.worker.template.spec", "is required: a pod spec with at least one container")
		case len(containers) == 0:
			wrong("spec.worker.template.spec.containers", "must define at least one container")
		}
	}
	if len(errors) > 0 {
		refusal := types.MakeRefusalInvalid(errors)
		return spec{}, &refusal
	}
	return spec{replicas: uint32(count)}, nil
}

// set is the edit that puts a value there.
func set(pointer string, value any) types.Edit {
	return types.MakeEditSet(wit.Tuple2[string, string]{F0: pointer, F1: text(value)})
}

// escaped is a part of a JSON pointer.
func escaped(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// Plan says which pods the job has.
func Plan(job types.JobView) wit.Result[types.JobPlan, types.Refusal] {
	spec, refusal := checked(job)
	if refusal != nil {
		return wit.Err[types.JobPlan](*refusal)
	}
	index := types.MakePieceIndex(0)
	// The template stays with the host: these edits are made in the user's.
	edits := []types.Edit{set("/metadata/labels/"+escaped(label), job.Name), set("/spec/restartPolicy", "Never")}
	role := types.Role{
		Name:     worker,
		Replicas: spec.replicas,
		Backing:  types.MakeBackingPods(),
		PodName:  []types.Piece{types.MakePieceJobName(), types.MakePieceText("-worker-"), index},
		Template: types.MakeTemplateEdited(wit.Tuple2[string, []types.Edit]{F0: "/worker/template", F1: edits}),
		Env: []types.EnvEntry{
			{Name: "WORKER_COUNT", Value: []types.Piece{types.MakePieceText(strconv.Itoa(int(spec.replicas)))}},
			// What differs from pod to pod: the host fills it in.
			{Container: "*", Name: "WORKER_INDEX", Value: []types.Piece{index}},
		},
		Success:      types.SuccessFinal,
		Deletion:     types.DeletionUncounted,
		OnNewAddress: types.OnNewAddressKeep,
	}
	return wit.Ok[types.JobPlan, types.Refusal](types.JobPlan{
		Roles: []types.Role{role},
		Policy: types.Policy{
			CleanOnSuccess: types.CleanKeep,
			CleanOnFailure: types.CleanActive,
			CleanOnSuspend: types.CleanAll,
		},
	})
}

// shown is what Bind was shown: Judge is called after it, on the same instance.
var shown struct {
	spec spec
	seen types.Observation
}

// Bind has nothing to bind: the plan has no object whose body depends on what the pods are.
func Bind(job types.JobView, seen types.Observation, wanted []string) wit.Result[types.Bindings, types.Refusal] {
	spec, refusal := checked(job)
	if refusal != nil {
		return wit.Err[types.Bindings](*refusal)
	}
	shown.spec, shown.seen = spec, seen
	return wit.Ok[types.Bindings, types.Refusal](types.Bindings{})
}

// succeededWithoutPod returns the number of workers that have succeeded and whose pods are gone.
func succeededWithoutPod(seen types.Observation) uint32 {
	var count uint32
	for _, facts := range seen.Roles {
		if facts.Role == worker {
			for _, indices := range facts.Succeeded {
				count += indices.F1 - indices.F0 + 1
			}
		}
	}
	return count
}

// Judge returns the status of the job that Bind was shown, and whether it is over.
func Judge(outlook types.Outlook) wit.Result[types.Verdict, types.Refusal] {
	seen := shown.seen
	count := func(phase types.PodPhase) uint32 {
		var count uint32
		for _, pod := range seen.Pods {
			if pod.Role == worker && !pod.Terminating && pod.Phase == phase {
				count++
			}
		}
		return count
	}
	running, failed := count(types.PodPhaseRunning), count(types.PodPhaseFailed)
	succeeded := count(types.PodPhaseSucceeded) + succeededWithoutPod(seen)
	phase, outcome := "Pending", types.Outcome(types.OutcomeOpen)
	switch {
	case outlook.Suspended:
		phase = "Suspended"
	case failed > 0:
		phase, outcome = "Failed", types.OutcomeFailed
	case succeeded >= shown.spec.replicas:
		phase, outcome = "Succeeded", types.OutcomeSucceeded
	case running+succeeded > 0:
		phase = "Running"
	}
	status := map[string]any{"phase": phase, "running": running, "succeeded": succeeded, "failed": failed}
	if outcome != types.OutcomeOpen {
		status["completionTime"] = time.UnixMilli(int64(seen.Now)).UTC().Format("2006-01-02T15:04:05Z")
		if before, ok := object(parsed(seen.PreviousStatus))["completionTime"].(string); ok {
			status["completionTime"] = before
		}
	}
	// Marshalling sorts the keys of a map.
	return wit.Ok[types.Verdict, types.Refusal](types.Verdict{Status: text(status), Headline: phase, Outcome: outcome})
}
