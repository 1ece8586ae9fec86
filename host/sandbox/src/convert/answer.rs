//! Converts a plugin's answers to the host's own types. Answers are not trusted: JSON is parsed and its size checked,
//! texts for people are cleaned. `decide::vet` checks what a plan contains.

use super::{Bodies, Stop, wit};
use crate::{limits::Limits, log::clean};
use decide::{
    gang::{self, Gang},
    grants::Grants,
    outdated,
    plan::{self, Objection},
    pointer::find,
    template::{Edit, edited},
    weight,
};
use jiff::Timestamp;
use serde_json::Value;
use std::{collections::BTreeMap, fmt};

/// Maximum bytes of a text for people: the limit of an event's message.
const LONGEST_TEXT: usize = 1024;

/// Maximum number of field errors, and of events, that are passed on.
const MOST: usize = 64;

/// Maximum bytes of memory of all templates that a plan refers to in the job's spec. Such a reference costs the plugin
/// nothing, but the host a copy.
const MOST_REFERRED: usize = 32 << 20;

/// A result whose error names the wrong field and what is wrong with it.
type Checked<T> = Result<T, Stop>;

pub(super) fn refusal(raw: wit::Refusal) -> Stop {
    match raw {
        wit::Refusal::Invalid(errors) => {
            let errors = errors.into_iter().take(MOST).map(|error| plan::FieldError {
                path: clean(&error.path, LONGEST_TEXT),
                message: clean(&error.message, LONGEST_TEXT),
            });
            Stop::Rejected(plan::Rejection::Invalid(errors.collect()))
        }
        wit::Refusal::Unsupported(what) => Stop::Rejected(plan::Rejection::Unsupported(clean(&what, LONGEST_TEXT))),
        wit::Refusal::Internal(what) => Stop::Internal(clean(&what, LONGEST_TEXT)),
    }
}

/// The field that an error is about. Its text is written only for an error.
#[derive(Clone, Copy)]
struct FieldOf<'a> {
    field: &'static str,
    kind: &'static str,
    name: &'a str,
}

impl fmt::Display for FieldOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, kind, name } = self;
        write!(f, "{field} of {kind} {name}")
    }
}

/// Parses JSON text of at most `most` bytes.
fn json(what: impl fmt::Display, text: &str, most: usize) -> Checked<Value> {
    if text.len() > most {
        return Err(Stop::TooLarge(format!("{what}: {} bytes are more than {most}", text.len())));
    }
    serde_json::from_str(text).map_err(|error| format!("{what}: {error}").into())
}

fn json_object(what: impl fmt::Display + Copy, text: &str, most: usize) -> Checked<Value> {
    let value = json(what, text, most)?;
    if value.is_object() { Ok(value) } else { Err(format!("{what}: it is not a JSON object").into()) }
}

/// Checks the syntax of RFC 6901, section 3. With invalid escapes two texts could lead to one field, and pointers that
/// are disjoint for `decide::vet` could overlap.
fn pointer(what: impl fmt::Display, text: String) -> Checked<String> {
    if !text.starts_with('/') {
        return Err(format!("{what}: {text:?} is no JSON pointer to a field").into());
    }
    if text.split('~').skip(1).any(|rest| !rest.starts_with(['0', '1'])) {
        return Err(format!("{what}: {text:?} is no JSON pointer: 0 or 1 must follow each ~").into());
    }
    Ok(text)
}

fn pointers(what: impl fmt::Display + Copy, texts: Vec<String>) -> Checked<Vec<String>> {
    texts.into_iter().map(|text| pointer(what, text)).collect()
}

