//! The certificates to trust, and our own.

use std::path::Path;
use std::sync::Arc;

use rustls_native_certs::load_native_certs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};

use super::super::address::{Address, Certificate};
use super::super::connection::Failure;

/// Read anew for each connection, so that certificates may be replaced while the process lives; and on a thread for it, as
/// files may be slow.
pub(in super::super) async fn config(address: &Address) -> Result<ClientConfig, Failure> {
    let (ca, certificate) = (address.access.ca.clone(), address.access.certificate.clone());
    let reading = tokio::task::spawn_blocking(move || {
        let roots = match &ca {
            Some(path) => from_file(path),
            None => from_system(),
        };
        Ok((roots?, certificate.as_ref().map(own).transpose()?))
    });
    let (roots, own) =
        reading.await.map_err(|_| impossible("the certificates could not be read".to_owned(), "report this"))??;
    // The provider is named: an application may have linked another one too, and then there is no default.
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| impossible(error.to_string(), "report this"))?
        .with_root_certificates(roots);
    let Some((chain, key)) = own else { return Ok(config.with_no_client_auth()) };
    config.with_client_auth_cert(chain, key).map_err(|error| {
        let cause = format!("our own certificate and its key cannot be used: {error}");
        impossible(cause, "let `cert` and `key` in the URL name a certificate and the key that belongs to it")
    })
}

fn own(files: &Certificate) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Failure> {
    let wrong = |what: &str, path: &Path, cause: String| {
        impossible(
            format!("{what}, {}: {cause}", path.display()),
            "let `cert` and `key` in the URL name readable PEM files",
        )
    };
    let chain = CertificateDer::pem_file_iter(&files.chain).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|error| wrong("the file of our own certificate", &files.chain, error.to_string()))?;
    if chain.is_empty() {
        return Err(wrong("the file of our own certificate", &files.chain, "it holds no certificate".to_owned()));
    }
    // What is wrong with a key is told without what is in it.
    let key = PrivateKeyDer::from_pem_file(&files.key);
    Ok((chain, key.map_err(|error| wrong("the file of its key", &files.key, error.to_string()))?))
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
