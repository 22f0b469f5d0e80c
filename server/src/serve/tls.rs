//! TLS of the server's own: its certificate, which is read anew on SIGHUP.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::watch;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use tokio_rustls::rustls::{self, InconsistentKeys, ServerConfig};

/// Where the certificate and its key are.
#[derive(Debug, Clone)]
pub(crate) struct TlsFiles {
    /// The certificate and those between it and the authority's, in PEM.
    pub(crate) certificate: PathBuf,
    /// Its private key, in PEM.
    pub(crate) key: PathBuf,
}

/// Why nothing can be encrypted with some files.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    /// One cannot be read.
    #[error("the {what} {}: {source}", path.display())]
    File {
        /// What it was to hold.
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// One holds something else.
    #[error("the {what} {}: it holds none in PEM, which begins with `-----BEGIN {begin}-----`", path.display())]
    NoPem {
        /// What it was to hold.
        what: &'static str,
        path: PathBuf,
        /// The words of its first line.
        begin: &'static str,
    },
    /// They do not belong together.
    #[error(
        "the private key {} is not that of the certificate {}; the server's own certificate must be the first in its file",
        key.display(), certificate.display()
    )]
    Mismatch {
        /// The file of the key.
        key: PathBuf,
        /// The file of the certificate.
        certificate: PathBuf,
    },
    /// Browsers would refuse it now.
    #[error("the certificate {} {validity}, as this machine's clock says; get another one", path.display())]
    NotNow {
        path: PathBuf,
        /// Since or until when.
        validity: String,
    },
    /// Anything else of them.
    #[error("the certificate {}: {problem}", path.display())]
    Unusable {
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

impl TlsFiles {
    /// What connections are encrypted with.
    ///
    /// # Errors
    /// When a file cannot be read or holds something else, they do not belong together, or the certificate is not valid now.
    pub(crate) fn read(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let path = &self.certificate;
        let no_certificate = || TlsError::NoPem {
            what: "certificate",
            path: path.clone(),
            begin: "CERTIFICATE",
        };
        let text = read("certificate", path)?;
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
        let chain = chain.map_err(|_| no_certificate())?;
        let first = chain.first().ok_or_else(no_certificate)?;
        if let Some(validity) = validity(first) {
            return Err(TlsError::NotNow {
                path: path.clone(),
                validity,
            });
        }
        let key = PrivateKeyDer::from_pem_slice(&read("private key", &self.key)?);
        let key = key.map_err(|_| TlsError::NoPem {
            what: "private key",
            path: self.key.clone(),
            begin: "PRIVATE KEY",
        })?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key));
        let mut config = config.map_err(|error| match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => TlsError::Mismatch {
                key: self.key.clone(),
                certificate: path.clone(),
            },
            error => TlsError::Unusable {
                path: path.clone(),
                problem: error.to_string(),
            },
        })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

fn read(what: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::File {
        what,
        path: path.to_owned(),
        source,
    })
}

/// Why a certificate is not valid now; `None` when it is, whoever signed it.
fn validity(certificate: &CertificateDer<'_>) -> Option<String> {
    let certificate = webpki::EndEntityCert::try_from(certificate).ok()?;
    // Its dates are looked at first, and with no authority to trust the rest fails.
    let verified = certificate.verify_for_usage(
        webpki::ALL_VERIFICATION_ALGS,
        &[],
        &[],
        UnixTime::now(),
        webpki::KeyUsage::server_auth(),
        None,
        None,
    );
    match verified.err()? {
        webpki::Error::CertExpired { not_after, .. } => Some(format!("ended on {}", moment(not_after))),
        webpki::Error::CertNotValidYet { not_before, .. } => {
            Some(format!("is valid from {} only", moment(not_before)))
        }
        _ => None,
    }
}

fn moment(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds).map_or_else(|_| "a day far away".into(), |time| time.to_string())
}

/// A certificate in use, and how it is replaced.
pub(super) struct Certificate {
    files: TlsFiles,
    config: watch::Sender<Arc<ServerConfig>>,
    #[cfg(unix)]
    hangups: tokio::signal::unix::Signal,
}

impl Certificate {
    /// Reads it, and listens for SIGHUP from now on.
    ///
    /// # Errors
    /// As [`TlsFiles::read`], or when the system gives no signals.
    pub(super) fn open(files: TlsFiles) -> Result<Self, super::ServeError> {
        Ok(Self {
            config: watch::Sender::new(files.read()?),
            files,
            #[cfg(unix)]
            hangups: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())?,
        })
    }

    /// What new connections are encrypted with.
    pub(super) fn config(&self) -> watch::Receiver<Arc<ServerConfig>> {
        self.config.subscribe()
    }

    /// Reads it anew at each SIGHUP, for as long as it is polled. One that cannot be used leaves the present one.
    pub(super) async fn keep_reading(&mut self) {
        loop {
            #[cfg(unix)]
            let heard = self.hangups.recv().await;
            #[cfg(not(unix))]
            let heard: Option<()> = None;
            if heard.is_none() {
                return std::future::pending().await;
            }
            match self.files.read() {
                Ok(config) => {
                    self.config.send_replace(config);
                    tracing::info!("the certificate was read anew; new connections get it");
                }
                Err(error) => tracing::error!(%error, "the certificate stays as it was"),
            }
        }
    }
}