pub(super) fn descriptor(raw: wit::Descriptor, limits: &Limits) -> Checked<plan::Descriptor> {
    let kinds = raw.kinds.into_iter().map(|kind| {
        let what = |switch: &str| format!("{switch} switch of {}", kind.kind);
        Ok(plan::JobKind {
            suspend: kind.switches.suspend.map(|at| pointer(what("suspend"), at)).transpose()?,
            managed_by: kind.switches.managed_by.map(|at| pointer(what("managed-by"), at)).transpose()?,
            group: kind.group,
            version: kind.version,
            kind: kind.kind,
            plural: kind.plural,
            own_manager: kind.own_manager,
            retired_finalizers: kind.retired_finalizers,
            roles: kind.roles,
            event_source: kind.event_source,
            queueing: match kind.queueing {
                wit::Queueing::Host => plan::Queueing::Host,
                wit::Queueing::Elsewhere => plan::Queueing::Elsewhere,
            },
        })
    });
    let children = raw.children.into_iter().map(|child| {
        if child.kind == "Secret" {
            return Err("child Secret: the host reads no Secrets; plan one by a recipe instead".to_owned().into());
        }
        Ok(plan::ChildKind {
            keep: pointers(format_args!("keep of {}", child.kind), child.keep)?,
            api_version: child.api_version,
            kind: child.kind,
            plural: child.plural,
            selector: child.selector,
            optional: child.optional,
            owned_by: match child.owned_by {
                wit::OwnedBy::Job => plan::OwnedBy::Job,
                wit::OwnedBy::Pod => plan::OwnedBy::Pod,
            },
        })
    });
    let reads = raw.reads.into_iter().map(|reference| {
        let kind = match reference.kind {
            wit::ReferredKind::ConfigMap => plan::Referred::ConfigMap,
            wit::ReferredKind::Secret => plan::Referred::Secret,
        };
        Ok(plan::Reference { kind, at: pointer(format_args!("reads of {}", kind.kind()), reference.at)? })
    });
    let mut children = children.collect::<Checked<Vec<_>>>()?;
    let grants = json_object("grants", &raw.grants, limits.body)?;
    let mut asks = Grants::asked(&grants).map_err(|error| error.to_string())?;
    if raw.gangs {
        gang::describe(&mut children, &mut asks);
    }
    Ok(plan::Descriptor {
        kinds: kinds.collect::<Checked<_>>()?,
        children,
        reads: reads.collect::<Checked<_>>()?,
        asks,
        config_schema: json_object("config-schema", &raw.config_schema, limits.body)?,
        name: raw.name,
        version: raw.version,
        event_reasons: raw.event_reasons.into_iter().collect(),
    })
}

pub(super) fn job_plan(
    raw: wit::JobPlan,
    job_name: &str,
    spec: &Value,
    (limits, bodies): (&Limits, &Bodies),
) -> Checked<plan::Plan> {
    let referred = raw.roles.iter().filter_map(|role| match &role.template {
        wit::Template::Edited((at, _)) => find(spec, at),
        wit::Template::Whole(_) => None,
    });
    let referred: usize = referred.map(weight::json).sum();
    if referred > MOST_REFERRED {
        let message = format!("its roles refer to {referred} bytes of templates, more than {MOST_REFERRED}");
        return Err(Stop::TooLarge(message));
    }
    let mut roles: Vec<_> = raw.roles.into_iter().map(|one| role(one, spec, limits)).collect::<Checked<_>>()?;
    let mut objects: Vec<_> = raw.objects.into_iter().map(|one| object(one, limits, bodies)).collect::<Checked<_>>()?;
    if let Some(raw) = raw.gang {
        objects.push(gang(raw, limits)?.gather(job_name, &mut roles).map_err(|objection| refused("gang", objection))?);
    }
    Ok(plan::Plan {
        roles,
        objects,
        secrets: raw.secrets.into_iter().map(secret).collect(),
        series: raw.series.into_iter().map(series).collect::<Checked<_>>()?,
        success_criteria: raw
            .success_criteria
            .into_iter()
            .map(|all| all.into_iter().map(criterion).collect())
            .collect(),
        host_ports: raw.host_ports,
        policy: plan::Policy {
            clean_on_success: clean_rule(raw.policy.clean_on_success),
            clean_on_failure: clean_rule(raw.policy.clean_on_failure),
            clean_on_suspend: clean_rule(raw.policy.clean_on_suspend),
            ttl: raw.policy.ttl.map(|ttl| match ttl {
                wit::Ttl::AfterFinished(seconds) => plan::Ttl::AfterFinished(seconds),
                wit::Ttl::AfterCreation(seconds) => plan::Ttl::AfterCreation(seconds),
            }),
        },
        warnings: events(raw.warnings),
    })
}

fn criterion(raw: wit::Criterion) -> plan::Criterion {
    plan::Criterion { role: raw.role, indices: raw.indices.into(), at_least: raw.at_least }
}

fn gang(raw: wit::Gang, limits: &Limits) -> Checked<Gang> {
    let least = raw.min_resources.map(|given| json_object("min-resources of the gang", &given, limits.body));
    Ok(Gang {
        min_resources: least.transpose()?,
        scheduler: raw.scheduler,
        members: raw.members,
        min_member: raw.min_member,
        queue: raw.queue,
        priority_class: raw.priority_class,
        schedule_timeout: raw.schedule_timeout,
    })
}

