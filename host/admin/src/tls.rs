//! The certificate of the admin port: from files that are read again when they change, or made at the start.

use parking_lot::Mutex;
use rustls::{
    ServerConfig,
    crypto::ring::default_provider,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject},
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tracing::warn;

/// The minimum interval between two checks of the files.
const LOOKED_AT: Duration = Duration::from_secs(10);

/// The names in a self-signed certificate. Clients cannot verify it; it encrypts the connection.
const NAMES: [&str; 2] = ["troupe", "localhost"];

/// Why there is no usable certificate.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or is not PEM.
    #[error("{} cannot be read as PEM", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The cause.
        source: rustls::pki_types::pem::Error,
    },
    /// The key does not match the certificate, or cannot be used.
    #[error("the certificate and its key cannot be used")]
    Unusable(#[from] rustls::Error),
    /// A certificate could not be made.
    #[error("no certificate could be made")]
    Made(#[from] rcgen::Error),
}

/// The current certificate, and its files if it has any.
pub struct Tls {
    files: Option<Files>,
    now: Mutex<Current>,
}

struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

struct Current {
    acceptor: TlsAcceptor,
    changed: Option<SystemTime>,
    looked: Instant,
}

impl Tls {
    /// Returns a self-signed certificate made by this process.
    ///
    /// # Errors
    /// The certificate cannot be made.
    pub fn self_signed() -> Result<Self, TlsError> {
        let made = rcgen::generate_simple_self_signed(NAMES.map(str::to_owned))?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        Self::with(None, acceptor(vec![made.cert.der().clone()], key.into())?)
    }

    /// Returns the certificate and the key in these PEM files.
    ///
    /// # Errors
    /// The files cannot be read, or the key does not match the certificate.
    pub fn of_files(certificate: PathBuf, key: PathBuf) -> Result<Self, TlsError> {
        let files = Files { certificate, key };
        let acceptor = files.load()?;
        Self::with(Some(files), acceptor)
    }

    fn with(files: Option<Files>, acceptor: TlsAcceptor) -> Result<Self, TlsError> {
        let changed = files.as_ref().and_then(Files::changed);
        Ok(Self { files, now: Mutex::new(Current { acceptor, changed, looked: Instant::now() }) })
    }

    /// Returns the acceptor for the next connection. Reads changed files again; if that fails, keeps the old
    /// certificate.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let mut now = self.now.lock();
        if let Some(files) = self.files.as_ref().filter(|_| now.looked.elapsed() >= LOOKED_AT) {
            now.looked = Instant::now();
            let changed = files.changed();
            if changed != now.changed {
                match files.load() {
                    Ok(acceptor) => (now.acceptor, now.changed) = (acceptor, changed),
                    Err(error) => {
                        warn!(%error, "failed to reload the certificate of the admin port; the old one stays");
                    }
                }
            }
        }
        now.acceptor.clone()
    }
}

impl Files {
    fn changed(&self) -> Option<SystemTime> {
        let of = |file: &Path| file.metadata().and_then(|file| file.modified()).ok();
        of(&self.certificate).max(of(&self.key))
    }

    fn load(&self) -> Result<TlsAcceptor, TlsError> {
        let of = |file: &Path| {
            let file = file.to_owned();
            move |source| TlsError::File { file, source }
        };
        let chain = CertificateDer::pem_file_iter(&self.certificate).map_err(of(&self.certificate))?;
        let chain = chain.collect::<Result<_, _>>().map_err(of(&self.certificate))?;
        acceptor(chain, PrivateKeyDer::from_pem_file(&self.key).map_err(of(&self.key))?)
    }
}

fn acceptor(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<TlsAcceptor, TlsError> {
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
