
"use strict";
// Text of users reaches the page through textContent alone.

const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const TOKEN = "troupe-token";

// The groups of jobs, in the order of the list: a name, and a shape beside the colour.
const GROUPS = {
  attention: ["Needs you", "M8 2 15 14H1zM8 6v4M8 12v.2"],
  waiting: ["Waiting", "M4 2h8M4 14h8M5 2c0 4 6 8 6 12M11 2c0 4-6 8-6 12"],
  failed: ["Failed", "M2 2h12v12H2zM5.5 5.5l5 5M10.5 5.5l-5 5"],
  pending: ["Pending", "M8 2a6 6 0 1 1-.01 0M4.8 8h.1M8 8h.1M11.2 8h.1"],
  running: ["Running", "M8 2a6 6 0 1 1-.01 0M6.7 5.4v5.2L11 8z"],
  deleting: ["Deleting", "M3 4.5h10M6 4.5V2.5h4v2M4.5 4.5l.7 9h5.6l.7-9"],
  suspended: ["Suspended", "M8 2a6 6 0 1 1-.01 0M6.3 5.8v4.4M9.7 5.8v4.4"],
  external: ["External", "M6 3H3v10h10v-3M9 3h4v4M13 3 7.5 8.5"],
  succeeded: ["Succeeded", "M8 2a6 6 0 1 1-.01 0M5.2 8.2l2 2 3.6-4"],
};

// The states of pods: a name, and the colour.
const CELLS = {
  F: ["Failed", "failed"],
  B: ["Blocked", "blocked"],
  U: ["Unknown", "blocked"],
  P: ["Pending", "pending"],
  r: ["Running, not ready", "running"],
  R: ["Ready", "running"],
  T: ["Terminating", "terminating"],
  S: ["Succeeded", "succeeded"],
  ".": ["No pod", "missing"],
};

let skew = 0;
let watching = null;
let followed = null;
let view = null;
let colours = {};

/* Small parts. */

function make(tag, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
}

function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function icon(group) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", GROUPS[group][1]);
  svg.append(path);
  return svg;
}

function badge(group) {
  const element = make("span", undefined, `badge is-${group}`);
  element.append(icon(group), make("span", GROUPS[group][0]));
  return element;
}

const number = (value) => value.toLocaleString("en");
const plural = (count, word) => `${number(count)} ${word}${count === 1 ? "" : "s"}`;
const now = () => Date.now() + skew;

// As kubectl prints it, in its two largest units.
function span(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  const [days, hours, minutes] = [Math.floor(s / 86400), Math.floor(s / 3600) % 24, Math.floor(s / 60) % 60];
  if (days) return `${days}d${hours}h`;
  if (hours) return `${hours}h${minutes}m`;
  if (minutes) return `${minutes}m${s % 60}s`;
  return `${s}s`;
}

function exact(seconds) {
  return seconds < 60 ? `${Math.max(0, seconds).toFixed(seconds < 10 ? 1 : 0)}s` : span(seconds);
}

const age = (at) => span((now() - Date.parse(at)) / 1000);

function clock(at) {
  const date = new Date(at);
  const isToday = Math.abs(now() - date) < 43200000;
  const time = date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
  return isToday ? time : `${date.toLocaleDateString()} ${time}`;
}

function ticking(at, suffix) {
  const element = make("time");
  element.dateTime = at;
  element.title = new Date(at).toLocaleString();
  element.dataset.age = suffix || "";
  put(element, age(at) + (suffix || ""));
  return element;
}

setInterval(() => {
  for (const element of document.querySelectorAll("time[data-age]")) {
    put(element, age(element.dateTime) + element.dataset.age);
  }
}, 1000);

async function copy(text, button) {
  let said = "Copied";
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    said = "Not copied";
  }
  const before = button.dataset.says || button.textContent;
  button.dataset.says = before;
  button.textContent = said;
  $("said").textContent = `${said}: ${text}`;
  setTimeout(() => { button.textContent = before; }, 1500);
}

/* The connection. */

