//! The certificates to trust.

use std::path::Path;
use std::sync::Arc;

use rustls_native_certs::load_native_certs;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};

use super::super::address::Address;
use super::super::connection::Failure;

/// Read anew for each connection, so that certificates may be replaced while the process lives; and on a thread for it, as
/// files may be slow.
pub(in super::super) async fn config(address: &Address) -> Result<ClientConfig, Failure> {
    let ca = address.access.ca.clone();
    let reading = tokio::task::spawn_blocking(move || match &ca {
        Some(path) => from_file(path),
        None => from_system(),
    });
    let roots =
        reading.await.map_err(|_| impossible("the certificates could not be read".to_owned(), "report this"))??;
    // The provider is named: an application may have linked another one too, and then there is no default.
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| impossible(error.to_string(), "report this"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

fn from_file(path: &Path) -> Result<RootCertStore, Failure> {
    let wrong = |cause: String| {
        impossible(
            format!("the file of certificates to trust, {}: {cause}", path.display()),
            "let `ca` in the URL name a readable PEM file",
        )
    };
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(wrong("it holds no certificate".to_owned()));
    }
    Ok(roots)
}

/// Single ones that cannot be read are left out, as elsewhere in the system.
fn from_system() -> Result<RootCertStore, Failure> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(load_native_certs().certs);
    if roots.is_empty() {
        return Err(impossible(
            "this system has no certificates to trust".to_owned(),
            "install them (Debian: ca-certificates), or name a PEM file with `?ca=/path/to/ca.pem`",
        ));
    }
    Ok(roots)
}

fn impossible(cause: String, advice: &str) -> Failure {
    Failure::Impossible { cause, advice: advice.to_owned() }
}
