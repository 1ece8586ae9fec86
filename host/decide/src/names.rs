//! Expands texts to names, and parses names back to their replica.

use crate::plan::{Backing, Object, Piece, Plan, Role, Text};

/// Expands a text for one replica. Addresses, and the pod's name where it is `None`, expand to nothing.
#[must_use]
pub fn expand(text: &Text, job_name: &str, pod_name: Option<&str>, index: u32) -> String {
    expand_with(text, job_name, pod_name, (index, 0), |_, _| String::new())
}

/// Expands a text for one replica, which has an index and an attempt; `peer` returns the address of the pod of a role and
/// index.
#[must_use]
pub fn expand_with(
    text: &Text,
    job_name: &str,
    pod_name: Option<&str>,
    (index, attempt): (u32, u32),
    peer: impl Fn(&str, u32) -> String,
) -> String {
    let mut out = String::new();
    for piece in &text.0 {
        match piece {
            Piece::Fixed(part) => out.push_str(part),
            Piece::Index(offset) => out.push_str(&(i64::from(index) + i64::from(*offset)).to_string()),
            // In no name: `vet`.
            Piece::Attempt => out.push_str(&attempt.to_string()),
            Piece::JobName => out.push_str(job_name),
            Piece::PodName => out.push_str(pod_name.unwrap_or_default()),
            Piece::PeerIp(role, index) => out.push_str(&peer(role, *index)),
            Piece::PeerHost(role, index) => out.push_str(&before_port(&peer(role, *index))),
        }
    }
    out
}

/// Returns an address as it is written before a port (RFC 3986, section 3.2.2).
fn before_port(address: &str) -> String {
    if address.contains(':') { format!("[{address}]") } else { address.to_owned() }
}

/// Returns the name of a replica's pod, or of the Job that backs the role.
#[must_use]
pub fn of_replica(role: &Role, job_name: &str, index: u32) -> String {
    expand(&role.pod_name, job_name, None, index)
}

/// Returns the role (its place in the plan) and index of a pod that the job itself controls, also beyond the wanted
/// replicas.
///
/// The name decides: children of an original operator carry no label of ours.
#[must_use]
pub fn role_of_pod(plan: &Plan, job_name: &str, pod_name: &str) -> Option<(usize, u32)> {
    plan.roles
        .iter()
        .enumerate()
        .filter(|(_, role)| role.backing == Backing::Pods)
        .find_map(|(place, role)| Some((place, index_in(&role.pod_name.0, job_name, pod_name)?)))
}

/// Returns the name of an object of the plan, for one replica where the object is per pod.
#[must_use]
pub fn of_object(plan: &Plan, object: &Object, job_name: &str, index: u32) -> String {
    let pod_name = role_of_object(plan, object).map(|role| of_replica(role, job_name, index));
    expand(&object.name, job_name, pod_name.as_deref(), index)
}

/// Returns the replica that an object of this name belongs to, if the plan describes the object.
#[must_use]
pub fn index_of_object(plan: &Plan, object: &Object, job_name: &str, name: &str) -> Option<u32> {
    let pod_name = role_of_object(plan, object).map(|role| &role.pod_name);
    let pieces = object.name.0.iter().flat_map(|piece| match (piece, pod_name) {
        (Piece::PodName, Some(pod_name)) => pod_name.0.as_slice(),
        (other, _) => std::slice::from_ref(other),
    });
    index_in(pieces, job_name, name)
}

/// Returns the key of the plan's object or series, or the name of the Job-backed role, that a child belongs to.
#[must_use]
pub fn key_of_child<'a>(plan: &'a Plan, job_name: &str, api_version: &str, kind: &str, name: &str) -> Option<&'a str> {
    let object = plan
        .objects
        .iter()
        .filter(|object| object.kind == kind && object.api_version == api_version)
        .find(|object| index_of_object(plan, object, job_name, name).is_some())
        .map(|object| object.key.as_str());
    let series = plan.series_with(api_version, kind).map(|series| series.key.as_str());
    object.or(series).or_else(|| {
        let jobs = plan.roles.iter().filter(|role| kind == "Job" && matches!(role.backing, Backing::Job(_)));
        jobs.filter(|role| of_replica(role, job_name, 0) == name).map(|role| role.name.as_str()).next()
    })
}