function live(is, text) {
  $("live").dataset.is = is;
  put($("live"), text);
}

function problem(title, text) {
  $("problem").hidden = !title;
  put($("problem").querySelector("h2"), title || "");
  put($("problem").querySelector("p"), text || "");
  $("problem").querySelector("a").hidden = view !== "job";
}

class Answer extends Error {
  constructor(code, text) {
    super(text);
    this.code = code;
  }
}

// Reads one stream to its end. Rejects with an Answer if the host refuses.
async function read(path, signal, onSeen) {
  const headers = { Accept: "text/event-stream" };
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers.Authorization = `Bearer ${token}`;
  const options = { headers, signal, cache: "no-store", credentials: "omit", redirect: "error" };
  const response = await fetch(path, options);
  if (!response.ok) throw new Answer(response.status, await response.text());
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    // A connection on which not even a comment comes is lost.
    let timer;
    const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error("nothing came")), 40000); });
    const { done, value } = await Promise.race([reader.read(), late]).finally(() => clearTimeout(timer));
    if (done) return;
    text += value;
    const messages = text.split("\n\n");
    text = messages.pop();
    for (const message of messages) {
      let data;
      for (const line of message.split("\n")) {
        if (line.startsWith("id: ")) skew = Date.parse(line.slice(4)) - Date.now();
        if (line.startsWith("data: ")) data = line.slice(6);
      }
      if (data !== undefined) onSeen(JSON.parse(data));
    }
  }
}

// Follows a path until something else is followed.
async function follow(path, onSeen, onRefused) {
  if (watching) watching.abort();
  followed = [path, onSeen, onRefused];
  const own = new AbortController();
  watching = own;
  let failures = 0;
  live("", "Connecting");
  while (!own.signal.aborted) {
    const began = Date.now();
    try {
      await read(path, own.signal, (seen) => {
        if (own.signal.aborted) return;
        failures = 0;
        document.body.classList.remove("stale");
        problem();
        live("live", "Live");
        onSeen(seen);
      });
      // The host ends each stream after some minutes.
      if (Date.now() - began < 2000) failures += 1;
    } catch (error) {
      if (own.signal.aborted) return;
      if (error instanceof Answer && error.code < 500 && onRefused(error)) return;
      failures += 1;
      const wait = Math.min(10, 2 ** Math.min(failures, 4));
      document.body.classList.add("stale");
      live("lost", "Not connected");
      const isRefused = error instanceof Answer;
      const title = isRefused ? "The host shows nothing" : "The host does not answer";
      const text = isRefused ? error.message : "What is below is as it was last seen. The page tries again by itself.";
      problem(title, text);
      await pause(wait * 1000, own.signal);
      continue;
    }
    if (failures) await pause(1000 * failures, own.signal);
  }
}

function pause(time, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, time);
    signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); });
  });
}

/* Who looks. */

function signIn(why) {
  show("sign-in");
  live("", "");
  problem();
  put($("sign-in-why"), why);
  $("token").focus();
}

function refused(error) {
  if (error.code === 401) {
    const had = sessionStorage.getItem(TOKEN);
    sessionStorage.removeItem(TOKEN);
    $("forget").hidden = true;
    signIn(had
      ? "The API server does not accept the token, or no longer. Paste another one."
      : "This host shows you the jobs that the API server lets you list. Paste a bearer token.");
    return true;
  }
  return false;
}

$("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(TOKEN, $("token").value.trim());
  $("token").value = "";
  route();
});

$("forget").addEventListener("click", () => {
  sessionStorage.removeItem(TOKEN);
  location.hash = "#/";
  route();
});

// The namespace of a ServiceAccount's token: there its rights are most likely.
function ownNamespace() {
  try {
    const part = sessionStorage.getItem(TOKEN).split(".")[1].replaceAll("-", "+").replaceAll("_", "/");
    return JSON.parse(atob(part))["kubernetes.io"].namespace || "";
  } catch {
    return "";
  }
}

/* The list. */

