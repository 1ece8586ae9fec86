//! No value that means nothing is accepted in silence: each field of each kind gets some, and a real API server and the host
//! say what happens. `docs/jobs/values.md` is what they said.

pub(crate) mod crds;
mod edits;
mod fields;
mod harmless;
mod nulls;
mod outcome;
mod page;
mod plugins;
mod samples;
mod settings;
mod shown;
mod templates;

use crate::{
    cluster::objects::{Namespace, at},
    kubectl::Kubectl,
    operator::Operator,
};
use fields::fields;
use harness::{ControlPlane, Options};
use install::crds::relations;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use outcome::Outcome;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A job with one value that means nothing, or with one relation between fields that does not hold.
#[derive(Default)]
pub(crate) struct Case {
    /// The plural and group of the kind.
    pub(crate) resource: String,
    /// The field by the definition: `spec.tfReplicaSpecs[*].replicas`. Of a relation, what holds.
    pub(crate) field: String,
    /// Where the value is: `spec.tfReplicaSpecs[PS].replicas`. Of a relation, what has to be named.
    pub(crate) name: String,
    /// The value, or what breaks the relation.
    pub(crate) value: Value,
    pub(crate) is_relation: bool,
    pub(crate) job: Value,
    /// Which of all samples it was.
    pub(crate) sample: usize,
}

impl Case {
    fn text(&self) -> String {
        format!("{} {} = {}", self.resource, self.name, self.value)
    }

    /// Whether these words are about the field, or one that it is in. The API server says of a rule where it stands.
    fn is_named_in(&self, words: &str) -> bool {
        if self.is_relation {
            return words.contains(&self.name);
        }
        let last = self.name.rsplit(['.', '[']).next().unwrap_or_default().trim_end_matches(']');
        let ancestor = self.name.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
        words.contains(last) || words.contains(&format!("{ancestor} ")) || words.contains(&format!("{ancestor}:"))
    }

    fn why_harmless(&self) -> Option<usize> {
        (!self.is_relation)
            .then(|| harmless::row_of(&format!("{} {}", self.resource, self.field), &self.value))
            .flatten()
    }
}

/// Returns the cases of every kind, the number of its fields, and the fields that no sample has.
fn cases(crds: &[CustomResourceDefinition]) -> (Vec<Case>, Vec<(String, usize)>, Vec<String>) {
    let (mut cases, mut counts, mut without, mut known) = (vec![], vec![], vec![], BTreeSet::new());
    let mut first = 0;
    for of in samples::samples() {
        let resource = of.kind.resource();
        let crd = crds.iter().find(|crd| crd.metadata.name.as_deref() == Some(&resource)).unwrap();
        let all = fields(crd);
        counts.push((resource.clone(), all.len()));
        for field in all {
            let mut found = false;
            for (number, sample) in of.jobs.iter().enumerate() {
                for place in field.places(&sample.job) {
                    found = true;
                    for value in field.nonsense(at(&sample.job, &place.pointer)) {
                        let job = place.with(&sample.job, &value);
                        if job != sample.job && known.insert((resource.clone(), place.name.clone(), value.to_string()))
                        {
                            let (resource, field, name) = (resource.clone(), field.name(), place.name.clone());
                            let (is_relation, sample) = (false, first + number);
                            cases.push(Case { resource, field, name, value, is_relation, job, sample });
                        }
                    }
                }
            }
            if !found {
                without.push(format!("{resource} {}", field.name()));
            }
        }
        for relation in relations().into_iter().filter(|relation| relation.resource == resource) {
            let mut job = of.jobs[0].job.clone();
            json_patch(&mut job, &relation.broken_by);
            cases.push(Case {
                resource: resource.clone(),
                field: relation.says.to_owned(),
                name: relation.names.to_owned(),
                value: relation.broken_by,
                is_relation: true,
                job,
                sample: first,
            });
        }
        first += of.jobs.len();
    }
    (cases, counts, without)
}

/// The samples as they are, and of what each is warned.
fn valid(of: samples::Samples) -> impl Iterator<Item = (Case, Option<&'static str>)> {
    let resource = of.kind.resource();
    of.jobs
        .into_iter()
        .map(move |sample| (Case { resource: resource.clone(), job: sample.job, ..Case::default() }, sample.warned))
}

/// RFC 7386.
fn json_patch(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else { return *target = patch.clone() };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in fields {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(name);
        } else {
            json_patch(&mut target[name], value);
        }
    }
}

