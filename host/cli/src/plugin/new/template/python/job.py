"""AcmeJob `acme.example.org/v1acme1` for Troupe: so many workers, each of which knows its index.

Change `describe` for what the plugin serves, `plan` for its pods, and `judge` for its status. `wit/framework.wit`
explains every field; `bindings/` has its types in Python, for an editor. The same arguments must give the same answer:
there is no clock, no chance and no network, and the host may call any of them again. Sort what comes from a set: its order
comes with the build, as the numbers of `random` do. A module that is used must be imported at the top of a file.
"""

import functools
import json
from collections.abc import Callable
from datetime import datetime, timezone

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import types

# The one role: its pods are called `JOB-worker-INDEX`.
WORKER = "worker"

# The label of all pods of these jobs. The host watches pods that have it.
LABEL = "acme.example.org/job-name"

# The most replicas that the host makes for a role.
MAX_REPLICAS = 10000


def set_to(pointer: str, value: object) -> types.Edit:
    return types.Edit_Set((pointer, json.dumps(value)))


def escaped(key: str) -> str:
    """A part of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def is_integer(value: object) -> bool:
    """A boolean is an integer in Python, but not in JSON."""
    return isinstance(value, int) and not isinstance(value, bool)


def checked(job: types.JobView) -> dict:
    """Returns the job's spec, or refuses it with every field that is wrong."""
    spec = json.loads(job.spec)
    errors = []

    def wrong(path: str, message: str) -> None:
        errors.append(types.FieldError(path, message))

    suspend = spec.get("suspend")
    if suspend is not None and not isinstance(suspend, bool):
        wrong("spec.suspend", f"must be a boolean, not {json.dumps(suspend)}")
    worker = spec.get("worker")
    if not isinstance(worker, dict):
        wrong("spec.worker", "is required: replicas and a template")
    else:
        replicas = worker.get("replicas")
        if not is_integer(replicas):
            said = json.dumps(replicas) if "replicas" in worker else "missing"
            wrong("spec.worker.replicas", f"must be an integer, not {said}")
        elif not 1 <= replicas <= MAX_REPLICAS:
            wrong("spec.worker.replicas", f"must be from 1 to {MAX_REPLICAS}, not {replicas}")
        template = worker.get("template")
        pod = template.get("spec") if isinstance(template, dict) else None
        containers = pod.get("containers") if isinstance(pod, dict) else None
        if not isinstance(template, dict):
            wrong("spec.worker.template", "is required: a pod template with at least one container")
        elif not isinstance(pod, dict):
            wrong("spec.worker.template.spec", "is required: a pod spec with at least one container")
        elif not isinstance(containers, list) or not containers:
            wrong("spec.worker.template.spec.containers", "must define at least one container")
    if errors:
        raise Err(types.Refusal_Invalid(errors))
    return spec


def succeeded_without_pod(seen: types.Observation) -> int:
    """The number of workers that have succeeded and whose pods are gone."""
    ranges = [range for facts in seen.roles if facts.role == WORKER for range in facts.succeeded]
    return sum(last - first + 1 for first, last in ranges)