const filters = { text: "", namespace: "", group: "", limit: 200 };
const rows = new Map();

function show(id) {
  for (const section of ["sign-in", "list", "job"]) $(section).hidden = section !== id;
  view = id;
}

function listPath() {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filters)) {
    if (value) query.set(name, value);
  }
  return `/page/jobs?${query}`;
}

function listHash() {
  const query = new URLSearchParams();
  for (const name of ["text", "namespace", "group"]) {
    if (filters[name]) query.set(name, filters[name]);
  }
  return query.size ? `#/?${query}` : "#/";
}

function openList() {
  show("list");
  document.title = "Jobs \u2013 Troupe";
  $("text").value = filters.text;
  $("namespace").value = filters.namespace;
  follow(listPath(), seeList, (error) => {
    if (refused(error)) return true;
    const own = ownNamespace();
    if (error.code === 403 && !filters.namespace && own) {
      filter({ namespace: own });
      return true;
    }
    live("lost", "No rights");
    const why = error.message.split(";")[0];
    problem("You may not list these jobs", filters.namespace ? why : `${why}. Name a namespace in which you may.`);
    seeList({ jobs: 0, matching: 0, groups: {}, namespaces: [], rows: [], complete: true });
    $("none").hidden = true;
    $("groups").replaceChildren();
    put($("list-count"), "");
    $("namespace").focus();
    return true;
  });
}

function filter(change) {
  Object.assign(filters, { limit: 200 }, change);
  history.replaceState(null, "", listHash());
  openList();
}

function seeList(seen) {
  const isFiltered = filters.text || filters.namespace || filters.group;
  const count = seen.matching === seen.jobs
    ? plural(seen.jobs, "job") : `${number(seen.matching)} of ${plural(seen.jobs, "job")}`;
  put($("list-count"), seen.complete ? count : `${count}, the host is still reading`);
  seeGroups(seen.groups);
  seeNamespaces(seen.namespaces);
  seeRows(seen.rows);
  $("jobs").hidden = seen.rows.length === 0;
  $("none").hidden = seen.rows.length > 0;
  put($("none").querySelector("h2"), isFiltered ? "No job matches" : seen.complete ? "No jobs yet" : "Reading");
  put($("none").querySelector("p"), isFiltered
    ? "Nothing that you may list has these words, this namespace and this state."
    : "A job appears here as soon as it is submitted: kubectl apply -f FILE");
  $("clear").hidden = !isFiltered;
  const left = seen.matching - seen.rows.length;
  $("more").hidden = left <= 0;
  put($("more").querySelector("p"), `${number(left)} more`);
  $("more").querySelector("button").hidden = filters.limit >= 2000;
}

function seeGroups(counts) {
  const present = Object.keys(GROUPS).filter((group) => counts[group] || filters.group === group);
  const names = ["", ...present];
  const buttons = new Map([...$("groups").children].map((button) => [button.dataset.group, button]));
  for (const [name, button] of buttons) if (!names.includes(name)) button.remove();
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  names.forEach((group, place) => {
    let button = buttons.get(group);
    if (!button) {
      button = make("button");
      button.type = "button";
      button.dataset.group = group;
      if (group) {
        const mark = icon(group);
        mark.setAttribute("class", `is-${group}`);
        button.append(mark);
      }
      button.append(make("span", group ? GROUPS[group][0] : "All"), make("span", "", "count"));
      button.addEventListener("click", () => filter({ group }));
    }
    button.setAttribute("aria-pressed", String(filters.group === group));
    put(button.querySelector(".count"), number(group ? counts[group] || 0 : all));
    if ($("groups").children[place] !== button) $("groups").insertBefore(button, $("groups").children[place] || null);
  });
}

function seeNamespaces(namespaces) {
  const known = [...$("namespaces").children].map((option) => option.value);
  // With one namespace chosen, the others are not told.
  if (filters.namespace || known.join("\n") === namespaces.join("\n")) return;
  $("namespaces").replaceChildren(...namespaces.map((name) => {
    const option = make("option");
    option.value = name;
    return option;
  }));
}

