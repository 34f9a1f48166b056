//! URLs, right and wrong.

use super::*;

fn place(url: &str) -> Place {
    Place::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"))
}

fn parsed(url: &str) -> Address {
    match place(url) {
        Place::Server(address) => address,
        other => panic!("{url} means {other}"),
    }
}

fn sentinels(url: &str) -> Sentinels {
    match place(url) {
        Place::Sentinels(sentinels) => sentinels,
        other => panic!("{url} means {other}"),
    }
}

/// What is said of it; no password is in there.
fn refused(url: &str) -> String {
    let error = Place::parse(url).expect_err(url);
    let text = format!("{error} {error:?}");
    assert!(!text.contains("secr"), "{url}: {text}");
    text
}

#[test]
fn each_part_may_be_left_out() {
    for (url, shown) in [
        ("redis://localhost", "redis://localhost:6379/0"),
        ("redis://10.0.0.1:7000", "redis://10.0.0.1:7000/0"),
        ("redis://redis-0.redis.svc/", "redis://redis-0.redis.svc:6379/0"),
        ("redis://host/15", "redis://host:6379/15"),
        ("redis://[::1]", "redis://[::1]:6379/0"),
        ("redis://[fe80::1]:6380/1", "redis://[fe80::1]:6380/1"),
        ("redis://:secret@host", "redis://***@host:6379/0"),
        ("redis://user:secret@host:1/2?", "redis://***@host:1/2"),
    ] {
        assert_eq!(parsed(url).to_string(), shown);
    }
    assert_eq!(parsed("redis://[::1]").server.host, "::1");
}

#[test]
fn user_and_password_are_decoded() {
    for (url, user, password) in [
        ("redis://host", None, None),
        ("redis://@host", None, None),
        ("redis://:@host", None, None),
        ("redis://:secret@host", None, Some("secret")),
        ("redis://worker:p%40ss%2Fw%25rd@host", Some("worker"), Some("p@ss/w%rd")),
        ("redis://worker:a:b@host", Some("worker"), Some("a:b")),
        ("redis://worker:a@b@host", Some("worker"), Some("a@b")),
        ("redis://w%C3%B6rker:%F0%9F%94%91@host", Some("wörker"), Some("🔑")),
        // A user that needs no password has to say its name all the same.
        ("redis://worker@host", Some("worker"), Some("")),
    ] {
        let address = parsed(url);
        assert_eq!((address.access.user.as_deref(), address.access.password.as_deref()), (user, password), "{url}");
    }
}

#[test]
fn what_is_wrong_is_said_and_the_password_is_not() {
    for (url, part) in [
        ("redis:secret", "scheme"),
        ("redis://", "host of"),
        ("redis://:6379", "host of"),
        ("redis://user:secret@", "host of"),
        ("redis://ho st", "host of"),
        ("redis://a:1,b:2", "host of"),
        ("redis://[secret", "host of"),
        ("redis://[secret]", "host of"),
        ("redis://[::1]secret", "port of"),
        ("redis://fe80::1", "port of"),
        ("redis://user:secret", "port of"),
        ("redis://user:not?secret", "port of"),
        ("redis://user:not/secret", "port of"),
        ("redis://host:", "port of"),
        ("redis://host:0", "port of"),
        ("redis://host:+1", "port of"),
        ("redis://host:65536", "port of"),
        ("redis://host/secret", "path of"),
        ("redis://host/0/", "path of"),
        ("redis://host/256", "path of"),
        ("redis://host/-1", "path of"),
        ("redis://:secr/et@host", "user or password"),
        ("redis://:secr?et@host", "user or password"),
        ("redis://:secr#et@host", "user or password"),
        ("redis://:secret%@host", "password of"),
        ("redis://:secret%2@host", "password of"),
        ("redis://:secret%zz@host", "password of"),
        ("redis://:secret%ff@host", "password of"),
        ("redis://secret%ff@host", "user of"),
        ("redis://host#secret", "end of"),
        ("redis://host?password=secret", "query of"),
        ("redis://host?se&cret", "query of"),
        ("redis://host?s%65cret=secret", "query of"),
        ("redis://host?ca=/secret.pem", "query of"),
        ("redis://host?cert=/secret.pem&key=/secret.key", "query of"),
    ] {
        let text = refused(url);
        assert!(text.contains(&format!("the {part}")), "{url}: {text}");
        assert!(text.contains("`redis://user:password@host:6379/0`"), "{url}: {text}");
    }
    let text = refused("redis://host?timeout=1");
    assert!(text.contains("`timeout`") && text.contains("`ca`"), "{text}");
    let text = refused("redis://a:1,b:2");
    assert!(text.contains("`redis-sentinel://") && text.contains("`redis-cluster://"), "{text}");
}

