//! A cluster whose nodes speak TLS only, to everybody and among themselves, by certificates of a CA of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use leader_core::Elector;
use leader_tests::redis::RedisCluster;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;

use crate::config;

/// A CA, and a certificate by it for this host, as files.
struct Papers(TempDir);

impl Papers {
    fn new() -> Self {
        let named = |name: &str, names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            let mut params = CertificateParams::new(names).unwrap();
            params.distinguished_name.push(DnType::CommonName, name);
            params
        };
        let mut params = named("CA of a test", &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = named("nodes of a test", &["127.0.0.1"]).signed_by(&key, &ca).unwrap();
        let ours = KeyPair::generate().unwrap();
        let client = named("instances of a test", &[]).signed_by(&ours, &ca).unwrap();
        let papers = Self(tempfile::tempdir().unwrap());
        for (name, content) in [
            ("ca.pem", ca.as_ref().pem()),
            ("node.pem", certificate.pem()),
            ("node.key", key.serialize_pem()),
            ("client.pem", client.pem()),
            ("client.key", ours.serialize_pem()),
        ] {
            std::fs::write(papers.path(name), content).unwrap();
        }
        papers
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn cluster(&self) -> Option<RedisCluster> {
        let [ca, certificate, key] =
            ["ca.pem", "node.pem", "node.key"].map(|name| self.path(name).display().to_string());
        RedisCluster::start(&[
            ("tls-cert-file", &certificate),
            ("tls-key-file", &key),
            ("tls-ca-cert-file", &ca),
            ("tls-auth-clients", "no"),
            ("tls-cluster", "yes"),
            ("tls-replication", "yes"),
            // Or the doctor says so.
            ("cluster-require-full-coverage", "no"),
        ])
    }
}

fn url(cluster: &RedisCluster, ca: &Path) -> String {
    format!("{}?ca={}", cluster.url().replace("redis-cluster://", "rediss-cluster://"), ca.display())
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_on_all_nodes_are_led_by_tls_and_followed_where_their_slots_go() {
    let papers = Papers::new();
    let Some(cluster) = papers.cluster() else { return };
    let groups = cluster.groups();
    let url = url(&cluster, &papers.path("ca.pem"));
    let elector = Elector::start(config(&url).groups(&groups)).await.unwrap();
    assert!(groups.iter().all(|group| elector.is_leader(group)), "{:?}", elector.status().problems);
    assert_eq!(elector.doctor().await.unwrap(), []);
    // Who asks where the slot was is sent to where it is, and that by TLS.
    let slot = cluster.slot(0, &format!("leader:{}", groups[0]));
    cluster.begin_to_move(slot, 0, 1);
    assert!(cluster.move_keys(slot, 0, 1) > 0);
    cluster.end_to_move(slot, 0, 1);
    assert_eq!(elector.leader_id(&groups[0]).await.unwrap().as_ref(), Some(elector.instance_id()));
    elector.shutdown(Duration::from_secs(1)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_trusts_another_ca_or_has_to_show_a_certificate_is_told_so() {
    let papers = Papers::new();
    let Some(cluster) = papers.cluster() else { return };
    let refused = async |url: &str| Elector::start(config(url).require_store(true)).await.unwrap_err().to_string();
    let error = refused(&url(&cluster, &Papers::new().path("ca.pem"))).await;
    assert!(error.contains("is signed by nobody"), "{error}");
    let error = refused(&cluster.url()).await;
    assert!(error.contains("speaks TLS") && error.contains("`rediss-cluster://`"), "{error}");
    for node in cluster.nodes() {
        node.command::<()>(&["CONFIG", "SET", "tls-auth-clients", "yes"]);
    }
    let url = url(&cluster, &papers.path("ca.pem"));
    let error = refused(&url).await;
    assert!(error.contains("certificate of the client") && error.contains("tls-auth-clients"), "{error}");
    let with = |papers: &Papers, key: &str| {
        format!("{url}&cert={}&key={}", papers.path("client.pem").display(), papers.path(key).display())
    };
    // By another CA; not there; of another certificate.
    let stranger = Papers::new();
    let error = refused(&with(&stranger, "client.key")).await;
    assert!(error.contains("does not accept our certificate"), "{error}");
    let error = refused(&with(&papers, "none.key")).await;
    assert!(error.contains("none.key") && error.contains("`key`"), "{error}");
    let error = refused(&with(&papers, "node.key")).await;
    assert!(error.contains("cannot be used"), "{error}");
    let elector = Elector::start(config(&with(&papers, "client.key"))).await.unwrap();
    assert!(elector.is_leader("default"), "{:?}", elector.status().problems);
    elector.shutdown(Duration::from_secs(1)).await.unwrap();
}