function seeRows(seen) {
  const keys = new Set();
  seen.forEach((job, place) => {
    const key = `${job.resource}/${job.namespace}/${job.name}`;
    keys.add(key);
    let row = rows.get(key);
    if (!row) {
      row = newRow(job);
      rows.set(key, row);
    }
    update(row, job);
    // What is in its place already keeps the focus.
    if ($("rows").children[place] !== row) $("rows").insertBefore(row, $("rows").children[place] || null);
  });
  for (const [key, row] of rows) {
    if (!keys.has(key)) {
      row.remove();
      rows.delete(key);
    }
  }
}

function newRow(job) {
  const row = make("tr");
  row.setAttribute("role", "row");
  for (let cell = 0; cell < 5; cell += 1) row.append(make("td"));
  for (const cell of row.children) cell.setAttribute("role", "cell");
  const link = make("a", job.name);
  link.href = `#/job/${[job.resource, job.namespace, job.name].map(encodeURIComponent).join("/")}`;
  row.children[1].append(link, make("span", job.kind, "under"));
  row.children[2].textContent = job.namespace;
  return row;
}

function update(row, job) {
  if (row.dataset.group !== job.group || row.dataset.state !== job.state) {
    Object.assign(row.dataset, { group: job.group, state: job.state });
    const isSame = job.state === "-" || job.state.toLowerCase() === job.group;
    row.children[0].replaceChildren(badge(job.group), ...(isSame ? [] : [make("span", job.state, "under")]));
  }
  if (row.dataset.why !== (job.why || "")) {
    row.dataset.why = job.why || "";
    row.children[3].replaceChildren(...(job.why ? [make("span", sentence(job.why), "why")] : []));
  }
  if (row.dataset.created !== job.created) {
    row.dataset.created = job.created;
    row.children[4].replaceChildren(ticking(job.created));
  }
}

let typing;
$("text").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => filter({ text: $("text").value.trim() }), 200);
});
$("namespace").addEventListener("input", () => {
  const value = $("namespace").value.trim();
  const isKnown = [...$("namespaces").children].some((option) => option.value === value);
  if ((isKnown || !value) && value !== filters.namespace) filter({ namespace: value });
});
$("namespace").addEventListener("change", () => {
  const value = $("namespace").value.trim();
  if (value !== filters.namespace) filter({ namespace: value });
});
$("filters").addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(typing);
  filter({ text: $("text").value.trim(), namespace: $("namespace").value.trim() });
});
$("clear").addEventListener("click", () => filter({ text: "", namespace: "", group: "" }));
$("more").querySelector("button").addEventListener("click", () => {
  const limit = Math.min(2000, filters.limit + 200);
  const first = $("rows").children[filters.limit];
  filter({ limit });
  if (first) first.querySelector("a").focus();
});

/* One job. */

// So many pods are listed at first.
const FIRST_PODS = 8;

let shown = null;
let allPods = false;

function openJob(path) {
  show("job");
  $("job").hidden = true;
  shown = null;
  allPods = false;
  $("grid").replaceChildren();
  chosen = null;
  put($("cell"), "Point at a cell, or move with the arrow keys, to see its pod.");
  $("cell-copy").hidden = true;
  follow(`/page/jobs/${path}`, seeJob, (error) => {
    if (refused(error)) return true;
    live("lost", error.code === 404 ? "Gone" : "No rights");
    problem(error.code === 404 ? "There is no such job" : "You may not see this job", error.code === 404
      ? "It was deleted, or it never was."
      : error.message);
    document.body.classList.toggle("stale", Boolean(shown));
    return true;
  });
}

