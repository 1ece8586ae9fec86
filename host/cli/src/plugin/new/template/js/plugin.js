//! AcmeJob `acme.example.org/v1acme1` for Troupe: so many workers, which are told who they are.
//!
//! Change `describe` for what the plugin serves, `plan` for its pods, and `judge` for its status. `wit/framework.wit`
//! explains every field; names are in camelCase here, an option that is none is null, a variant is `{ tag, val }`. The same
//! arguments must give the same answer: there is no clock and no network, and the host may call any of them again.

/** The one role: its pods are called `JOB-worker-INDEX`. */
const WORKER = "worker";

/** The label of all pods of these jobs. The host watches pods that have it. */
const LABEL = "acme.example.org/job-name";

/** The most replicas that the host makes for a role. */
const MAX_REPLICAS = 10_000;

export const framework = { describe, plan, bind, judge };

function describe() {
  return {
    name: "acme",
    version: "0.1.0",
    kinds: [
      {
        group: "acme.example.org",
        version: "v1acme1",
        kind: "AcmeJob",
        plural: "acmejobs",
        switches: { suspend: "/suspend", managedBy: null },
        ownManager: null,
        retiredFinalizers: [],
        roles: [WORKER],
        eventSource: "acme-plugin",
        queueing: "host",
      },
    ],
    children: [
      { apiVersion: "v1", kind: "Pod", plural: "pods", selector: LABEL, keep: [], optional: false },
    ],
    configSchema: '{ "type": "object", "additionalProperties": false }',
    eventReasons: [],
    grants: "{}",
  };
}

function plan(job) {
  const { worker } = checked(job);
  // The template stays with the host: these edits are made in the user's.
  const edits = [
    { tag: "set", val: [`/metadata/labels/${LABEL.replaceAll("/", "~1")}`, JSON.stringify(job.name)] },
    { tag: "set", val: ["/spec/restartPolicy", '"Never"'] },
  ];
  const index = { tag: "index", val: 0 };
  const role = {
    name: WORKER,
    replicas: worker.replicas,
    backing: { tag: "pods" },
    podName: [{ tag: "job-name" }, { tag: "text", val: "-worker-" }, index],
    hostname: null,
    subdomain: null,
    template: { tag: "edited", val: ["/worker/template", edits] },
    env: [
      { container: "", name: "WORKER_COUNT", value: [{ tag: "text", val: `${worker.replicas}` }] },
      // What differs from pod to pod: the host fills it in.
      { container: "*", name: "WORKER_INDEX", value: [index] },
    ],
    labels: [],
    fill: [],
    success: "final",
    failures: [],
    deletion: "uncounted",
    atOnce: null,
    failuresPerReplica: null,
    after: [],
  };
  return {
    roles: [role],
    objects: [],
    secrets: [],
    series: [],
    hostPorts: 0,
    policy: { cleanOnSuccess: "keep", cleanOnFailure: "active", cleanOnSuspend: "all", ttl: null },
    warnings: [],
  };
}

/** What `bind` was shown: `judge` is called after it, on the same instance. */
let shown;

/** The plan has no object whose body depends on what the pods are, so there is nothing to bind. */
function bind(job, seen, _wanted) {
  shown = { spec: checked(job), seen };
  return { bodies: [], runs: [], remove: [] };
}

function judge(outlook) {
  const { spec, seen } = shown;
  const live = seen.pods.filter((pod) => pod.role === WORKER && !pod.terminating);
  const count = (phase) => live.filter((pod) => pod.phase === phase).length;
  const [running, failed] = [count("running"), count("failed")];
  // Pods that have succeeded may be gone.
  const facts = seen.roles.find((facts) => facts.role === WORKER);
  const gone = (facts?.succeeded ?? []).reduce((sum, [first, last]) => sum + last - first + 1, 0);
  const succeeded = count("succeeded") + gone;
  const [phase, outcome] = (() => {
    if (outlook.suspended) return ["Suspended", "open"];
    if (failed > 0) return ["Failed", "failed"];
    if (succeeded >= spec.worker.replicas) return ["Succeeded", "succeeded"];
    if (running + succeeded > 0) return ["Running", "open"];
    return ["Pending", "open"];
  })();
  const status = { phase, running, succeeded, failed };
  if (outcome !== "open") {
    const before = JSON.parse(seen.previousStatus).completionTime;
    status.completionTime = before ?? `${new Date(Number(seen.now)).toISOString().slice(0, 19)}Z`;
  }
  return { status: JSON.stringify(status), headline: phase, outcome, clean: null, wakeAt: null, events: [] };
}

/** Returns the job's spec, or refuses it with every field that is wrong. */
function checked(job) {
  const spec = JSON.parse(job.spec);
  const errors = [];
  const wrong = (path, message) => errors.push({ path, message });
  const { suspend, worker } = spec;
  if (suspend != null && typeof suspend !== "boolean") wrong("spec.suspend", `must be a boolean, not ${said(suspend)}`);
  if (!isObject(worker)) {
    wrong("spec.worker", "is required: replicas and a template");
  } else {
    const { replicas, template } = worker;
    if (!Number.isInteger(replicas)) {
      wrong("spec.worker.replicas", `must be an integer, not ${said(replicas)}`);
    } else if (replicas < 1 || replicas > MAX_REPLICAS) {
      wrong("spec.worker.replicas", `must be from 1 to ${MAX_REPLICAS}, not ${replicas}`);
    }
    if (!isObject(template)) {
      wrong("spec.worker.template", "is required: a pod template with at least one container");
    } else if (!isObject(template.spec)) {
      wrong("spec.worker.template.spec", "is required: a pod spec with at least one container");
    } else if (!Array.isArray(template.spec.containers) || template.spec.containers.length === 0) {
      wrong("spec.worker.template.spec.containers", "must define at least one container");
    }
  }
  if (errors.length > 0) throw { tag: "invalid", val: errors };
  return spec;
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function said(value) {
  return value === undefined ? "missing" : JSON.stringify(value);
}
