#!/usr/bin/env bash
# Guess: a Job whose activeDeadlineSeconds is larger than any it could reach, 9223372037 s or 292 years, runs without a limit.
# Seen: the Job controller of Kubernetes 1.37.2 fails it with DeadlineExceeded within a second: as nanoseconds the number is
# negative. One second less is no limit. The API server takes both.
set -euo pipefail
cd "$(mktemp -d)"
version=1.37.2
staging=v0.37.2
cat > go.mod <<GO
module finding

go 1.26.0

require k8s.io/kubernetes v$version
GO
export GOWORK=off GOFLAGS=-mod=mod
# The modules of Kubernetes' own repository have the version v0.0.0 in it.
folder=$(go mod download -json "k8s.io/kubernetes@v$version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
sed -n 's/^\t\(k8s.io\/[^ ]*\) => .*/\1/p' "$folder/go.mod" | while read -r module; do
  go mod edit -replace "$module=$module@$staging"
done
cat > main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/utils/ptr"
)

func fails(deadline int64) string {
	ctx, end := context.WithTimeout(context.Background(), 20*time.Second)
	defer end()
	labels := map[string]string{"batch.kubernetes.io/controller-uid": "1"}
	one := &batch.Job{
		ObjectMeta: meta.ObjectMeta{Name: "one", Namespace: "default", UID: "1", Labels: labels},
		Spec: batch.JobSpec{
			ActiveDeadlineSeconds: &deadline, BackoffLimit: ptr.To[int32](6), CompletionMode: ptr.To(batch.NonIndexedCompletion),
			Completions: ptr.To[int32](1), Parallelism: ptr.To[int32](1), Suspend: ptr.To(false),
			PodReplacementPolicy: ptr.To(batch.TerminatingOrFailed),
			Selector:             &meta.LabelSelector{MatchLabels: labels},
			Template: core.PodTemplateSpec{
				ObjectMeta: meta.ObjectMeta{Labels: labels},
				Spec:       core.PodSpec{RestartPolicy: core.RestartPolicyNever, Containers: []core.Container{{Name: "c", Image: "i"}}},
			},
		},
	}
	client := fake.NewClientset(one)
	factory := informers.NewSharedInformerFactory(client, 0)
	groups := factory.Scheduling().V1beta1()
	controller, err := job.NewController(ctx, client, factory.Core().V1().Pods(), factory.Batch().V1().Jobs(),
		groups.Workloads(), groups.PodGroups())
	if err != nil {
		panic(err)
	}
	factory.Start(ctx.Done())
	go controller.Run(ctx, 1)
	for ctx.Err() == nil {
		now, err := client.BatchV1().Jobs("default").Get(ctx, "one", meta.GetOptions{})
		if err != nil {
			panic(err)
		}
		for _, condition := range now.Status.Conditions {
			if condition.Status == core.ConditionTrue {
				return string(condition.Type) + " " + condition.Reason
			}
		}
		pods, _ := client.CoreV1().Pods("default").List(ctx, meta.ListOptions{})
		if now.Status.Active == 1 && len(pods.Items) == 1 {
			return "runs"
		}
		time.Sleep(50 * time.Millisecond)
	}
	return "nothing within 20 s"
}

func main() {
	for _, deadline := range []int64{9223372036, 9223372037} {
		fmt.Println("k8s.io/kubernetes v1.37.2, activeDeadlineSeconds", deadline, "of a new Job:", fails(deadline))
	}
}
GO
seen=$(go run . 2>/dev/null)
echo "$seen"
diff <(echo "$seen") - <<'OUT'
k8s.io/kubernetes v1.37.2, activeDeadlineSeconds 9223372036 of a new Job: runs
k8s.io/kubernetes v1.37.2, activeDeadlineSeconds 9223372037 of a new Job: FailureTarget DeadlineExceeded
OUT
echo "as seen: a deadline beyond 292 years is over at once"