def rfc3339(milliseconds: int) -> str:
    time = datetime.fromtimestamp(milliseconds // 1000, timezone.utc)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def told(answer: Callable) -> Callable:
    """Tells the host the exception that ends an answer. The component has no standard error that could."""

    @functools.wraps(answer)
    def telling(*arguments: object) -> object:
        try:
            return answer(*arguments)
        except Err:
            raise
        except Exception as error:
            at = error.__traceback__
            while at.tb_next:
                at = at.tb_next
            code = at.tb_frame.f_code
            raise Err(types.Refusal_Internal(f"{error!r} in {code.co_filename}, line {at.tb_lineno}"))

    return telling


# What `bind` was shown: `judge` is called after it, on the same instance, but with another `self`.
shown: tuple[dict, types.Observation]


class Framework(exports.Framework):
    """The framework."""

    def describe(self) -> types.Descriptor:
        kind = types.KindInfo(
            group="acme.example.org",
            version="v1acme1",
            kind="AcmeJob",
            plural="acmejobs",
            switches=types.Switches(suspend="/suspend", managed_by=None),
            own_manager=None,
            retired_finalizers=[],
            roles=[WORKER],
            event_source="acme-plugin",
            queueing=types.Queueing.HOST,
        )
        pods = types.ChildKind(
            api_version="v1",
            kind="Pod",
            plural="pods",
            selector=LABEL,
            keep=[],
            optional=False,
            owned_by=types.OwnedBy.JOB,
        )
        return types.Descriptor(
            name="acme",
            version="0.1.0",
            kinds=[kind],
            children=[pods],
            reads=[],
            gangs=False,
            config_schema=json.dumps({"type": "object", "additionalProperties": False}),
            event_reasons=[],
            grants="{}",
        )

    @told
    def plan(self, job: types.JobView) -> types.JobPlan:
        replicas = checked(job)["worker"]["replicas"]
        # The template stays with the host: these edits are made in the user's.
        edits = [
            set_to(f"/metadata/labels/{escaped(LABEL)}", job.name),
            set_to("/spec/restartPolicy", "Never"),
        ]
        role = types.Role(
            name=WORKER,
            replicas=replicas,
            backing=types.Backing_Pods(),
            pod_name=[types.Piece_JobName(), types.Piece_Text("-worker-"), types.Piece_Index(0)],
            hostname=None,
            subdomain=None,
            template=types.Template_Edited(("/worker/template", edits)),
            env=[
                types.EnvEntry("", "WORKER_COUNT", [types.Piece_Text(str(replicas))]),
                # What differs from pod to pod: the host fills it in.
                types.EnvEntry("*", "WORKER_INDEX", [types.Piece_Index(0)]),
            ],
            labels=[],
            fill=[],
            success=types.Success.FINAL,
            failures=[],
            deletion=types.Deletion.UNCOUNTED,
            at_once=None,
            failures_per_replica=None,
            left_out=[],
            on_new_address=types.OnNewAddress.KEEP,
            after=[],
        )
        policy = types.Policy(
            clean_on_success=types.Clean.KEEP,
            clean_on_failure=types.Clean.ACTIVE,
            clean_on_suspend=types.Clean.ALL,
            ttl=None,
        )
        return types.JobPlan(
            roles=[role],
            objects=[],
            secrets=[],
            series=[],
            gang=None,
            success_criteria=[],
            host_ports=0,
            policy=policy,
            warnings=[],
        )

    @told
    def bind(self, job: types.JobView, seen: types.Observation, wanted: list[str]) -> types.Bindings:
        """The plan has no object whose body depends on what the pods are, so there is nothing to bind."""
        global shown
        shown = (checked(job), seen)
        return types.Bindings(bodies=[], runs=[], remove=[])

    @told
    def judge(self, outlook: types.Outlook) -> types.Verdict:
        spec, seen = shown
        phases = [pod.phase for pod in seen.pods if pod.role == WORKER and not pod.terminating]
        running = phases.count(types.PodPhase.RUNNING)
        failed = phases.count(types.PodPhase.FAILED)
        succeeded = phases.count(types.PodPhase.SUCCEEDED) + succeeded_without_pod(seen)
        phase, outcome = "Pending", types.Outcome.OPEN
        if outlook.suspended:
            phase = "Suspended"
        elif failed > 0:
            phase, outcome = "Failed", types.Outcome.FAILED
        elif succeeded >= spec["worker"]["replicas"]:
            phase, outcome = "Succeeded", types.Outcome.SUCCEEDED
        elif running + succeeded > 0:
            phase = "Running"
        status = {"phase": phase, "running": running, "succeeded": succeeded, "failed": failed}
        if outcome != types.Outcome.OPEN:
            before = json.loads(seen.previous_status).get("completionTime")
            status["completionTime"] = before or rfc3339(seen.now)
        return types.Verdict(
            status=json.dumps(status),
            headline=phase,
            outcome=outcome,
            clean=None,
            wake_at=None,
            events=[],
        )