fn series(raw: wit::Series) -> Checked<plan::Series> {
    Ok(plan::Series {
        template_at: pointer(FieldOf { field: "template", kind: "series", name: &raw.key }, raw.template)?,
        key: raw.key,
        api_version: raw.api_version,
        kind: raw.kind,
        labels: raw.labels.into_iter().collect(),
    })
}

fn role(raw: wit::Role, spec: &Value, limits: &Limits) -> Checked<plan::Role> {
    let what = |field| FieldOf { field, kind: "role", name: &raw.name };
    let backing = match &raw.backing {
        wit::Backing::Pods => plan::Backing::Pods,
        wit::Backing::Job(body) => plan::Backing::Job(json_object(what("job"), body, limits.body)?),
    };
    let env = |entry: wit::EnvEntry| plan::EnvEntry {
        container: entry.container,
        name: entry.name,
        value: text(entry.value),
    };
    let (template, template_at) = template(what("template"), raw.template, spec, limits)?;
    let source = template_at.as_ref().and_then(|at| find(spec, at));
    Ok(plan::Role {
        template_hash: outdated::template_hash(source.unwrap_or(&template)),
        backing,
        template,
        template_at,
        replicas: raw.replicas,
        pod_name: text(raw.pod_name),
        hostname: raw.hostname.map(text),
        subdomain: raw.subdomain.map(text),
        env: raw.env.into_iter().map(env).collect(),
        labels: raw.labels.into_iter().map(|(name, value)| (name, text(value))).collect(),
        fill: fill(what("fill"), raw.fill)?,
        success: match raw.success {
            wit::Success::Final => plan::Success::Final,
            wit::Success::Momentary => plan::Success::Momentary,
            wit::Success::Shared => plan::Success::Shared,
        },
        failures: raw.failures.into_iter().map(failure_rule).collect(),
        deletion: match raw.deletion {
            wit::Deletion::Uncounted => plan::Deletion::Uncounted,
            wit::Deletion::WhenFailed => plan::Deletion::WhenFailed,
            wit::Deletion::AtOnce => plan::Deletion::AtOnce,
        },
        at_once: raw.at_once,
        failures_per_replica: raw.failures_per_replica,
        left_out: raw.left_out.into(),
        on_new_address: match raw.on_new_address {
            wit::OnNewAddress::Keep => plan::OnNewAddress::Keep,
            wit::OnNewAddress::Replace => plan::OnNewAddress::Replace,
        },
        after: gates(what("gate"), raw.after)?,
        name: raw.name,
    })
}

fn failure_rule(raw: wit::FailureRule) -> plan::FailureRule {
    let about = match raw.about {
        wit::Failure::Any => plan::Failure::Any,
        wit::Failure::ExitCodes((container, ranges)) => plan::Failure::ExitCodes { container, ranges },
        wit::Failure::NoExitCode(container) => plan::Failure::NoExitCode { container },
        wit::Failure::Condition((kind, status)) => plan::Failure::Condition { kind, status },
    };
    let then = match raw.then {
        wit::Remedy::Replace => plan::Remedy::Replace,
        wit::Remedy::ReplaceUncounted => plan::Remedy::ReplaceUncounted,
        wit::Remedy::RestartRole => plan::Remedy::RestartRole,
        wit::Remedy::RestartJob => plan::Remedy::RestartJob,
        wit::Remedy::GiveUp => plan::Remedy::GiveUp,
        wit::Remedy::Keep => plan::Remedy::Keep,
    };
    plan::FailureRule { about, then }
}

/// Returns the template, and the pointer to the user's template if it was made from one.
fn template(what: FieldOf<'_>, raw: wit::Template, spec: &Value, limits: &Limits) -> Checked<(Value, Option<String>)> {
    let (at, edits) = match raw {
        wit::Template::Whole(json) => return Ok((json_object(what, &json, limits.body)?, None)),
        wit::Template::Edited((at, edits)) => (pointer(what, at)?, edits),
    };
    let edits = edits.into_iter().map(|edit| match edit {
        wit::Edit::Set((at, value)) => Ok(Edit::Set(pointer(what, at)?, json(what, &value, limits.body)?)),
        wit::Edit::Append((at, items)) => match json(what, &items, limits.body)? {
            Value::Array(items) => Ok(Edit::Append(pointer(what, at)?, items)),
            _ => Err(format!("{what}: what is appended at {at} is not a JSON array").into()),
        },
    });
    let template = edited(spec, &at, edits.collect::<Checked<_>>()?).map_err(|objection| refused(what, objection))?;
    Ok((template, Some(at)))
}

