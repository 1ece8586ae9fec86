//! Decides which token servers get a registry's credentials: a registry may name any server in its challenge.

use http::Uri;

/// Docker's registry, and the server that makes its tokens.
const DOCKER_HUB: (&str, &str) = ("registry-1.docker.io", "auth.docker.io");

/// Returns whether credentials for the registry at `root` belong to the server at `realm`, too: on the same host, or on one
/// whose domain contains the other's (who has a domain decides what its subdomains are), or Docker's.
pub(super) fn belongs_to(root: &Uri, realm: &Uri) -> bool {
    let (Some(registry), Some(server)) = (name(root), name(realm)) else { return false };
    let (registry, server) = (registry.as_str(), server.as_str());
    registry == server || is_below(registry, server) || is_below(server, registry) || (registry, server) == DOCKER_HUB
}

/// Returns whether the first name is a subdomain of the second, which has at least two parts. Addresses have none.
fn is_below(name: &str, domain: &str) -> bool {
    let is_name = |host: &str| host.bytes().any(|byte| byte.is_ascii_alphabetic()) && !host.starts_with('[');
    let is_inside = name.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
    is_inside && domain.contains('.') && is_name(name) && is_name(domain)
}

fn name(url: &Uri) -> Option<String> {
    Some(url.host()?.trim_end_matches('.').to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(registry: &str, realm: &str) -> bool {
        belongs_to(&format!("https://{registry}/v2/a").parse().unwrap(), &realm.parse().unwrap())
    }

    #[test]
    fn a_token_server_on_the_registrys_host_or_domain_and_dockers_get_credentials() {
        for (registry, realm) in [
            ("ghcr.io", "https://ghcr.io/token"),
            ("GHCR.io:443", "https://ghcr.IO./token"),
            ("127.0.0.1:5000", "http://127.0.0.1:5001/token"),
            ("registry.gitlab.com", "https://gitlab.com/jwt/auth"),
            ("example.com", "https://tokens.example.com/"),
            ("registry-1.docker.io", "https://auth.docker.io/token"),
        ] {
            assert!(told(registry, realm), "{registry} {realm}");
        }
    }

    #[test]
    fn a_token_server_on_any_other_host_gets_none() {
        for (registry, realm) in [
            ("ghcr.io", "https://ghcr.io.evil.com/token"),
            ("ghcr.io", "https://evilghcr.io/token"),
            ("ghcr.io", "https://io/token"),
            ("registry.example.com", "https://gitlab.example.com/jwt/auth"),
            ("ghcr.io", "https://auth.docker.io/token"),
            ("registry-1.docker.io", "https://auth.docker.io.evil.com/token"),
            ("10.1.2.3", "https://1.2.3/token"),
            ("[fd12::1]", "https://[fd12::2]/token"),
        ] {
            assert!(!told(registry, realm), "{registry} {realm}");
        }
    }
}
