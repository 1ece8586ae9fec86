//! Who may log in to a control plane: its certificate, its token file and the kubeconfigs made from them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use serde_json::json;

use crate::certificate::certificate;
use crate::options::Options;
use crate::process::output;
use crate::run_dir::RunDir;

/// The node's user; a real node's name is the part behind the last colon.
pub(crate) const NODE_USER: &str = "system:node:troupe-node";

/// The cluster's own parts. Each is an actor of its own, so the audit log tells them apart.
const PARTS: [&str; 4] = ["controller-manager", "scheduler", "kwok", "coredns"];

/// The files kube-apiserver is started with.
#[derive(Debug)]
pub(crate) struct Credentials {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) service_account_key: PathBuf,
    pub(crate) tokens: PathBuf,
}

impl Credentials {
    /// Fresh keys, and a token for each user.
    pub(crate) fn create(dir: &RunDir, options: &Options) -> Result<Credentials> {
        let (certificate, key) = certificate(dir.path())?;
        let service_account_key = dir.join("service-account.key");
        output(Command::new("openssl").args(["genpkey", "-algorithm", "RSA", "-out"]).arg(&service_account_key))?;
        let tokens = dir.write("tokens.csv", &tokens(options))?;
        Ok(Credentials { certificate, key, service_account_key, tokens })
    }
}

/// Lines of `token,user,uid,groups`. A token is the user's name: the server listens on loopback and lives for a test.
fn tokens(options: &Options) -> String {
    let parts = PARTS.map(|part| format!("{part},{part},{part},system:masters\n"));
    let users = options.users().map(|user| {
        let groups = if options.limited.iter().any(|limited| limited == user) { "" } else { ",system:masters" };
        format!("{user},{user},{user}{groups}\n")
    });
    let node = format!("{NODE_USER},{NODE_USER},node,system:nodes\n");
    parts.into_iter().chain(users).chain([node]).collect()
}

/// Every name [`kubeconfig`] makes sense for.
pub(crate) fn logins(options: &Options) -> impl Iterator<Item = &str> {
    options.users().chain(PARTS).chain([NODE_USER])
}

/// The file of a user's kubeconfig. A service account's name has colons, which part the paths in `KUBECONFIG`.
pub(crate) fn kubeconfig_file(user: &str) -> String {
    format!("{}.kubeconfig", user.replace(':', "-"))
}

/// The text of a kubeconfig.
pub(crate) fn kubeconfig(url: &str, certificate: &Path, user: &str) -> String {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": url, "certificate-authority": certificate}}],
        "users": [{"name": user, "user": {"token": user}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
        "current-context": "test",
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_limited_user_is_not_a_master() {
        let tokens = tokens(&Options::default().actor("other").limited("troupe"));
        assert!(tokens.contains("troupe,troupe,troupe\n"), "{tokens}");
        assert!(tokens.contains("other,other,other,system:masters\n"), "{tokens}");
        assert!(tokens.contains("admin,admin,admin,system:masters\n"), "{tokens}");
    }
}