function seeJob(job) {
  const isFirst = !shown;
  shown = job;
  $("job").hidden = false;
  document.title = `${GROUPS[job.group][0]}: ${job.name} \u2013 Troupe`;
  put($("job-kind"), job.kind);
  put($("job-title"), job.name);
  const place = [`in ${job.namespace}`, ticking(job.created, " old")];
  $("job-place").replaceChildren(place[0], " \u00b7 ", place[1]);
  $("verdict").className = `verdict is-${job.group}`;
  const mark = badge(job.group);
  const isSame = job.state === "-" || job.state.toLowerCase() === job.group;
  if (!isSame) mark.append(make("span", `(${job.state})`));
  $("job-badge").replaceChildren(mark);
  put($("job-why"), job.why ? sentence(job.why) : QUIETLY[job.group] || "");
  seeCourse(job.timeline);
  seeGrid(job);
  seePods(job);
  seeCommands(job.commands);
  seeEvents(job.events);
  seePlugin(job.plugin);
  seeConditions(job);
  if (isFirst) $("job-name").focus({ preventScroll: true });
}

const QUIETLY = {
  pending: "Its pods start.",
  running: "Nothing is in its way.",
  succeeded: "It has done its work.",
  failed: "It has failed; which container was first is not known.",
  suspended: "Its user has suspended it.",
  deleting: "It is being deleted.",
  external: "Another manager runs it.",
};

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

function seeCourse(line) {
  const steps = [["Submitted", line.submitted], ["Pods made", line.made], ["All running", line.running]];
  const end = { succeeded: "Succeeded", failed: "Failed" }[line.outcome] || "Ended";
  steps.push([end, line.ended]);
  let before = Date.parse(line.submitted);
  const items = steps.map(([name, at], place) => {
    const item = make("li", undefined, at ? "is-done" : "");
    if (place === 3 && line.outcome) item.classList.add(`has-${line.outcome}`);
    item.append(make("b", name));
    if (!at) {
      item.append(make("span", line.ended ? "not seen by this host" : "not yet"));
      return item;
    }
    item.append(make("span", clock(at)));
    if (place) item.append(make("span", `after ${exact((Date.parse(at) - before) / 1000)}`));
    before = Date.parse(at);
    return item;
  });
  $("course").replaceChildren(...items);
}

function table(body, records, cells) {
  const made = records.map((record) => {
    const row = make("tr");
    row.setAttribute("role", "row");
    for (const content of cells(record)) {
      const cell = make("td");
      cell.setAttribute("role", "cell");
      cell.append(content);
      row.append(cell);
    }
    row.children[2].className = "end";
    return row;
  });
  body.replaceChildren(...made);
}

function seePods(job) {
  $("pods-card").hidden = job.pods.length === 0;
  const told = allPods ? job.pods : job.pods.slice(0, FIRST_PODS);
  $("pods-all").hidden = told.length === job.pods.length;
  put($("pods-all"), `Show ${job.pods.length - told.length} more`);
  table($("pods"), told, (pod) => {
    const phase = make("span");
    phase.append(swatch(pod.state, 14), pod.state === "B" ? `${pod.phase}, blocked` : pod.phase);
    return [pod.name, phase, String(pod.restarts), pod.node, pod.why ? sentence(pod.why) : ""];
  });
  const left = job.podCount - job.pods.length;
  put($("pods-more"), left > 0 && $("pods-all").hidden ? `${plural(left, "more pod")} in the grid above` : "");
}

$("pods-all").addEventListener("click", () => {
  allPods = true;
  seePods(shown);
});

function seeCommands(commands) {
  const key = JSON.stringify(commands);
  if ($("commands").dataset.key === key) return;
  $("commands").dataset.key = key;
  $("commands").replaceChildren(...commands.flatMap(({ what, text }) => {
    const line = make("dd");
    const button = make("button", "Copy", "quiet");
    button.type = "button";
    button.setAttribute("aria-label", `Copy: ${text}`);
    button.addEventListener("click", () => copy(text, button));
    line.append(make("code", text, "code"), button);
    return [make("dt", what), line];
  }));
}

function seeEvents(events) {
  $("no-events").hidden = events.length > 0;
  $("events").replaceChildren(...events.map((event) => {
    const item = make("li");
    const reason = make("b", event.warning ? `! ${event.reason}` : event.reason, event.warning ? "is-failed" : "");
    item.append(reason, stamp(event.at, " ago"), make("span", event.message));
    return item;
  }));
}

