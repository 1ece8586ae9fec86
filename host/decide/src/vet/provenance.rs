//! Checks that everything a plan uses comes from the job's user, a grant, or the plan itself.

use super::{
    description::is_never,
    marks,
    uses::{Exact, Place, Use, uses},
};
use crate::{
    flaw::Flaw,
    grants::{self, Grants, Need},
    names, ownership,
    plan::{
        Backing, Body, ChildKind, Descriptor, Object, Piece, Plan, Role, SecretRecipe, Series, Text, Upkeep, group,
    },
    pointer,
    rejection::{Objection, Rejection, field_of_spec},
    snapshot::Job,
};
use serde_json::{Value, json};
use std::{
    borrow::Cow,
    cell::OnceCell,
    collections::{BTreeSet, HashMap},
};

/// Fields of a Job that a plugin may set. Other fields could make it take over pods of others.
const OF_A_JOB: [&str; 11] = [
    "activeDeadlineSeconds",
    "backoffLimit",
    "backoffLimitPerIndex",
    "completionMode",
    "completions",
    "maxFailedIndexes",
    "parallelism",
    "podFailurePolicy",
    "podReplacementPolicy",
    "successPolicy",
    "ttlSecondsAfterFinished",
];

/// The sources from which one job's plan may take its uses.
pub(super) struct Provenance<'a> {
    job: &'a Job,
    grants: &'a Grants,
    plan: &'a Plan,
    /// The user's uses in the templates that the plan refers to. Computed on first use.
    in_templates: OnceCell<UsersUses<'a>>,
    /// The user's uses in the spec as a whole. Computed on first use.
    in_spec: OnceCell<UsersUses<'a>>,
}

/// What a user uses: need, exact value, and place: a part of the spec, and the place in that part. Never iterated, so that
/// its random order decides nothing; with fixed keys a user could choose values that collide.
type UsersUses<'a> = HashMap<(Need, Exact<'a>), (&'a str, Place<'a>)>;

impl<'a> Provenance<'a> {
    /// Walks the job's templates and its spec at most once each, and only when needed.
    pub(super) fn new(job: &'a Job, grants: &'a Grants, plan: &'a Plan) -> Self {
        Self { job, grants, plan, in_templates: OnceCell::new(), in_spec: OnceCell::new() }
    }

    /// Checks a role's template, its labels and the Job behind it.
    pub(super) fn role(&self, role: &Role) -> Result<(), Objection> {
        for (label, _) in &role.labels {
            label_of_plugin(label)?;
        }
        let name = names::of_replica(role, &self.job.name, 0);
        let filled = self.filled(&role.template, &role.fill, Some(&name));
        self.all(&filled, &Varying::of(&role.fill))?;
        let Backing::Job(body) = &role.backing else { return Ok(self.kind("Pod")?) };
        self.kind("Job.batch")?;
        let fields = body["spec"].as_object().into_iter().flatten().map(|(field, _)| field.as_str());
        if let Some(field) = fields.into_iter().find(|field| !OF_A_JOB.contains(field)) {
            return Err(Flaw::JobField { field: field.to_owned(), value: body["spec"][field].to_string() }.into());
        }
        self.all(&json!({ "metadata": body["metadata"] }), &Varying::default())
    }

    /// Checks an object, and its body unless `bind` returns it.
    pub(super) fn object(&self, object: &Object) -> Result<(), Objection> {
        let kind = id(&object.api_version, &object.kind);
        if is_never(group(&object.api_version), &object.kind) {
            return Err(Flaw::ForbiddenKind { kind }.into());
        }
        self.kind(&kind)?;
        if !object.remove_when.is_empty() {
            self.granted("remove-when", Need::Deletion, &kind)?;
        }
        if let Upkeep::Follow(pointers) = &object.upkeep
            && let Some(pointer) = pointers.iter().find(|pointer| !may_follow(pointer))
        {
            return Err(Flaw::NotToFollow { pointer: pointer.clone() }.into());
        }
        match &object.body {
            Body::Fixed(body, fill) => self.body(object, body, fill),
            Body::Bound => Ok(()),
        }
    }

    /// Checks the body of an object, from the plan or from `bind`.
    pub(super) fn body(&self, object: &Object, body: &Value, fill: &[(String, Text)]) -> Result<(), Objection> {
        if body.get("status").is_some() {
            return Err(Flaw::Status.into());
        }
        let pod = names::role_of_object(self.plan, object).map(|role| names::of_replica(role, &self.job.name, 0));
        let filled = self.filled(body, fill, pod.as_deref());
        match (object.api_version.as_str(), object.kind.as_str()) {
            // The data of a ConfigMap is plain text.
            ("v1", "ConfigMap") => self.all(&json!({ "metadata": filled["metadata"] }), &Varying::default()),
            ("v1", "Service") => {
                self.selector(&filled)?;
                self.each(super::uses::of_service(&filled), &Varying::of(fill))
            }
            _ => self.all(&filled, &Varying::of(fill)),
        }
    }

