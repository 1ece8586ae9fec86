//! Why a write failed, and what is known of its result.

use crate::{
    api::{DEADLINE, answer},
    error::chain,
    write::keys,
};
use std::{error::Error, io, time::Duration};

/// Why a write failed.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The reply did not come in time; the write may have succeeded.
    #[error("no reply within {} s", DEADLINE.as_secs())]
    NoReply,
    /// The API server refused the request, or the connection failed.
    #[error("{}", chain(.0))]
    Client(kube::Error),
    /// The request cannot be formed.
    #[error("cannot form the request")]
    Request(#[from] kube::core::request::Error),
    /// The answer that the decision was made from has no such part.
    #[error("the plan has no such part")]
    NoSuchPart,
    /// The key pair of a Secret cannot be created.
    #[error("cannot make the key pair")]
    Keys(#[source] keys::KeyError),
    /// The object of that name is not controlled by the job.
    #[error("the name is taken")]
    NameTaken,
    /// A required object was deleted.
    #[error("it was deleted")]
    Deleted,
    /// The API server has the job, and serves no status of it.
    #[error("the API server has the job but no status of it: the CRD needs the subresource status")]
    NoStatus,
}

impl WriteError {
    /// Returns the HTTP status of the API server's answer; `None` if there was none.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Client(kube::Error::Api(status)) => Some(status.code),
            _ => None,
        }
    }

    /// Returns how long the API server asks to wait before the next attempt.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Client(error) => answer::retry_after(error),
            _ => None,
        }
    }

    /// Returns whether the write may have succeeded despite the error.
    pub(crate) fn is_of_doubt(&self) -> bool {
        self.code().is_none_or(|code| code >= 500) && !self.is_refused_connection()
    }

    /// Returns whether the write may still succeed, later than a read that is begun now.
    pub(super) fn may_come_late(&self) -> bool {
        self.code().is_none()
    }

    /// Returns whether this answer to a read says that the job has no object of that name. Any other says nothing, also
    /// one that asks to come again later.
    pub(super) fn says_that_there_is_none(&self) -> bool {
        matches!(self, Self::NameTaken) || self.code() == Some(404)
    }

    /// Returns whether the API server says that it has no object of this name. Where it does not serve the kind, it answers
    /// 404 as well, and names no object.
    pub(super) fn says_that_there_is_no(&self, name: &str) -> bool {
        let Self::Client(kube::Error::Api(status)) = self else { return false };
        status.code == 404 && status.details.as_ref().is_some_and(|details| details.name == name)
    }

    /// Returns whether the request was never sent.
    fn is_refused_connection(&self) -> bool {
        let Self::Client(error) = self else { return false };
        let mut causes = std::iter::successors(Some(error as &dyn Error), |error| (**error).source());
        causes.any(|cause| {
            let cause = cause.downcast_ref::<io::Error>();
            cause.is_some_and(|cause| cause.kind() == io::ErrorKind::ConnectionRefused)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::{client::Body, core::Status};

    fn refused(code: u16) -> WriteError {
        WriteError::Client(kube::Error::Api(Box::new(Status { code, ..Status::default() })))
    }

    fn not_sent() -> WriteError {
        WriteError::Client(kube::Error::Service(io::Error::from(io::ErrorKind::ConnectionRefused).into()))
    }

    #[test]
    fn a_write_that_was_refused_or_not_sent_is_not_in_doubt() {
        assert!(refused(500).is_of_doubt() && WriteError::NoReply.is_of_doubt());
        assert!(!refused(429).is_of_doubt() && !not_sent().is_of_doubt());
    }

    /// Returns the error of an answer with this code and body.
    async fn answered(code: u16, body: &str) -> WriteError {
        let answer = http::Response::builder().status(code).body(Body::from(body.as_bytes().to_vec())).unwrap();
        WriteError::Client(kube::Error::Api(answer::status_of(answer).await.unwrap().boxed()))
    }

    #[tokio::test]
    async fn what_a_proxy_refuses_is_judged_by_the_code_of_http() {
        let timed_out = answered(504, r#"{"message":"upstream timed out"}"#).await;
        assert!(timed_out.is_of_doubt(), "the write may have succeeded: {timed_out:?}");
        assert_eq!(answered(429, r#"{"message":"slow down"}"#).await.code(), Some(429));
    }

    // A read that fails after a lost create proves nothing, whatever it fails with.
    #[test]
    fn only_an_answer_about_the_name_says_that_there_is_no_object() {
        assert!(refused(404).says_that_there_is_none() && WriteError::NameTaken.says_that_there_is_none());
        for answer in [refused(429), refused(403), refused(500), not_sent(), WriteError::NoReply] {
            assert!(!answer.says_that_there_is_none(), "{answer:?}");
        }
    }
}
