//! The roles of a job's plan, and the place of each pod in them. A plan is asked for once for each generation of a job,
//! however many look at it.

use decide::{
    ledger::Ledger,
    names,
    plan::{Backing, Piece, Plan, Role},
    snapshot::{Pod, PodPhase},
};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::time::Instant;
use troupe::{control::reconcile::Context, job_key::JobKey, observe::stores::Sight};

/// At most this many outlines are kept.
const MOST: usize = 128;

/// A plan that there was not is asked for again after this long.
const AGAIN: Duration = Duration::from_secs(10);

/// At most this many replicas are drawn that only the ledger names, which everybody who may write a status may write.
const MOST_CELLS: usize = 10_000;

/// Maximum number of roles that are shown of a job without a plan.
const MOST_ROLES: usize = 64;

/// The cell of a replica that has no pod.
const NOT_MADE: char = '.';

/// The outlines of the jobs that were looked at last, by uid.
#[derive(Default)]
pub(super) struct Outlines(Mutex<BTreeMap<String, Outline>>);

#[derive(Clone)]
struct Outline {
    generation: i64,
    /// Annotations may say how many replicas there are.
    annotations: BTreeMap<String, String>,
    digest: Option<String>,
    asked: Instant,
    /// The plan without templates, if there is one.
    plan: Option<Arc<Plan>>,
}

impl Outlines {
    /// Returns the roles of the job's plan, without templates.
    pub(super) async fn of(&self, context: &Context, key: &JobKey, sight: &Sight) -> Option<Arc<Plan>> {
        let (uid, generation, annotations) = (&sight.job.uid, sight.job.generation, &sight.job.annotations);
        let digest = sight.ledger.digest.digest().map(ToString::to_string);
        let known = self.0.lock().get(uid).cloned();
        if let Some(known) =
            known.filter(|it| it.generation == generation && it.annotations == *annotations && it.digest == digest)
            && (known.plan.is_some() || known.asked.elapsed() < AGAIN)
        {
            return known.plan;
        }
        let plan = context.planned(key).await.map(|plan| Arc::new(outlined(&plan)));
        let mut outlines = self.0.lock();
        if outlines.len() >= MOST {
            outlines.clear();
        }
        outlines.insert(
            uid.clone(),
            Outline { generation, annotations: annotations.clone(), digest, asked: Instant::now(), plan: plan.clone() },
        );
        plan
    }
}

/// Returns the plan without all that may be large.
fn outlined(plan: &Plan) -> Plan {
    let role = |role: &Role| Role {
        name: role.name.clone(),
        replicas: role.replicas,
        backing: if role.backing == Backing::Pods { Backing::Pods } else { Backing::Job(Value::Null) },
        pod_name: role.pod_name.clone(),
        hostname: None,
        subdomain: None,
        template: Value::Null,
        template_at: None,
        env: vec![],
        labels: vec![],
        fill: vec![],
        success: role.success,
        failures: vec![],
        deletion: role.deletion,
        at_once: role.at_once,
        failures_per_replica: None,
        left_out: role.left_out.clone(),
        on_new_address: role.on_new_address,
        template_hash: String::new(),
        after: vec![],
    };
    let roles = plan.roles.iter().map(role).collect();
    Plan {
        roles,
        objects: vec![],
        secrets: vec![],
        series: vec![],
        success_criteria: vec![],
        warnings: vec![],
        ..*plan
    }
}

/// A role with the state of each of its replicas.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Cells {
    role: String,
    /// One letter for each index: see [`letter`].
    cells: String,
    /// How the name of a replica's pod is made: texts, and a number where the index stands, plus that number. Empty for
    /// pods whose names are in `names`.
    pod: Vec<Value>,
    /// The names of pods that are not named by their index.
    names: Vec<String>,
}

/// Returns the state of a pod as one letter: `R` ready, `r` running, `P` pending, `B` blocked, `S` succeeded, `F` failed,
/// `T` terminating, `U` unknown.
pub(super) fn letter(pod: &Pod) -> char {
    match pod.phase {
        PodPhase::Succeeded => 'S',
        PodPhase::Failed => 'F',
        _ if pod.terminating => 'T',
        _ if decide::blocker::of(pod).is_some_and(|by| !by.is_preparation()) => 'B',
        PodPhase::Running if pod.ready => 'R',
        PodPhase::Running => 'r',
        PodPhase::Pending => 'P',
        PodPhase::Unknown => 'U',
    }
}

