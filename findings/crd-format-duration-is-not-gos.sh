#!/usr/bin/env bash
# Guess: `format: duration` in a CRD lets in what metav1.Duration reads, "1h30m", and refuses "2 days", which Go does not know.
# Seen: the API server's validator takes days and weeks, with blanks and in words, and ISO's P1D; a field of type
# metav1.Duration in the controller then fails to decode the stored object. It refuses "1y" and "10". `format: uuid` needs no
# dashes, and `format: ipv4` takes ::ffff:1.2.3.4 and a leading zero, which Go's parser of addresses refuses.
set -euo pipefail
cd "$(mktemp -d)"
cat > go.mod <<'GO'
module finding

go 1.26.0

require (
	k8s.io/apimachinery v0.37.2
	k8s.io/kube-openapi v0.0.0-20260721132016-d427ff9ee9ad
)
GO
cat > main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

func main() {
	for _, text := range []string{"1h30m", "2 days", "3 weeks", "P1D", "1d", "1y", "10"} {
		quoted, _ := json.Marshal(text)
		decodes := json.Unmarshal(quoted, &metav1.Duration{}) == nil
		fmt.Printf("duration %q: validates %t, metav1.Duration decodes %t\n", text, strfmt.Default.Validates("duration", text), decodes)
	}
	fmt.Println("uuid without dashes:", strfmt.Default.Validates("uuid", "123e4567e89b12d3a456426614174000"))
	for _, text := range []string{"::ffff:1.2.3.4", "01.2.3.4"} {
		address, err := netip.ParseAddr(text)
		fmt.Printf("ipv4 %s: validates %t, Go takes it for IPv4 %t\n", text, strfmt.Default.Validates("ipv4", text), err == nil && address.Is4())
	}
}
GO
export GOWORK=off GOFLAGS=-mod=mod
seen=$(go run . 2>/dev/null)
echo "k8s.io/kube-openapi of Kubernetes v1.37.2"
echo "$seen"
diff <(echo "$seen") - <<'OUT'
duration "1h30m": validates true, metav1.Duration decodes true
duration "2 days": validates true, metav1.Duration decodes false
duration "3 weeks": validates true, metav1.Duration decodes false
duration "P1D": validates true, metav1.Duration decodes false
duration "1d": validates true, metav1.Duration decodes false
duration "1y": validates false, metav1.Duration decodes false
duration "10": validates false, metav1.Duration decodes false
uuid without dashes: true
ipv4 ::ffff:1.2.3.4: validates true, Go takes it for IPv4 false
ipv4 01.2.3.4: validates true, Go takes it for IPv4 false
OUT
echo "as seen: the formats let in more than Go's types read"