    /// Checks the kind of a series. What is in its objects is the user's, but for labels and annotations.
    pub(super) fn series(&self, series: &Series) -> Result<(), Flaw> {
        let kind = id(&series.api_version, &series.kind);
        self.kind(&kind)?;
        self.granted("series", Need::Deletion, &kind)
    }

    /// Checks a Secret that the host is to create.
    pub(super) fn secret(&self, secret: &SecretRecipe) -> Result<(), Flaw> {
        self.kind("Secret")?;
        // Kubernetes would treat these as tokens.
        if secret.secret_type.starts_with("kubernetes.io/service-account")
            || secret.secret_type.starts_with("bootstrap.")
        {
            return Err(Flaw::NoKeyPair { secret_type: secret.secret_type.clone() });
        }
        secret.labels.keys().try_for_each(|label| label_of_plugin(label))
    }

    /// Checks what the plan asks for the job as a whole.
    pub(super) fn whole(&self, descriptor: &Descriptor) -> Result<(), Flaw> {
        if self.plan.host_ports > 0 {
            self.granted("host-ports", Need::HostPort, &self.plan.host_ports.to_string())?;
        }
        if self.plan.policy.ttl.is_some() {
            for kind in &descriptor.kinds {
                self.granted("policy.ttl", Need::Deletion, &kind.id())?;
            }
        }
        Ok(())
    }

    fn kind(&self, kind: &str) -> Result<(), Flaw> {
        self.granted("kind", Need::Kind, kind)
    }

    fn granted(&self, field: &'static str, need: Need, word: &str) -> Result<(), Flaw> {
        match self.grants.allows(need, word) {
            true => Ok(()),
            false => Err(Flaw::NotGranted { field, value: word.to_owned(), grant: grants::example(need, word) }),
        }
    }

    /// Checks that the JSON uses only what it may. `varying` are pointers whose text differs from replica to replica.
    fn all(&self, json: &Value, varying: &Varying<'_>) -> Result<(), Objection> {
        self.each(uses(json), varying)
    }

    fn each(&self, uses: Vec<Use<'_>>, varying: &Varying<'_>) -> Result<(), Objection> {
        for used in uses {
            let varies = varying.touch(&used.at);
            // A grant of commands covers the command of each replica.
            let is_free = used.need == Need::Command && self.grants.allows(used.need, &used.word);
            if varies && !is_free && !self.is_own(&used) {
                return Err(Flaw::Varies { at: used.at.to_string() }.into());
            }
            if is_hosts(&used)
                && let Some((part, place)) = self.users(&used)
            {
                let field = field_of_spec(&[part, &place.to_string()]);
                return Err(Rejection::field(field, "is the host's to write: remove it").into());
            }
            if !self.may(&used) {
                let (at, value) = (used.at.to_string(), used.exact.to_string());
                return Err(Flaw::NotAskedFor { at, value, grant: grants::example(used.need, &used.word) }.into());
            }
        }
        Ok(())
    }

    fn may(&self, used: &Use<'_>) -> bool {
        let is_users = || self.users(used).is_some();
        !is_hosts(used) && (self.grants.allows(used.need, &used.word) || self.is_own(used) || is_users())
    }

