#!/usr/bin/env bash
# Guess: metadata.deletionTimestamp minus deletionGracePeriodSeconds is when the deletion was asked for, whatever happens later:
# shortening the grace period moves the timestamp by the same number of seconds. So a pod that ended after that moment was
# stopped, and one that ended before was done.
# Seen: only while the new time is not in the past. When a kubelet ends a pod some seconds after the deletion was asked for, with
# a grace period of 0, the timestamp becomes the present, and the difference names the kubelet's request instead of the user's.
# A request for 5 s after the grace period has passed becomes 1 s from now on the same way.
set -euo pipefail
cd "$(mktemp -d)"
cat > go.mod <<'GO'
module finding

go 1.26.0

require (
	k8s.io/api v0.37.0
	k8s.io/apimachinery v0.37.0
	k8s.io/apiserver v0.37.0
)
GO
cat > main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/kubernetes/scheme"
)

type strategy struct{ runtime.ObjectTyper }

func (strategy) CheckGracefulDelete(context.Context, runtime.Object, *metav1.DeleteOptions) bool {
	return true
}

// Asked to go with 30 s of grace so many seconds ago; now asked to go with less.
func shortened(ago, grace int64) (asked int64, left int64) {
	now := time.Now()
	due := metav1.NewTime(now.Add(time.Duration(30-ago) * time.Second))
	thirty := int64(30)
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", DeletionTimestamp: &due, DeletionGracePeriodSeconds: &thirty}}
	options := &metav1.DeleteOptions{GracePeriodSeconds: &grace}
	if _, _, err := rest.BeforeDelete(strategy{scheme.Scheme}, context.Background(), pod, options); err != nil {
		panic(err)
	}
	left = *pod.DeletionGracePeriodSeconds
	asked = int64(now.Sub(pod.DeletionTimestamp.Add(-time.Duration(left) * time.Second)).Round(time.Second).Seconds())
	return asked, left
}

func main() {
	for _, it := range [][2]int64{{4, 20}, {4, 0}, {10, 5}} {
		asked, left := shortened(it[0], it[1])
		fmt.Printf("k8s.io/apiserver v0.37.0: asked %d s ago, shortened to %d s: says %d s ago, grace %d s\n", it[0], it[1], asked, left)
	}
}
GO
export GOWORK=off GOFLAGS=-mod=mod
seen=$(go run . 2>/dev/null)
echo "$seen"
diff <(echo "$seen") - <<'OUT'
k8s.io/apiserver v0.37.0: asked 4 s ago, shortened to 20 s: says 4 s ago, grace 20 s
k8s.io/apiserver v0.37.0: asked 4 s ago, shortened to 0 s: says 0 s ago, grace 0 s
k8s.io/apiserver v0.37.0: asked 10 s ago, shortened to 5 s: says 1 s ago, grace 1 s
OUT
echo "as seen: the difference forgets when the deletion was asked for"
