"""AcmeJob `acme.example.org/v1acme1` for Troupe: so many workers, which are told who they are.

Change `describe` for what the plugin serves, `plan` for its pods, and `judge` for its status. `wit/framework.wit`
explains every field; `wit_world` is made from it. The same arguments must give the same answer: there is no clock and no
network, and the host may call any of them again.
"""

import json
from datetime import datetime, timezone

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.framework import *
from wit_world.imports.types import *

# The one role: its pods are called `JOB-worker-INDEX`.
WORKER = "worker"

# The label of all pods of these jobs. The host watches pods that have it.
LABEL = "acme.example.org/job-name"

# The most replicas that the host makes for a role.
MAX_REPLICAS = 10_000


class Framework(exports.Framework):
    def describe(self):
        kind = KindInfo(
            group="acme.example.org",
            version="v1acme1",
            kind="AcmeJob",
            plural="acmejobs",
            switches=Switches(suspend="/suspend", managed_by=None),
            own_manager=None,
            retired_finalizers=[],
            roles=[WORKER],
            event_source="acme-plugin",
            queueing=Queueing.HOST,
        )
        pods = ChildKind(api_version="v1", kind="Pod", plural="pods", selector=LABEL, keep=[], optional=False)
        return Descriptor(
            name="acme",
            version="0.1.0",
            kinds=[kind],
            children=[pods],
            config_schema='{ "type": "object", "additionalProperties": false }',
            event_reasons=[],
            grants="{}",
        )

    def plan(self, job):
        worker = checked(job)["worker"]
        # The template stays with the host: these edits are made in the user's.
        edits = [
            Edit_Set(("/metadata/labels/" + LABEL.replace("/", "~1"), json.dumps(job.name))),
            Edit_Set(("/spec/restartPolicy", '"Never"')),
        ]
        role = Role(
            name=WORKER,
            replicas=worker["replicas"],
            backing=Backing_Pods(),
            pod_name=[Piece_JobName(), Piece_Text("-worker-"), Piece_Index(0)],
            hostname=None,
            subdomain=None,
            template=Template_Edited(("/worker/template", edits)),
            env=[
                EnvEntry(container="", name="WORKER_COUNT", value=[Piece_Text(str(worker["replicas"]))]),
                # What differs from pod to pod: the host fills it in.
                EnvEntry(container="*", name="WORKER_INDEX", value=[Piece_Index(0)]),
            ],
            labels=[],
            fill=[],
            success=Success.FINAL,
            failures=[],
            deletion=Deletion.UNCOUNTED,
            at_once=None,
            failures_per_replica=None,
            after=[],
        )
        policy = Policy(
            clean_on_success=Clean.KEEP, clean_on_failure=Clean.ACTIVE, clean_on_suspend=Clean.ALL, ttl=None
        )
        return JobPlan(roles=[role], objects=[], secrets=[], series=[], host_ports=0, policy=policy, warnings=[])

    def bind(self, job, seen, wanted):
        """The plan has no object whose body depends on what the pods are, so there is nothing to bind.

        `judge` is called after it, on the same instance.
        """
        global shown
        shown = (checked(job), seen)
        return Bindings(bodies=[], runs=[], remove=[])

    def judge(self, outlook):
        spec, seen = shown
        phases = [pod.phase for pod in seen.pods if pod.role == WORKER and not pod.terminating]
        running, failed = phases.count(PodPhase.RUNNING), phases.count(PodPhase.FAILED)
        # Pods that have succeeded may be gone.
        gone = [last - first + 1 for facts in seen.roles if facts.role == WORKER for first, last in facts.succeeded]
        succeeded = phases.count(PodPhase.SUCCEEDED) + sum(gone)
        if outlook.suspended:
            phase, outcome = "Suspended", Outcome.OPEN
        elif failed > 0:
            phase, outcome = "Failed", Outcome.FAILED
        elif succeeded >= spec["worker"]["replicas"]:
            phase, outcome = "Succeeded", Outcome.SUCCEEDED
        elif running + succeeded > 0:
            phase, outcome = "Running", Outcome.OPEN
        else:
            phase, outcome = "Pending", Outcome.OPEN
        status = {"phase": phase, "running": running, "succeeded": succeeded, "failed": failed}
        if outcome != Outcome.OPEN:
            before = json.loads(seen.previous_status).get("completionTime")
            status["completionTime"] = before or rfc3339(seen.now)
        return Verdict(
            status=json.dumps(status), headline=phase, outcome=outcome, clean=None, wake_at=None, events=[]
        )


# What `bind` was shown.
shown = None


def checked(job):
    """Returns the job's spec, or refuses it with every field that is wrong."""
    spec = json.loads(job.spec)
    errors = []

    def wrong(path, message):
        errors.append(FieldError(path=path, message=message))

    suspend, worker = spec.get("suspend"), spec.get("worker")
    if suspend is not None and not isinstance(suspend, bool):
        wrong("spec.suspend", f"must be a boolean, not {json.dumps(suspend)}")
    if not isinstance(worker, dict):
        wrong("spec.worker", "is required: replicas and a template")
    else:
        replicas = worker.get("replicas", "missing")
        # To Python True is an integer.
        if not isinstance(replicas, int) or isinstance(replicas, bool):
            wrong("spec.worker.replicas", f"must be an integer, not {said(worker, 'replicas')}")
        elif not 1 <= replicas <= MAX_REPLICAS:
            wrong("spec.worker.replicas", f"must be from 1 to {MAX_REPLICAS}, not {replicas}")
        template = worker.get("template")
        if not isinstance(template, dict):
            wrong("spec.worker.template", "is required: a pod template with at least one container")
        elif not isinstance(template.get("spec"), dict):
            wrong("spec.worker.template.spec", "is required: a pod spec with at least one container")
        elif not isinstance(template["spec"].get("containers"), list) or not template["spec"]["containers"]:
            wrong("spec.worker.template.spec.containers", "must define at least one container")
    if errors:
        raise Err(Refusal_Invalid(errors))
    return spec


def said(fields, name):
    return json.dumps(fields[name]) if name in fields else "missing"


def rfc3339(milliseconds):
    return datetime.fromtimestamp(milliseconds // 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