/// Returns the grid of a job: the roles of its plan in their order, then pods that are of none.
pub(super) fn grid(sight: &Sight, plan: Option<&Plan>) -> Vec<Cells> {
    let Some(plan) = plan else { return without_plan(sight) };
    let job = &sight.job;
    let mut rows: Vec<Vec<char>> = plan.roles.iter().map(|role| planned(role, &sight.ledger)).collect();
    let mut others = vec![];
    for pod in &sight.pods {
        let place = (pod.owner_uid == job.uid).then(|| names::role_of_pod(plan, &job.name, &pod.name)).flatten();
        let cell = place.and_then(|(role, index)| rows.get_mut(role)?.get_mut(index as usize));
        match cell {
            Some(cell) => *cell = letter(pod),
            None => others.push(pod),
        }
    }
    let mut grid = vec![];
    for (role, cells) in plan.roles.iter().zip(rows) {
        if role.backing == Backing::Pods {
            let cells = cells.into_iter().collect();
            grid.push(Cells { role: role.name.clone(), cells, pod: pieces(role, &job.name), names: vec![] });
            continue;
        }
        let called = names::of_replica(role, &job.name, 0);
        let behind = sight.children.iter().find(|child| child.kind == "Job" && child.name == called);
        let pods = others.extract_if(.., |pod| behind.is_some_and(|behind| behind.uid == pod.owner_uid));
        let pods: Vec<_> = pods.collect();
        let made = pods.iter().map(|pod| letter(pod));
        let missing = (role.replicas as usize).saturating_sub(pods.len());
        let cells = made.chain(std::iter::repeat_n(NOT_MADE, missing)).collect();
        let names = pods.iter().map(|pod| pod.name.clone()).collect();
        grid.push(Cells { role: role.name.clone(), cells, pod: vec![], names });
    }
    grid.retain(|role| !role.cells.is_empty());
    if !others.is_empty() {
        grid.push(listed("other pods", &others));
    }
    grid
}

/// Returns the cells of a role without its pods: what has succeeded stays so after its pod is gone.
fn planned(role: &Role, ledger: &Ledger) -> Vec<char> {
    let letter = |index| match index {
        index if ledger.has_succeeded(&role.name, index) => 'S',
        index if ledger.is_given_up(&role.name, index) => 'F',
        _ => NOT_MADE,
    };
    match role.backing {
        Backing::Pods => role.indices().iter().map(letter).collect(),
        Backing::Job(_) => vec![],
    }
}

fn without_plan(sight: &Sight) -> Vec<Cells> {
    let succeeded = sight.ledger.succeeded.iter().filter(|_| sight.pods.is_empty());
    // Users can write a ledger of many roles.
    let mut room = MOST_CELLS;
    let of_ledger = succeeded.take(MOST_ROLES).map(|(role, ranges)| {
        let count = usize::try_from(ranges.count()).unwrap_or(usize::MAX).min(room);
        room -= count;
        Cells { role: role.clone(), cells: "S".repeat(count), pod: vec![], names: vec![] }
    });
    let pods: Vec<_> = sight.pods.iter().collect();
    let pods = (!pods.is_empty()).then(|| listed("pods", &pods));
    of_ledger.chain(pods).collect()
}

fn listed(role: &str, pods: &[&Arc<Pod>]) -> Cells {
    let cells = pods.iter().map(|pod| letter(pod)).collect();
    Cells { role: role.into(), cells, pod: vec![], names: pods.iter().map(|pod| pod.name.clone()).collect() }
}

fn pieces(role: &Role, job_name: &str) -> Vec<Value> {
    let piece = |piece: &Piece| match piece {
        Piece::Fixed(text) => json!(text),
        Piece::Index(offset) => json!(offset),
        Piece::Attempt => json!(""),
        Piece::JobName => json!(job_name),
        Piece::PodName | Piece::PeerIp(..) | Piece::PeerHost(..) => json!(""),
    };
    role.pod_name.0.iter().map(piece).collect()
}