/// The cases that are accepted without a word, and without a reason in the table.
fn silent<'a>(cases: &'a [Case], outcomes: &'a [Outcome]) -> impl Iterator<Item = String> + 'a {
    cases.iter().zip(outcomes).filter_map(|(case, outcome)| {
        let is_said = *outcome != Outcome::Silent && case.is_named_in(outcome.words());
        (!is_said && case.why_harmless().is_none()).then(|| format!("{}: {outcome:?}", case.text()))
    })
}

/// What a plugin never sees: a job that says who else runs it is left to them.
const ONLY_OF_DEFINITIONS: [&str; 1] = ["managedBy ="];

/// The API server's word for rules that it could not evaluate.
fn begins_uselessly(words: &str) -> bool {
    let first = words.split(" is invalid: ").nth(1).unwrap_or_default().split(", ").next().unwrap_or_default();
    first.contains("some validation rules were not checked")
}

#[test]
fn no_setting_that_means_nothing_is_accepted_in_silence() {
    let (tried, silent) = settings::tried();
    assert_eq!(silent, Vec::<String>::new());
    let chart = tried.iter().filter(|it| it.of == "the chart").count();
    assert!(tried.len() > 200 && chart > 100, "{} tried, {chart} of the chart", tried.len());
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn no_value_that_means_nothing_is_accepted_in_silence() {
    let all = install::crds::all();
    let (cases, counts, without) = cases(&all);
    assert_eq!(without, Vec::<String>::new(), "fields that no sample has");
    let plane = ControlPlane::start(Options::default().crds(all.iter().map(crds::lenient))).await.unwrap();
    let namespace = Namespace::create_in(plane.client("user").await.unwrap(), "values").await;
    let operator = Operator::start(&plane, &["--namespace", &namespace.name]).await;

    // What the definitions of an earlier version let in, the plugins find: both have the same rules.
    let by_plugins = outcome::try_all(&namespace, "old-", &cases).await.unwrap();
    let of_definitions = |text: &String| ONLY_OF_DEFINITIONS.iter().any(|known| text.contains(known));
    let found: Vec<_> = silent(&cases, &by_plugins).filter(|text| !of_definitions(text)).collect();
    assert_eq!(found, Vec::<String>::new(), "accepted without a word by the plugin");

    // What is stored can still be written of once the definitions have the rules.
    crds::apply(&namespace.client, &all).await.unwrap();
    assert_eq!(outcome::forgotten(&namespace, &cases).await.unwrap(), Vec::<String>::new());

    let (valid, warned): (Vec<_>, Vec<_>) = samples::samples().into_iter().flat_map(valid).unzip();
    let outcomes = outcome::try_all(&namespace, "valid-", &valid).await.unwrap();
    for ((case, warned), outcome) in valid.iter().zip(&warned).zip(&outcomes) {
        let is_so = match warned {
            Some(field) => matches!(outcome, Outcome::Warned(words) if words.contains(field)),
            None => *outcome == Outcome::Silent,
        };
        assert!(is_so, "{}: {outcome:?}: {:#}", case.resource, case.job);
    }

    let outcomes = outcome::try_all(&namespace, "new-", &cases).await.unwrap();
    let found: Vec<_> = silent(&cases, &outcomes).collect();
    assert_eq!(found, Vec::<String>::new(), "accepted without a word, and without a reason");
    let useless: Vec<_> = outcomes.iter().map(Outcome::words).filter(|words| begins_uselessly(words)).collect();
    assert_eq!(useless, Vec::<&str>::new(), "begin with what does not help");

    let user = Kubectl::of(plane.kubeconfig("user").unwrap(), &namespace.name).await;
    let missing = shown::missing(&namespace, &user, &operator, "new-", &cases, &outcomes).await.unwrap();
    assert_eq!(missing, Vec::<String>::new());

    assert_eq!(nulls::not_as_absent(&namespace, &all).await.unwrap(), Vec::<String>::new());

    // As edits of jobs that run.
    let disturbed = edits::disturbed(&namespace, &valid, &cases, &outcomes).await.unwrap();
    assert_eq!(disturbed, Vec::<String>::new());
    let templates = templates::tried(&namespace, &all).await.unwrap();
    operator.stop().await;

    let plugins = plugins::asked(&namespace.client, &all).await.unwrap();
    assert_eq!((plugins.without, plugins::silent(&plugins.tried)), (vec![], vec![]));
    assert_eq!(plugins::unread(&plane, &plugins.taken).await.unwrap(), Vec::<String>::new());
    let settings: Vec<_> = settings::tried().0.into_iter().chain(plugins.tried).collect();
    page::is_generated(&cases, &counts, &outcomes, &settings, &templates);
}
