#!/usr/bin/env bash
# Guess: parse_quantity of Kubernetes' Python client refuses what the API server refuses, and gives the same number.
# Seen: it takes 1K (the API server knows k and Ki alone), 1_000, blanks around a number, NaN and Infinity. In Go, 100Ei is
# silently 2^63-1, though 1e30 is kept exactly; Python has the exact number of both. 0.1n is rounded up to 1n in Go alone.
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
	"os"

	"k8s.io/apimachinery/pkg/api/resource"
)

func main() {
	for _, text := range os.Args[1:] {
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			fmt.Printf("Go %q: refused\n", text)
			continue
		}
		fmt.Printf("Go %q: %s\n", text, quantity.AsDec().String())
	}
}
GO
export GOWORK=off GOFLAGS=-mod=mod
python3 -m venv venv
venv/bin/pip -q install kubernetes==37.0.2
texts=(1K 1k 1_000 " 1" NaN Infinity 100Ei 1e30 0.1n 1.)
seen=$(go run . "${texts[@]}" 2>/dev/null
venv/bin/python - "${texts[@]}" <<'PY'
import sys
from kubernetes.utils.quantity import parse_quantity
for text in sys.argv[1:]:
    try:
        number = f"{parse_quantity(text):f}"
    except ValueError:
        number = "refused"
    print(f'Python "{text}": {number}')
PY
)
echo "k8s.io/apimachinery v0.37.2, kubernetes 37.0.2 of PyPI"
echo "$seen"
diff <(echo "$seen") - <<'OUT'
Go "1K": refused
Go "1k": 1000
Go "1_000": refused
Go " 1": refused
Go "NaN": refused
Go "Infinity": refused
Go "100Ei": 9223372036854775807
Go "1e30": 1000000000000000000000000000000
Go "0.1n": 0.000000001
Go "1.": 1
Python "1K": 1000
Python "1k": 1000
Python "1_000": 1000
Python " 1": 1
Python "NaN": NaN
Python "Infinity": Infinity
Python "100Ei": 115292150460684697600
Python "1e30": 1000000000000000000000000000000
Python "0.1n": 0.0000000001
Python "1.": 1
OUT
echo "as seen: Python reads what the API server refuses, and Go saturates 100Ei"
