#!/usr/bin/env bash
# Guess: Cap of apimachinery's wait.Backoff bounds the pause, and all Steps are taken: 10 attempts.
# Seen: the pause that would exceed Cap is the last one. Of 10 steps that begin with 1 ms, double, and are capped at 8 ms, 4
# attempts are made. Without Cap all 10 are.
set -euo pipefail
cd "$(mktemp -d)"
cat > go.mod <<'GO'
module finding

go 1.26.0

require k8s.io/apimachinery v0.37.2
GO
cat > main.go <<'GO'
package main

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

func attempts(cap time.Duration) (count int) {
	backoff := wait.Backoff{Duration: time.Millisecond, Factor: 2, Steps: 10, Cap: cap}
	_ = wait.ExponentialBackoff(backoff, func() (bool, error) {
		count++
		return false, nil
	})
	return count
}

func main() {
	fmt.Println("k8s.io/apimachinery v0.37.2, 10 steps, without cap:", attempts(0))
	fmt.Println("k8s.io/apimachinery v0.37.2, 10 steps, cap of 8 ms:", attempts(8*time.Millisecond))
}
GO
export GOWORK=off GOFLAGS=-mod=mod
seen=$(go run . 2>/dev/null)
echo "$seen"
diff <(echo "$seen") - <<'OUT'
k8s.io/apimachinery v0.37.2, 10 steps, without cap: 10
k8s.io/apimachinery v0.37.2, 10 steps, cap of 8 ms: 4
OUT
echo "as seen: the cap ends the retries"