function stamp(at, suffix) {
  const element = ticking(at, suffix);
  element.className = "dim";
  return element;
}

function seeConditions(job) {
  const conditions = job.conditions.map((condition) => {
    const item = make("li");
    const title = make("b", `${condition.type}: ${condition.status}`);
    item.append(title);
    if (condition.since) item.append(stamp(condition.since, " ago"));
    item.append(make("span", [condition.reason, condition.message].filter(Boolean).join(": ")));
    return item;
  });
  if (!conditions.length) conditions.push(make("li", "None yet", "dim"));
  $("conditions").replaceChildren(...conditions);
  const objects = job.objects.map((object) => {
    return make("li", `${object.kind.toLowerCase()}/${object.name}${object.terminating ? " (terminating)" : ""}`);
  });
  const left = job.objectCount - objects.length;
  if (left > 0) objects.push(make("li", `${number(left)} more`));
  $("objects-head").hidden = objects.length === 0;
  $("objects").replaceChildren(...objects);
}

function seePlugin(plugin) {
  const facts = [];
  const fact = (name, value, title) => {
    const text = make("dd", value);
    if (title) text.title = title;
    facts.push(make("dt", name), text);
  };
  let differences = [];
  if (!plugin) {
    fact("Plugin", "none serves this kind");
  } else {
    fact("Name", plugin.name);
    if (plugin.version) fact("Version", plugin.version);
    fact("Digest", plugin.digest ? plugin.digest.slice(0, 12) : "no plugin has planned the job yet", plugin.digest);
    if (plugin.digest) fact("Serves", plugin.active ? "new jobs, too" : "this job, and no new ones");
    const candidate = plugin.candidate;
    if (candidate) {
      const kind = candidate.stopped ? "stopped" : candidate.canary ? "canary" : "shadow";
      fact("Candidate", [candidate.version, candidate.digest].filter(Boolean).join(", ") + `, ${kind}`);
      fact("Compared", `${plural(candidate.passes, "pass").replace("passs", "passes")}: ` +
        `${number(candidate.different)} differ, ${number(candidate.dangerous)} would touch a live pod, ` +
        `${number(candidate.failed)} without an answer`);
      if (candidate.plans) fact("This job", "is planned by the candidate");
      differences = candidate.examples;
    }
  }
  $("plugin").replaceChildren(...facts);
  $("differences").replaceChildren(...differences.map((difference) => make("li", difference)));
}

/* The grid. */

let chosen = null;

function readColours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  colours = { ink: of("--cell-ink"), dark: of("--cell-ink-dark"), card: of("--card"), focus: of("--focus") };
  for (const [, name] of Object.values(CELLS)) colours[name] = of(`--cell-${name}`);
}

