// AcmeJob `acme.example.org/v1acme1` for Troupe: so many workers, each of which knows its index.
//
// Change `describe` for what the plugin serves, `plan` for its pods, and `judge` for its status. `wit/framework.wit`
// explains every field: here its names are in camel case, an enum is the text of its case, a variant is `{ tag, val }`,
// and no value is null. The same arguments must give the same answer: there is no clock, no chance and no network, and the
// host may call any of them again. `Math.random()` is no chance: its numbers come with the build, the same for every job.

/** The one role: its pods are called `JOB-worker-INDEX`. */
const WORKER = "worker";

/** The label of all pods of these jobs. The host watches pods that have it. */
const LABEL = "acme.example.org/job-name";

/** The most replicas that the host makes for a role. */
const MAX_REPLICAS = 10000;

const text = (val) => ({ tag: "text", val });
const set = (pointer, value) => ({ tag: "set", val: [pointer, JSON.stringify(value)] });

/** The most letters of a value that a message repeats. */
const SAID = 100;

/** A value as JSON, cut to what a message repeats: by letters, since half of an emoji is no text, and ends the call. */
const said = (value) => Array.from(JSON.stringify(value) ?? "missing").slice(0, SAID).join("");

/** A part of a JSON pointer. */
const escaped = (key) => key.replaceAll("~", "~0").replaceAll("/", "~1");

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

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
      { apiVersion: "v1", kind: "Pod", plural: "pods", selector: LABEL, keep: [], optional: false, ownedBy: "job" },
    ],
    reads: [],
    gangs: false,
    configSchema: JSON.stringify({ type: "object", additionalProperties: false }),
    eventReasons: [],
    grants: "{}",
  };
}

/** Returns the job's spec, or refuses it with every field that is wrong. */
function checked(job) {
  const spec = JSON.parse(job.spec);
  const errors = [];
  const wrong = (path, message) => errors.push({ path, message });
  const { suspend, worker } = spec;
  if (typeof (suspend ?? false) !== "boolean") {
    wrong("spec.suspend", `must be a boolean, not ${said(suspend)}`);
  }
  if (!isObject(worker)) {
    wrong("spec.worker", "is required: replicas and a template");
  } else {
    const { replicas, template } = worker;
    if (!Number.isInteger(replicas)) {
      wrong("spec.worker.replicas", `must be an integer, not ${said(replicas)}`);
    } else if (replicas < 1 || replicas > MAX_REPLICAS) {
      wrong("spec.worker.replicas", `must be from 1 to ${MAX_REPLICAS}, not ${replicas}`);
    }
    const containers = template?.spec?.containers;
    if (!isObject(template)) {
      wrong("spec.worker.template", "is required: a pod template with at least one container");
    } else if (!isObject(template.spec)) {
      wrong("spec.worker.template.spec", "is required: a pod spec with at least one container");
    } else if (!Array.isArray(containers) || containers.length === 0) {
      wrong("spec.worker.template.spec.containers", "must define at least one container");
    }
  }
  if (errors.length > 0) throw { tag: "invalid", val: errors };
  return spec;
}

function plan(job) {
  const { replicas } = checked(job).worker;
  const role = {
    name: WORKER,
    replicas,
    backing: { tag: "pods" },
    podName: [{ tag: "job-name" }, text("-worker-"), { tag: "index", val: 0 }],
    hostname: null,
    subdomain: null,
    // The template stays with the host: these edits are made in the user's.
    template: {
      tag: "edited",
      val: [
        "/worker/template",
        [set(`/metadata/labels/${escaped(LABEL)}`, job.name), set("/spec/restartPolicy", "Never")],
      ],
    },
    env: [
      { container: "", name: "WORKER_COUNT", value: [text(String(replicas))] },
      // What differs from pod to pod: the host fills it in.
      { container: "*", name: "WORKER_INDEX", value: [{ tag: "index", val: 0 }] },
    ],
    labels: [],
    fill: [],
    success: "final",
    failures: [],
    deletion: "uncounted",
    atOnce: null,
    failuresPerReplica: null,
    leftOut: [],
    onNewAddress: "keep",
    after: [],
  };
  return {
    roles: [role],
    objects: [],
    secrets: [],
    series: [],
    gang: null,
    successCriteria: [],
    hostPorts: 0,
    policy: { cleanOnSuccess: "keep", cleanOnFailure: "active", cleanOnSuspend: "all", ttl: null },
    warnings: [],
  };
}

/** What `bind` was shown: `judge` is called after it, on the same instance. */
let shown;

/** The plan has no object whose body depends on what the pods are, so there is nothing to bind. */
function bind(job, seen, wanted) {
  shown = { spec: checked(job), seen };
  return { bodies: [], runs: [], remove: [] };
}

/** The number of workers that have succeeded and whose pods are gone. */
function succeededWithoutPod(seen) {
  const ranges = seen.roles.filter(({ role }) => role === WORKER).flatMap(({ succeeded }) => succeeded);
  return ranges.reduce((sum, [first, last]) => sum + last - first + 1, 0);
}

function judge(outlook) {
  const { spec, seen } = shown;
  const pods = seen.pods.filter((pod) => pod.role === WORKER && !pod.terminating);
  const count = (phase) => pods.filter((pod) => pod.phase === phase).length;
  const running = count("running");
  const failed = count("failed");
  const succeeded = count("succeeded") + succeededWithoutPod(seen);
  let [phase, outcome] = ["Pending", "open"];
  if (outlook.suspended) {
    phase = "Suspended";
  } else if (failed > 0) {
    [phase, outcome] = ["Failed", "failed"];
  } else if (succeeded >= spec.worker.replicas) {
    [phase, outcome] = ["Succeeded", "succeeded"];
  } else if (running + succeeded > 0) {
    phase = "Running";
  }
  const status = { phase, running, succeeded, failed };
  if (outcome !== "open") {
    // A u64 of the contract is a number in this engine, and a BigInt in others.
    const now = new Date(Number(seen.now)).toISOString().slice(0, "2026-01-01T00:00:00".length);
    status.completionTime = JSON.parse(seen.previousStatus).completionTime ?? `${now}Z`;
  }
  return { status: JSON.stringify(status), headline: phase, outcome, clean: null, wakeAt: null, events: [] };
}

export const framework = { describe, plan, bind, judge };