#[test]
fn sentinels_are_a_list_with_a_service_and_the_servers_that_they_watch_have_their_own_password() {
    for (url, shown) in [
        ("redis-sentinel://host/mymaster", "redis-sentinel://host:26379/mymaster/0"),
        ("redis-sentinel://host/mymaster/", "redis-sentinel://host:26379/mymaster/0"),
        (
            "redis-sentinel://a,b:1,[::1],[::2]:3/m%2F%78/15",
            "redis-sentinel://a:26379,b:1,[::1]:26379,[::2]:3/m%2Fx/15",
        ),
        ("redis-sentinel://:secret@a,b/mymaster", "redis-sentinel://***@a:26379,b:26379/mymaster/0"),
        ("redis-sentinel://a/m?sentinel_password=secret", "redis-sentinel://a:26379/m/0"),
    ] {
        let place = place(url);
        assert_eq!(place.to_string(), shown);
        let text = format!("{place:?} {place:#?} {:?}", sentinels(url).access);
        assert!(!text.contains("secret"), "{text}");
    }
    let url = "redis-sentinel://us%40er:p:w@a:1,b/m/2?sentinel_user=watch%26er&sentinel_password=s%3Dp%2B+";
    let Sentinels { servers, service, access, watched } = sentinels(url);
    assert_eq!((List(&servers).to_string(), &*service), ("a:1,b:26379".to_owned(), "m"));
    let who = |access: &Access| (access.user.clone(), access.password.clone(), access.database, access.tls);
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(who(&watched), (some("us@er"), some("p:w"), 2, false));
    assert_eq!(who(&access), (some("watch&er"), some("s=p++"), 0, false));
    // Who the servers know is nobody to the sentinels, and the other way round.
    assert_eq!(who(&sentinels("redis-sentinel://u:p@a/m").access), (None, None, 0, false));
    assert_eq!(who(&sentinels("redis-sentinel://a/m?sentinel_password=x").access), (None, some("x"), 0, false));
    assert_eq!(who(&sentinels("redis-sentinel://a/m?sentinel_user=x").access), (some("x"), some(""), 0, false));
    assert_eq!(who(&sentinels("redis-sentinel://a/m?sentinel_user=x").watched), (None, None, 0, false));
}

#[test]
fn what_is_wrong_with_a_url_of_sentinels_is_said() {
    for (url, part) in [
        ("redis-sentinel://a,b", "name of the service"),
        ("redis-sentinel://a,b/", "name of the service"),
        ("redis-sentinel://a,b//0", "name of the service"),
        ("redis-sentinel://a/se%0acret", "name of the service"),
        ("redis-sentinel://a/secr%", "name of the service"),
        ("redis-sentinel:///mymaster", "host"),
        ("redis-sentinel://a,/mymaster", "host"),
        ("redis-sentinel://,a/mymaster", "host"),
        ("redis-sentinel://a,secr et/mymaster", "host"),
        ("redis-sentinel://a,b:secret/mymaster", "port"),
        ("redis-sentinel://a,b,a:26379/mymaster", "list of hosts"),
        ("redis-sentinel://user:secret,a/mymaster", "port"),
        ("redis-sentinel://a/mymaster/secret", "path"),
        ("redis-sentinel://a/mymaster/0/secret", "path"),
        ("redis-sentinel://a/mymaster/256", "path"),
        ("redis-sentinel://:secret%@a/mymaster", "password"),
        ("redis-sentinel://a/mymaster?password=secret", "query"),
        ("redis-sentinel://a/mymaster?sentinel_password=", "query"),
        ("redis-sentinel://a/mymaster?sentinel_password=secret&sentinel_password=secret", "query"),
        ("redis-sentinel://a/mymaster?sentinel_password=secret%f", "query"),
        ("redis-sentinel://a/mymaster?sentinel_password=secr@t", "user or password"),
        ("redis-sentinel://a/mymaster?sentinel_password=not&secret", "query"),
        ("redis-sentinel://a/mymaster?sentinel_user=not&secret", "query"),
        ("redis-sentinel://a/mymaster?ca=/secret.pem", "query"),
        ("redis-sentinel://a/mymaster#secret", "end"),
    ] {
        let text = refused(url);
        assert!(text.contains(&format!("the {part} of")), "{url}: {text}");
        assert!(text.contains("`redis-sentinel://user:password@host:26379,host2:26379/service/0`"), "{url}: {text}");
    }
    let text = refused("redis-sentinel://a/mymaster?timeout=1");
    assert!(
        ["`timeout`", "`ca`", "`sentinel_user`", "`sentinel_password`"].iter().all(|key| text.contains(key)),
        "{text}"
    );
    // Of no other kind.
    let text = refused("redis://a?sentinel_password=secret");
    assert!(text.contains("`sentinel_password`, which means nothing"), "{text}");
}