// A shape for each state, so that colour is not needed to tell them apart; a letter where there is room.
function drawCell(context, letter, x, y, size) {
  const colour = colours[CELLS[letter][1]];
  const line = Math.max(1, size / 8);
  context.fillStyle = colour;
  context.strokeStyle = colour;
  context.lineWidth = line;
  const half = line / 2;
  switch (letter) {
    case "R":
      context.fillRect(x, y, size, size);
      break;
    case "r":
      context.strokeRect(x + half, y + half, size - line, size - line);
      context.fillRect(x, y + size / 2, size, size / 2);
      break;
    case "S":
      context.strokeRect(x + half, y + half, size - line, size - line);
      context.fillRect(x + size / 4, y + size / 4, size / 2, size / 2);
      break;
    case "F":
      context.lineWidth = Math.max(1.5, size / 5);
      context.beginPath();
      context.moveTo(x + half, y + half);
      context.lineTo(x + size - half, y + size - half);
      context.moveTo(x + size - half, y + half);
      context.lineTo(x + half, y + size - half);
      context.stroke();
      break;
    case "B":
    case "U":
      context.beginPath();
      context.moveTo(x + size / 2, y);
      context.lineTo(x + size, y + size);
      context.lineTo(x, y + size);
      context.fill();
      break;
    case "T":
      context.fillRect(x, y + size * 0.65, size, size * 0.35);
      break;
    case "P":
      context.strokeRect(x + half, y + half, size - line, size - line);
      break;
    default:
      context.fillRect(x + size * 0.38, y + size * 0.38, size * 0.24, size * 0.24);
  }
  if (size < 18 || !"RBU".includes(letter)) return;
  context.fillStyle = letter === "R" ? colours.ink : colours.dark;
  context.font = `600 ${Math.round(size * 0.5)}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(letter === "B" ? "!" : letter === "U" ? "?" : "R", x + size / 2, y + size * (letter === "R" ? 0.54 : 0.66));
}

function scaled(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

function swatch(letter, size) {
  const canvas = make("canvas");
  canvas.setAttribute("aria-hidden", "true");
  drawCell(scaled(canvas, size, size), letter, 1, 1, size - 2);
  return canvas;
}

function counted(cells) {
  const counts = {};
  for (const letter of cells) counts[letter] = (counts[letter] || 0) + 1;
  return counts;
}

function told(counts) {
  return Object.keys(CELLS).filter((letter) => counts[letter])
    .map((letter) => `${number(counts[letter])} ${CELLS[letter][0].toLowerCase()}`).join(", ");
}

function seeGrid(job) {
  const all = counted(job.grid.map((role) => role.cells).join(""));
  $("legend").replaceChildren(...Object.keys(CELLS).filter((letter) => all[letter]).map((letter) => {
    const item = make("li");
    item.append(swatch(letter, 16), make("span", CELLS[letter][0]), make("b", number(all[letter])));
    return item;
  }));
  const roles = new Map([...$("grid").children].map((element) => [element.dataset.role, element]));
  const wanted = job.grid.map((role) => {
    let element = roles.get(role.role);
    if (!element) {
      element = make("div", undefined, "role");
      element.dataset.role = role.role;
      const canvas = make("canvas");
      canvas.tabIndex = 0;
      canvas.setAttribute("role", "application");
      canvas.setAttribute("aria-roledescription", "grid of pods");
      canvas.addEventListener("keydown", onKey);
      canvas.addEventListener("mousemove", (event) => choose(canvas, at(canvas, event)));
      canvas.addEventListener("click", (event) => choose(canvas, at(canvas, event)));
      canvas.addEventListener("focus", () => {
        if (!chosen || chosen.canvas !== canvas) choose(canvas, 0);
      });
      element.append(make("h3"), canvas);
    }
    const counts = told(counted(role.cells));
    element.children[0].replaceChildren(role.role, " ", make("span", `${number(role.cells.length)} \u00b7 ${counts}`));
    const canvas = element.children[1];
    canvas.role_ = role;
    canvas.setAttribute("aria-label", `${role.role}: ${counts}. Arrow keys move from pod to pod.`);
    return element;
  });
  for (const element of roles.values()) if (!wanted.includes(element)) element.remove();
  wanted.forEach((element, place) => {
    if ($("grid").children[place] !== element) $("grid").insertBefore(element, $("grid").children[place] || null);
  });
  $("cell").parentElement.hidden = !wanted.length;
  if (!wanted.length) $("grid").replaceChildren(make("p", "No pods, and no plan of any.", "dim"));
  drawAll();
  if (chosen) choose(chosen.canvas, chosen.index);
}

function drawAll() {
  for (const element of $("grid").children) {
    if (element.children[1]) draw(element.children[1]);
  }
}

function draw(canvas) {
  const cells = canvas.role_.cells;
  const width = Math.max(100, $("grid").clientWidth);
  // As large as fits into some 320 pixels of height.
  const pitch = Math.min(26, Math.max(6, Math.floor(Math.sqrt((width * 320) / Math.max(1, cells.length)))));
  const gap = pitch >= 14 ? 3 : pitch >= 9 ? 2 : 1;
  const columns = Math.max(1, Math.floor((width + gap) / pitch));
  const lines = Math.ceil(cells.length / columns) || 1;
  canvas.shape_ = { pitch, columns };
  const context = scaled(canvas, Math.min(columns, Math.max(1, cells.length)) * pitch, lines * pitch);
  for (let index = 0; index < cells.length; index += 1) {
    const [x, y] = [(index % columns) * pitch, Math.floor(index / columns) * pitch];
    drawCell(context, cells[index], x + gap / 2, y + gap / 2, pitch - gap);
  }
  if (chosen && chosen.canvas === canvas && chosen.index < cells.length) {
    const [x, y] = [(chosen.index % columns) * pitch, Math.floor(chosen.index / columns) * pitch];
    context.strokeStyle = colours.focus;
    context.lineWidth = 2;
    context.strokeRect(x + 1, y + 1, pitch - 2, pitch - 2);
  }
}

function at(canvas, event) {
  const { pitch, columns } = canvas.shape_;
  const box = canvas.getBoundingClientRect();
  const column = Math.min(columns - 1, Math.floor((event.clientX - box.left) / pitch));
  return Math.floor((event.clientY - box.top) / pitch) * columns + column;
}

function choose(canvas, index) {
  if (!canvas.isConnected || !(index >= 0 && index < canvas.role_.cells.length)) return;
  const before = chosen && chosen.canvas;
  chosen = { canvas, index };
  if (before && before !== canvas && before.isConnected) draw(before);
  draw(canvas);
  const role = canvas.role_;
  const letter = role.cells[index];
  const pod = podName(role, index);
  const known = shown.pods.find((row) => row.name === pod);
  const why = known && known.why ? `: ${known.why}` : "";
  const node = known && known.node ? ` on ${known.node}` : "";
  put($("cell"), `${pod ? `pod/${pod}` : `${role.role} ${index}`} \u00b7 ${CELLS[letter][0]}${node}${why}`);
  $("cell-copy").hidden = !pod || letter === ".";
  $("cell-copy").dataset.text = `kubectl logs ${pod} --all-containers -n ${shown.namespace}`;
}

function podName(role, index) {
  if (role.names.length) return role.names[index] || "";
  return role.pod.map((piece) => (typeof piece === "number" ? index + piece : piece)).join("");
}

function onKey(event) {
  const canvas = event.currentTarget;
  const { columns } = canvas.shape_;
  const last = canvas.role_.cells.length - 1;
  const index = chosen && chosen.canvas === canvas ? chosen.index : 0;
  const next = {
    ArrowRight: index + 1, ArrowLeft: index - 1, ArrowDown: index + columns, ArrowUp: index - columns, Home: 0, End: last,
  }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  choose(canvas, Math.min(last, Math.max(0, next)));
}

$("cell-copy").addEventListener("click", () => copy($("cell-copy").dataset.text, $("cell-copy")));
window.addEventListener("resize", () => { if (view === "job") drawAll(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  readColours();
  if (shown) {
    seeGrid(shown);
    seePods(shown);
  }
});

/* Where the page is. */

function route() {
  readColours();
  problem();
  document.body.classList.remove("stale");
  $("forget").hidden = !sessionStorage.getItem(TOKEN);
  const job = location.hash.match(/^#\/job\/([^/]+\/[^/]+\/[^/]+)$/);
  if (job) {
    openJob(job[1]);
    window.scrollTo(0, 0);
    return;
  }
  const query = new URLSearchParams(location.hash.split("?")[1] || "");
  for (const name of ["text", "namespace", "group"]) filters[name] = query.get(name) || "";
  if (!(filters.group in GROUPS)) filters.group = "";
  openList();
}

// A page that nobody sees asks for nothing.
document.addEventListener("visibilitychange", () => {
  if (view === "sign-in" || !followed) return;
  if (document.hidden) {
    if (watching) watching.abort();
    live("", "Paused");
  } else {
    follow(...followed);
  }
});
window.addEventListener("hashchange", route);
route();