/// Returns why a part of a plan is not accepted.
fn refused(what: impl fmt::Display, objection: Objection) -> Stop {
    match objection {
        Objection::Job(rejection) => Stop::Rejected(rejection),
        Objection::Plugin(error) => Stop::Unacceptable(format!("{what}: {}", error.numbered())),
    }
}

fn object(raw: wit::Object, limits: &Limits, bodies: &Bodies) -> Checked<plan::Object> {
    let what = |field| FieldOf { field, kind: "object", name: &raw.key };
    let body = match raw.body {
        wit::Body::Bound => plan::Body::Bound,
        wit::Body::Fixed((body, texts)) => {
            let parse = |text: &str| json_object(what("body"), text, limits.body);
            plan::Body::Fixed(bodies.of(body, parse)?, fill(what("text"), texts)?)
        }
    };
    let upkeep = match raw.upkeep {
        wit::Upkeep::CreateOnly => plan::Upkeep::CreateOnly,
        wit::Upkeep::Follow(at) => plan::Upkeep::Follow(pointers(what("upkeep"), at)?),
    };
    let moment = |moment: wit::Moment| match moment {
        wit::Moment::Suspended => plan::Moment::Suspended,
        wit::Moment::Finished => plan::Moment::Finished,
        wit::Moment::Cleaned => plan::Moment::Cleaned,
        wit::Moment::ReplicaGone => plan::Moment::ReplicaGone,
    };
    Ok(plan::Object {
        after: gates(what("gate"), raw.after)?,
        body,
        upkeep,
        key: raw.key,
        api_version: raw.api_version,
        kind: raw.kind,
        name: text(raw.name),
        per_pod_of: raw.per_pod_of,
        remove_when: raw.remove_when.into_iter().map(moment).collect(),
    })
}

fn secret(raw: wit::SecretRecipe) -> plan::SecretRecipe {
    plan::SecretRecipe {
        key: raw.key,
        name: text(raw.name),
        secret_type: raw.secret_type,
        labels: raw.labels.into_iter().collect(),
        private_key: raw.private_key,
        public_key: raw.public_key,
        algorithm: match raw.algorithm {
            wit::Algorithm::EcdsaP521 => plan::Algorithm::EcdsaP521,
        },
    }
}

fn text(raw: wit::Text) -> plan::Text {
    let piece = |piece: wit::Piece| match piece {
        wit::Piece::Text(text) => plan::Piece::Fixed(text),
        wit::Piece::Index(offset) => plan::Piece::Index(offset),
        wit::Piece::JobName => plan::Piece::JobName,
        wit::Piece::PodName => plan::Piece::PodName,
        wit::Piece::Attempt => plan::Piece::Attempt,
        wit::Piece::PeerIp((role, index)) => plan::Piece::PeerIp(role, index),
        wit::Piece::PeerHost((role, index)) => plan::Piece::PeerHost(role, index),
    };
    plan::Text(raw.into_iter().map(piece).collect())
}

fn fill(what: FieldOf<'_>, raw: Vec<(String, wit::Text)>) -> Checked<Vec<(String, plan::Text)>> {
    raw.into_iter().map(|(at, value)| Ok((pointer(what, at)?, text(value)))).collect()
}

fn gates(what: FieldOf<'_>, raw: Vec<wit::Gate>) -> Checked<Vec<plan::Gate>> {
    let gate = |gate: wit::Gate| match gate {
        wit::Gate::Pods(gate) => Ok(plan::Gate::Pods {
            role: gate.role,
            reached: match gate.reached {
                wit::Reached::Exists => plan::Reached::Exists,
                wit::Reached::Ip => plan::Reached::Ip,
                wit::Reached::Running => plan::Reached::Running,
                wit::Reached::Ready => plan::Reached::Ready,
                wit::Reached::Succeeded => plan::Reached::Succeeded,
            },
        }),
        wit::Gate::Field(gate) => {
            Ok(plan::Gate::Field { key: gate.key, at: pointer(what, gate.at)?, one_of: gate.one_of })
        }
    };
    raw.into_iter().map(gate).collect()
}