#[test]
fn a_cluster_is_a_list_of_nodes_without_a_database() {
    for (url, shown) in [
        ("redis-cluster://host", "redis-cluster://host:6379"),
        ("redis-cluster://a,b:1,[::1]", "redis-cluster://a:6379,b:1,[::1]:6379"),
        ("redis-cluster://user:secret@a,b/", "redis-cluster://***@a:6379,b:6379"),
        ("redis-cluster://a/0", "redis-cluster://a:6379"),
    ] {
        let place = place(url);
        assert_eq!(place.to_string(), shown);
        assert!(!format!("{place:?}").contains("secret"), "{place:?}");
    }
    for (url, part) in [
        ("redis-cluster://", "host"),
        ("redis-cluster://a,", "host"),
        ("redis-cluster://a,a", "list of hosts"),
        ("redis-cluster://a,b/1", "path"),
        ("redis-cluster://a,b/secret", "path"),
        ("redis-cluster://a:secret,b", "port"),
        ("redis-cluster://a?sentinel_user=secret", "query"),
    ] {
        let text = refused(url);
        assert!(text.contains(&format!("the {part} of")), "{url}: {text}");
        assert!(text.contains("`redis-cluster://user:password@host:6379,host2:6379`"), "{url}: {text}");
    }
}

#[test]
fn what_is_no_scheme_is_not_shown_as_one() {
    assert!(refused("http://host").contains("`http`"));
    for url in [":secret://host", "user:secret://host", "us er:secret://host"] {
        assert!(refused(url).contains("no scheme"), "{url}");
    }
}

#[test]
fn no_form_of_it_shows_the_password() {
    let address = parsed("redis://hidden:secret@host");
    let text = format!("{address} {address:?} {address:#?} {:?}", address.server);
    assert!(!text.contains("secret") && !text.contains("hidden"), "{text}");
}

#[cfg(feature = "redis-tls")]
#[test]
fn a_tls_url_may_name_the_certificates_to_trust() {
    assert_eq!(parsed("rediss://host").access.ca, None);
    let address = parsed("rediss://host:6380/1?ca=/etc/my%20ca.pem");
    assert_eq!(address.access.ca, Some(PathBuf::from("/etc/my ca.pem")));
    assert_eq!(address.to_string(), "rediss://host:6380/1");
    let certificate = parsed("rediss://host?cert=/etc/a.pem&key=/etc/a.key").access.certificate;
    assert_eq!(certificate, Some(Certificate { chain: "/etc/a.pem".into(), key: "/etc/a.key".into() }));
    for query in ["ca", "ca=", "ca=/a&ca=/b", "cert=/a", "key=/a"] {
        assert!(Place::parse(&format!("rediss://host?{query}")).is_err(), "{query}");
    }
    let Sentinels { access, watched, .. } = sentinels("rediss-sentinel://a,b/m?ca=/ca.pem&sentinel_user=x");
    for access in [access, watched] {
        assert_eq!((access.tls, access.ca), (true, Some(PathBuf::from("/ca.pem"))));
    }
    assert_eq!(place("rediss-sentinel://a/m").to_string(), "rediss-sentinel://a:26379/m/0");
    assert_eq!(place("rediss-cluster://a?ca=/ca.pem").to_string(), "rediss-cluster://a:6379");
}

#[cfg(not(feature = "redis-tls"))]
#[test]
fn a_tls_url_names_the_feature_that_is_off() {
    for scheme in ["rediss", "rediss-sentinel", "rediss-cluster"] {
        let text = refused(&format!("{scheme}://user:secret@host/service"));
        assert!(text.contains("feature `redis-tls`") && text.contains(scheme), "{text}");
    }
}
