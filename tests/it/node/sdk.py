"""Makes, waits for, lists, reads and deletes a job of each kind with the Python package `kubeflow-training` as it is
published. Arguments: a kubeconfig, a namespace, an image with a shell. Prints what the package returned, by kind, as JSON."""

import json
import sys
import time

from kubeflow.training import TrainingClient, constants, models

KUBECONFIG, NAMESPACE, IMAGE = sys.argv[1:]
REPLICAS = {
    "TFJob": ("tf_replica_specs", {"Chief": 1, "PS": 1, "Worker": 2}),
    "PyTorchJob": ("pytorch_replica_specs", {"Master": 1, "Worker": 2}),
    "XGBoostJob": ("xgb_replica_specs", {"Master": 1, "Worker": 2}),
    "JAXJob": ("jax_replica_specs", {"Worker": 2}),
    "PaddleJob": ("paddle_replica_specs", {"Master": 1, "Worker": 2}),
}


def job_of(kind):
    """A job by the name of its kind, whose pods say who they are."""
    parameters, (field, replicas) = constants.JOB_PARAMETERS[kind], REPLICAS[kind]
    command = ["sh", "-c", "echo hello from $(hostname)"]
    container = models.V1Container(name=parameters["container"], image=IMAGE, command=command)
    template = models.V1PodTemplateSpec(spec=models.V1PodSpec(containers=[container]))

    def replica_spec(count):
        return models.KubeflowOrgV1ReplicaSpec(replicas=count, template=template, restart_policy="Never")

    specs = {of: replica_spec(count) for of, count in replicas.items()}
    policy = models.KubeflowOrgV1RunPolicy(clean_pod_policy="None")
    spec = getattr(models, parameters["model"] + "Spec")(run_policy=policy, **{field: specs})
    return getattr(models, parameters["model"])(
        api_version=constants.API_VERSION, kind=kind, metadata=models.V1ObjectMeta(name=kind.lower()), spec=spec
    )


def wait_for_pods(client, name):
    """The package reads no logs of pods that are pending, as some may be when those that decide have succeeded."""
    deadline = time.monotonic() + 120
    while any(pod.status.phase != "Succeeded" for pod in client.get_job_pods(name)):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{name} has pods that do not succeed")
        time.sleep(0.1)


def names(jobs):
    return sorted(job.metadata.name for job in jobs)


def seen(client, name):
    """What the package knows of a job that succeeds."""
    job = client.wait_for_job_conditions(name, polling_interval=1, wait_timeout=240)
    wait_for_pods(client, name)
    logs, events = client.get_job_logs(name, is_master=False, verbose=True)
    return {
        "listed": names(client.list_jobs()),
        "created": client.is_job_created(name),
        "running": client.is_job_running(name),
        "restarting": client.is_job_restarting(name),
        "succeeded": client.is_job_succeeded(job=job),
        "failed": client.is_job_failed(name),
        "pods": sorted(client.get_job_pod_names(name)),
        "master": client.get_job_pod_names(name, is_master=True),
        "workers": sorted(client.get_job_pod_names(name, replica_type="worker")),
        "worker 1": client.get_job_pod_names(name, replica_type="worker", replica_index=1),
        "log of the master": client.get_job_logs(name)[0],
        "logs": logs,
        "has events of": sorted(events),
    }


clients = {kind: TrainingClient(config_file=KUBECONFIG, namespace=NAMESPACE, job_kind=kind) for kind in REPLICAS}
for kind, client in clients.items():
    client.create_job(job_of(kind))
answers = {kind: seen(client, kind.lower()) for kind, client in clients.items()}
for kind, client in clients.items():
    client.delete_job(kind.lower())
    answers[kind]["left"] = names(client.list_jobs())
# The package prints how jobs stand, so the answers are the last line.
print(json.dumps(answers))