fn clean_rule(raw: wit::Clean) -> plan::Clean {
    match raw {
        wit::Clean::Keep => plan::Clean::Keep,
        wit::Clean::Active => plan::Clean::Active,
        wit::Clean::All => plan::Clean::All,
    }
}

fn events(raw: Vec<wit::Event>) -> Vec<plan::Event> {
    let event = |event: wit::Event| plan::Event {
        warning: event.warning,
        reason: clean(&event.reason, 128),
        message: clean(&event.message, LONGEST_TEXT),
    };
    raw.into_iter().take(MOST).map(event).collect()
}

pub(super) fn bindings(raw: wit::Bindings, wanted: &[String], limits: &Limits) -> Checked<plan::Bindings> {
    let run = |run: wit::Run| plan::Run {
        series: run.series,
        name: run.name,
        annotations: run.annotations.into_iter().collect(),
    };
    let runs = plan::Runs { make: raw.runs.into_iter().map(run).collect(), remove: raw.remove.into_iter().collect() };
    let mut bodies = BTreeMap::new();
    for (key, body) in raw.bodies {
        if !wanted.contains(&key) {
            return Err(format!("body of object {key}: it was not asked for").into());
        }
        let body = json_object(FieldOf { field: "body", kind: "object", name: &key }, &body, limits.answer)?;
        if bodies.insert(key.clone(), body).is_some() {
            return Err(format!("body of object {key}: it appears twice").into());
        }
    }
    Ok(plan::Bindings { bodies, runs })
}

fn timestamp(milliseconds: u64) -> Checked<Timestamp> {
    let at = i64::try_from(milliseconds).ok().and_then(|at| Timestamp::from_millisecond(at).ok());
    at.ok_or_else(|| format!("wake-at: {milliseconds} is no time in milliseconds").into())
}

pub(super) fn verdict(raw: wit::Verdict, limits: &Limits) -> Checked<plan::Verdict> {
    let status = json_object("status", &raw.status, limits.answer)?;
    if status.get("troupe").is_some() {
        return Err("status: the field troupe is the host's".to_owned().into());
    }
    Ok(plan::Verdict {
        status,
        headline: clean(&raw.headline, 256),
        outcome: match raw.outcome {
            wit::Outcome::Open => plan::Outcome::Open,
            wit::Outcome::Succeeding => plan::Outcome::Succeeding,
            wit::Outcome::Failing => plan::Outcome::Failing,
            wit::Outcome::Succeeded => plan::Outcome::Succeeded,
            wit::Outcome::Failed => plan::Outcome::Failed,
        },
        clean: raw.clean.map(clean_rule),
        wake_at: raw.wake_at.map(timestamp).transpose()?,
        events: events(raw.events),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_with_an_invalid_escape_is_refused() {
        let checked = |text: &str| pointer("upkeep of object map", text.to_owned());
        for valid in ["/", "/data", "/x/~02/y", "/a~1b/~0~1"] {
            assert_eq!(checked(valid).unwrap(), valid);
        }
        for invalid in ["/x/~2", "/~", "/a~/b", "/~~0"] {
            let Err(Stop::Unacceptable(refused)) = checked(invalid) else { panic!("{invalid}") };
            let expected = format!("upkeep of object map: {invalid:?} is no JSON pointer: 0 or 1 must follow each ~");
            assert_eq!(refused, expected);
        }
    }

    #[test]
    fn a_plugin_that_watches_secrets_is_refused() {
        let child = |kind: &str| wit::ChildKind {
            api_version: "v1".into(),
            kind: kind.into(),
            plural: kind.to_lowercase() + "s",
            selector: None,
            keep: vec!["/data".into()],
            optional: true,
            owned_by: wit::OwnedBy::Job,
        };
        let raw = |kind: &str| wit::Descriptor {
            name: "tales".into(),
            version: "1.0.0".into(),
            kinds: vec![],
            children: vec![child(kind)],
            gangs: false,
            config_schema: "{}".into(),
            grants: "{}".into(),
            reads: vec![],
            event_reasons: vec![],
        };
        let Err(Stop::Unacceptable(refused)) = descriptor(raw("Secret"), &Limits::default()) else { panic!() };
        assert_eq!(refused, "child Secret: the host reads no Secrets; plan one by a recipe instead");
        assert_eq!(descriptor(raw("ConfigMap"), &Limits::default()).unwrap().children[0].kind, "ConfigMap");
    }
}
