#!/usr/bin/env bash
# Guess: a JSON merge patch (RFC 7386) takes a list as it is, so that {"list":[{"b":null}]} stores [{"b":null}].
# Seen: the Go library by which kube-apiserver applies merge patches drops members that are null from objects in lists, too,
# and keeps nulls that are items. Python's json-merge-patch keeps both, as the RFC's algorithm does. What is created by POST
# with such a list and then patched to the same value is stored differently, so a controller that compares the two never
# finds them equal.
set -euo pipefail
cd "$(mktemp -d)"
cat > go.mod <<'GO'
module finding

go 1.24

require (
	github.com/evanphx/json-patch/v5 v5.9.11
	gopkg.in/evanphx/json-patch.v4 v4.13.0
)
GO
cat > main.go <<'GO'
package main

import (
	"fmt"

	v5 "github.com/evanphx/json-patch/v5"
	v4 "gopkg.in/evanphx/json-patch.v4"
)

func main() {
	patch := []byte(`{"list":[null,1,{"b":null,"c":2}]}`)
	four, err := v4.MergePatch([]byte(`{}`), patch)
	fmt.Println("evanphx/json-patch v4.13.0:", string(four), err)
	five, err := v5.MergePatch([]byte(`{}`), patch)
	fmt.Println("evanphx/json-patch v5.9.11:", string(five), err)
}
GO
export GOWORK=off GOFLAGS=-mod=mod
python3 -m venv venv
venv/bin/pip -q install json-merge-patch==0.3.0
seen=$(go run . 2>/dev/null
venv/bin/python - <<'PY'
import json
from json_merge_patch import lib
patched = lib.merge({}, {"list": [None, 1, {"b": None, "c": 2}]})
print("json-merge-patch 0.3.0:", json.dumps(patched, separators=(",", ":")))
PY
)
echo "$seen"
diff <(echo "$seen") - <<'OUT'
evanphx/json-patch v4.13.0: {"list":[null,1,{"c":2}]} <nil>
evanphx/json-patch v5.9.11: {"list":[null,1,{"c":2}]} <nil>
json-merge-patch 0.3.0: {"list":[null,1,{"b":null,"c":2}]}
OUT
echo "as seen: a null member of an object in a list is dropped in Go and kept in Python"
