//! A server's certificate for this machine, made by openssl, and what accepts TLS with it.

use crate::process::output;
use anyhow::{Context, Result};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig, crypto,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};

// The certificate is its own authority and must not be a CA: rustls refuses a CA certificate as a server's.
const CONFIG: &str = "[req]
prompt = no
distinguished_name = name
x509_extensions = server
[name]
CN = troupe-test
[server]
basicConstraints = critical,CA:FALSE
subjectAltName = IP:127.0.0.1,IP:10.96.0.1,DNS:localhost
";

/// A new certificate for `localhost` and the API server's address in its cluster, and its key, as the files `server.crt` and `server.key` of the folder.
pub fn certificate(folder: &Path) -> Result<(PathBuf, PathBuf)> {
    let (config, certificate, key) =
        (folder.join("certificate.cnf"), folder.join("server.crt"), folder.join("server.key"));
    fs::write(&config, CONFIG).with_context(|| format!("failed to write {}", config.display()))?;
    output(
        Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-days", "3650"])
            .arg("-config")
            .arg(config)
            .arg("-keyout")
            .arg(&key)
            .arg("-out")
            .arg(&certificate),
    )?;
    Ok((certificate, key))
}

/// Accepts TLS with a new certificate, which it writes to `server.crt` of the folder.
pub fn tls(folder: &Path) -> Result<TlsAcceptor> {
    let (certificate, key) = certificate(folder)?;
    let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![CertificateDer::from_pem_file(certificate)?], PrivateKeyDer::from_pem_file(key)?)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