    /// Returns the place in the job's spec of the same use by the user, if there is one. A template in the spec is read
    /// as a template first, whatever the fields around it are called.
    fn users<'s>(&'s self, used: &'s Use<'s>) -> Option<&'s (&'a str, Place<'a>)> {
        let of_roles = || self.plan.roles.iter().filter_map(|role| role.template_at.as_deref());
        let in_templates = self.in_templates.get_or_init(|| self.users_below(of_roles()));
        let in_spec = || self.in_spec.get_or_init(|| self.users_below([""]));
        place_of(in_templates, used).or_else(|| place_of(in_spec(), used))
    }

    fn users_below(&self, places: impl IntoIterator<Item = &'a str>) -> UsersUses<'a> {
        let parts = places.into_iter().filter_map(|at| Some((at, pointer::find(&self.job.spec, at)?)));
        let uses = parts.flat_map(|(at, part)| uses(part).into_iter().map(move |used| (at, used)));
        uses.map(|(at, used)| ((used.need, used.exact), (at, used.at))).collect()
    }

    /// Returns whether the use names an object of this plan, or the job's own namespace.
    fn is_own(&self, used: &Use<'_>) -> bool {
        let kind = match used.need {
            Need::Namespace => return used.word == self.job.namespace,
            Need::Secret => {
                let mut names = self.plan.secrets.iter().map(|it| names::expand(&it.name, &self.job.name, None, 0));
                return names.any(|name| name == used.word);
            }
            Need::ConfigMap => "ConfigMap",
            Need::Claim => "PersistentVolumeClaim",
            _ => return false,
        };
        let mut of_kind = self.plan.objects.iter().filter(|it| it.kind == kind && it.api_version == "v1");
        of_kind.any(|object| names::index_of_object(self.plan, object, &self.job.name, &used.word).is_some())
    }

    /// Checks that a Service's selector names the job or one of its pods, so that it selects no others.
    fn selector(&self, body: &Value) -> Result<(), Flaw> {
        let Some(selector) = pointer::find(body, "/spec/selector").and_then(Value::as_object) else { return Ok(()) };
        let names_it = |value: &str| {
            value == self.job.name
                || value == self.job.uid
                || names::role_of_pod(self.plan, &self.job.name, value).is_some()
        };
        match selector.is_empty() || selector.values().filter_map(Value::as_str).any(names_it) {
            true => Ok(()),
            false => Err(Flaw::ForeignSelector { selector: body["spec"]["selector"].to_string() }),
        }
    }

    /// Returns the JSON as filled in for the first replica.
    fn filled<'b>(&self, json: &'b Value, fill: &[(String, Text)], pod_name: Option<&str>) -> Cow<'b, Value> {
        let mut json = Cow::Borrowed(json);
        for (pointer, text) in fill {
            if let Some(place) = json.to_mut().pointer_mut(pointer) {
                *place = names::expand(text, &self.job.name, pod_name, 0).into();
            }
        }
        json
    }
}

/// The pointers of texts that differ from replica to replica.
#[derive(Default)]
struct Varying<'a>(BTreeSet<&'a str>);

impl<'a> Varying<'a> {
    fn of(fill: &'a [(String, Text)]) -> Self {
        let varies = |piece: &Piece| !matches!(piece, Piece::Fixed(_) | Piece::JobName);
        Self(fill.iter().filter(|(_, text)| text.0.iter().any(varies)).map(|(pointer, _)| pointer.as_str()).collect())
    }

    /// Returns whether one of them is this place, around it or inside it. The time does not follow from their number: a plan
    /// may have many, and a template many uses.
    fn touch(&self, place: &Place<'_>) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let here = place.to_string();
        let is_around = |(end, _): (usize, &str)| self.0.contains(&here[..end]);
        let inside = format!("{here}/");
        self.0.contains(here.as_str())
            || here.match_indices('/').any(is_around)
            || self.0.range(inside.as_str()..).next().is_some_and(|pointer| pointer.starts_with(&inside))
    }
}

impl ChildKind {
    /// Returns the API group; "" is the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        group(&self.api_version)
    }

    /// Returns whether a plan may keep a field of such an object equal to its body: one that is kept and not the API
    /// server's or another controller's to write.
    #[must_use]
    pub fn can_be_followed(&self) -> bool {
        self.keep.iter().any(|pointer| may_follow(pointer))
    }

    /// Returns the kind as in `spec.grants.kinds`: `Pod`, `Job.batch`.
    #[must_use]
    pub fn id(&self) -> String {
        id(&self.api_version, &self.kind)
    }
}

fn id(api_version: &str, kind: &str) -> String {
    match api_version.split_once('/') {
        Some((group, _)) => format!("{kind}.{group}"),
        None => kind.to_owned(),
    }
}

/// Returns the place of the same use by the user. A function of its own, for which the lifetimes are as short as the use.
fn place_of<'s, 'a>(users: &'s UsersUses<'a>, used: &'s Use<'s>) -> Option<&'s (&'a str, Place<'a>)> {
    users.get(&(used.need, used.exact.clone()))
}

/// Returns whether this is the host's own annotation, which nobody else may set.
fn is_hosts(used: &Use<'_>) -> bool {
    used.need == Need::Mark && used.word == ownership::PLUGIN_DIGEST_ANNOTATION
}

pub(super) fn label_of_plugin(label: &str) -> Result<(), Flaw> {
    match marks::is_reserved_label(label) {
        true => Err(Flaw::ReservedLabel { label: label.to_owned() }),
        false => Ok(()),
    }
}

/// Returns whether one of the places is the other, or inside it.
pub(super) fn touches(a: &str, b: &str) -> bool {
    let is_in = |a: &str, b: &str| a.strip_prefix(b).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    is_in(a, b) || is_in(b, a)
}

/// Returns whether upkeep may follow this place: identity and status are not a plugin's to write.
fn may_follow(pointer: &str) -> bool {
    let is_in = |place: &str| touches(pointer, place);
    let words = ["/metadata/labels/", "/metadata/annotations/"].iter().any(|place| pointer.starts_with(place));
    words || !["/metadata", "/status", "/kind", "/apiVersion"].into_iter().any(is_in)
}