/// Returns the role for whose replicas an object is created, if it is per pod.
#[must_use]
pub fn role_of_object<'a>(plan: &'a Plan, object: &Object) -> Option<&'a Role> {
    let role = object.per_pod_of.as_ref()?;
    plan.roles.iter().find(|candidate| candidate.name == *role)
}

/// Returns the index with which the pieces expand to `name`; 0 for a text without index.
fn index_in<'t>(pieces: impl IntoIterator<Item = &'t Piece>, job_name: &str, name: &str) -> Option<u32> {
    let (mut rest, mut index) = (name, None);
    for piece in pieces {
        rest = match piece {
            Piece::Fixed(part) => rest.strip_prefix(part.as_str())?,
            Piece::JobName => rest.strip_prefix(job_name)?,
            Piece::Attempt | Piece::PodName | Piece::PeerIp(..) | Piece::PeerHost(..) => rest,
            Piece::Index(offset) => {
                let (digits, behind) = rest.split_at(rest.bytes().take_while(u8::is_ascii_digit).count());
                let here = number(digits, *offset)?;
                if index.replace(here).is_some_and(|before| before != here) {
                    return None;
                }
                behind
            }
        };
    }
    rest.is_empty().then(|| index.unwrap_or(0))
}

/// Returns the index that these digits stand for with this offset.
fn number(digits: &str, offset: i32) -> Option<u32> {
    if digits.len() > 1 && digits.starts_with('0') {
        return None;
    }
    u32::try_from(digits.parse::<i64>().ok()? - i64::from(offset)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_of_the_text_parses_to_an_index() {
        let text = Text(vec![Piece::JobName, Piece::Fixed("-worker-".into()), Piece::Index(0)]);
        assert_eq!(expand(&text, "wide", None, 12), "wide-worker-12");
        assert_eq!(index_in(&text.0, "wide", "wide-worker-12"), Some(12));
        for stranger in
            ["wide-worker-", "wide-worker-012", "wide-worker-1x", "wide-ps-1", "wider-worker-1", "wide-worker--1"]
        {
            assert_eq!(index_in(&text.0, "wide", stranger), None, "{stranger}");
        }
    }

    // RFC 3986, section 3.2.2
    #[test]
    fn an_ipv6_address_before_a_port_stands_in_brackets() {
        let at = |piece: Piece, address: &str| {
            expand_with(&Text(vec![piece, Piece::Fixed(":80".into())]), "", None, (0, 0), |_, _| address.to_owned())
        };
        let (ip, host) = (Piece::PeerIp("launcher".into(), 0), Piece::PeerHost("launcher".into(), 0));
        assert_eq!(at(host.clone(), "fd00::7"), "[fd00::7]:80");
        assert_eq!(at(host, "10.0.0.7"), "10.0.0.7:80");
        assert_eq!(at(ip, "fd00::7"), "fd00::7:80");
    }

    #[test]
    fn an_index_with_an_offset_parses_back() {
        let text = Text(vec![Piece::Fixed("w".into()), Piece::Index(1)]);
        assert_eq!(expand(&text, "", None, 0), "w1");
        assert_eq!((index_in(&text.0, "", "w1"), index_in(&text.0, "", "w0")), (Some(0), None));
    }

    #[test]
    fn an_index_that_stands_twice_is_the_same_in_both_places() {
        let text = Text(vec![Piece::Index(0), Piece::Fixed("-".into()), Piece::Index(1)]);
        assert_eq!(expand(&text, "", None, 9), "9-10");
        assert_eq!((index_in(&text.0, "", "9-10"), index_in(&text.0, "", "9-9")), (Some(9), None));
        assert_eq!(index_in(&[Piece::JobName], "wide", "wide"), Some(0));
    }
}
