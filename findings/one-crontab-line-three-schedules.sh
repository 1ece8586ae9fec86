#!/usr/bin/env bash
# Guess: a step of one changes nothing, so "0 0 */1 * 1" is "0 0 * * 1", every Monday, wherever crontab lines are read.
# Seen: robfig/cron (Kubernetes' CronJobs) runs on Mondays; croniter (Airflow and others) takes */1 for a day of the month that
# is named, and runs every day; APScheduler counts the days of the week from Monday = 0 and runs on Tuesdays.
# With "0 0 */2 * 1" the first two run on odd days and on Mondays, APScheduler on Tuesdays that are odd days.
set -euo pipefail
cd "$(mktemp -d)"
cat > go.mod <<'GO'
module finding

go 1.24

require github.com/robfig/cron/v3 v3.0.1
GO
cat > main.go <<'GO'
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/robfig/cron/v3"
)

func main() {
	for _, line := range os.Args[1:] {
		schedule, err := cron.ParseStandard(line)
		if err != nil {
			panic(err)
		}
		fmt.Printf("robfig/cron v3.0.1 %s:", line)
		at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
		for range 6 {
			at = schedule.Next(at)
			fmt.Print(at.Format(" Mon2"))
		}
		fmt.Println()
	}
}
GO
export GOWORK=off GOFLAGS=-mod=mod
python3 -m venv venv
venv/bin/pip -q install croniter==7.0.0 apscheduler==3.11.3
lines=("0 0 */1 * 1" "0 0 */2 * 1")
seen=$(go run . "${lines[@]}" 2>/dev/null
venv/bin/python - "${lines[@]}" <<'PY'
import sys
from datetime import datetime, timezone
from apscheduler.triggers.cron import CronTrigger
from croniter import croniter

noon = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
show = lambda days: " ".join(f"{day:%a}{day.day}" for day in days)
for line in sys.argv[1:]:
    slots = croniter(line, noon)
    print(f"croniter 7.0.0 {line}: {show(slots.get_next(datetime) for _ in range(6))}")
for line in sys.argv[1:]:
    trigger, fired, at = CronTrigger.from_crontab(line, timezone="UTC"), [], noon
    while len(fired) < 6:
        at = trigger.get_next_fire_time(fired[-1] if fired else None, at)
        fired.append(at)
    print(f"APScheduler 3.11.3 {line}: {show(fired)}")
PY
)
echo "$seen"
diff <(echo "$seen") - <<'OUT'
robfig/cron v3.0.1 0 0 */1 * 1: Mon5 Mon12 Mon19 Mon26 Mon2 Mon9
robfig/cron v3.0.1 0 0 */2 * 1: Sat3 Mon5 Wed7 Fri9 Sun11 Mon12
croniter 7.0.0 0 0 */1 * 1: Fri2 Sat3 Sun4 Mon5 Tue6 Wed7
croniter 7.0.0 0 0 */2 * 1: Sat3 Mon5 Wed7 Fri9 Sun11 Mon12
APScheduler 3.11.3 0 0 */1 * 1: Tue6 Tue13 Tue20 Tue27 Tue3 Tue10
APScheduler 3.11.3 0 0 */2 * 1: Tue13 Tue27 Tue3 Tue17 Tue3 Tue17
OUT
echo "as seen: one line, three schedules"
