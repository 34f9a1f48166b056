//! What a server is, is set to, and is short of.

use super::super::failure::code;
use crate::doctor::{Finding, shown};

/// The oldest version that is supported.
const OLDEST: (u32, u32) = (6, 2);

/// So much of its memory may be in use before it is said to be nearly full, in percent.
const NEARLY_FULL: u64 = 90;

/// What `INFO` answers.
pub(in super::super) struct Info<'a> {
    text: &'a str,
    /// It is asked as a node of a cluster.
    as_node: bool,
}

impl<'a> Info<'a> {
    pub(in super::super) fn new(text: &'a str) -> Self {
        Self { text, as_node: false }
    }

    pub(super) fn of_node(text: &'a str) -> Self {
        Self { text, as_node: true }
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        let value = |line: &'a str| line.strip_prefix(name)?.strip_prefix(':');
        self.text.lines().find_map(value).map(str::trim)
    }

    fn number(&self, name: &str) -> u64 {
        self.get(name).and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }

    pub(super) fn is_loading(&self) -> bool {
        self.get("loading") == Some("1")
    }

    /// It is another one after each restart.
    pub(super) fn run_id(&self) -> Option<&'a str> {
        self.get("run_id")
    }

    /// It takes no writes when too few of its replicas are in step.
    pub(super) fn minds_replicas(&self) -> bool {
        self.get("role") == Some("master") && self.get("min_slaves_good_slaves").is_some()
    }

    /// It is taken for a single server, and is none.
    pub(super) fn is_of_a_cluster(&self) -> bool {
        !self.as_node && self.get("cluster_enabled") == Some("1")
    }

    fn version(&self) -> Option<(u32, u32)> {
        let mut parts = self.get("redis_version")?.split('.').map(str::parse);
        Some((parts.next()?.ok()?, parts.next()?.ok()?))
    }

    /// Those that have a copy of its data and follow it: others confirm nothing.
    fn replicas_in_step(&self) -> usize {
        let is_in_step = |line: &&str| line.starts_with("slave") && line.contains("state=online");
        self.text.lines().filter(is_in_step).count()
    }

    /// Its memory has a limit, and what happens there.
    fn is_evicting(&self) -> Option<&'a str> {
        self.get("maxmemory_policy").filter(|policy| *policy != "noeviction")
    }
}

/// `info`: nothing if it is not permitted. `refusal`: what the server says to who would set a key.
/// `replicas`: so many have to confirm.
pub(in super::super) fn judge(info: Option<&Info<'_>>, refusal: Option<&str>, replicas: u8) -> Vec<Finding> {
    let refused = refusal.and_then(|error| refused(error, info));
    let Some(info) = info else { return refused.into_iter().collect() };
    let of_the_server = [too_old(info), nameless(info), of_a_cluster(info), loading(info), replica(info)];
    let full = refusal.is_some_and(|error| code(error) == "OOM");
    let replicated = if replicas == 0 { not_waited_for(info) } else { waited_for(info, replicas.into()) };
    let of_its_state = [refused, evicting(info), nearly_full(info).filter(|_| !full), replicated, alone(info)];
    of_the_server.into_iter().chain(of_its_state).flatten().collect()
}

fn too_old(info: &Info<'_>) -> Option<Finding> {
    let (major, minor) = info.version().filter(|version| *version < OLDEST)?;
    Some(
        Finding::warning(
            format!("the server is Redis {major}.{minor}"),
            "this store is not tried with it: its scripts may fail there, and it gets no fixes any more",
            format!("use Redis {}.{} or newer, or Valkey", OLDEST.0, OLDEST.1),
        )
        .coded("server-too-old"),
    )
}

fn nameless(info: &Info<'_>) -> Option<Finding> {
    (info.get("run_id").is_none() || info.get("master_replid").is_none()).then(|| {
        Finding::warning(
            "the server does not say who it is (no run_id or no master_replid in INFO)",
            "a restart that brings back old leases is not told from a server that went on",
            "use Redis or Valkey themselves, or see that what is between them and here passes INFO on as it is",
        )
        .coded("no-identity")
    })
}

fn of_a_cluster(info: &Info<'_>) -> Option<Finding> {
    info.is_of_a_cluster().then(|| {
        Finding::error(
            "the server is part of a Redis Cluster",
            "a cluster spreads the groups over its servers, and this store speaks to the one in the URL: commands fail \
             there with MOVED or CROSSSLOT",
            "write redis-cluster:// in the URL, or name a server that is not part of a cluster",
        )
        .coded("cluster-node")
    })
}

fn loading(info: &Info<'_>) -> Option<Finding> {
    info.is_loading().then(|| {
        Finding::warning(
            "the server is still loading its data",
            "it refuses everything until it is done: nobody leads meanwhile, and nothing else could be checked",
            "wait, and ask again by Elector::doctor",
        )
        .coded("loading")
    })
}

fn replica(info: &Info<'_>) -> Option<Finding> {
    (info.get("role") == Some("slave")).then(|| {
        let [host, port] = ["master_host", "master_port"].map(|name| shown(info.get(name).unwrap_or("?")));
        Finding::error(
            format!("the server is a replica, of {host}:{port}"),
            "it takes no leases; or if it is set to take them, it forgets them when it follows its primary again",
            "name the primary in the URL",
        )
        .coded("replica")
    })
}

/// Nothing for what is a finding of its own already, or no state of the server's.
fn refused(error: &str, info: Option<&Info<'_>>) -> Option<Finding> {
    let is_known_replica = info.is_some_and(|info| replica(info).is_some());
    Some(match code(error) {
        "READONLY" if !is_known_replica => Finding::error(
            "the server is a replica",
            "it takes no leases, so nobody leads",
            "name the primary in the URL",
        )
        .coded("replica"),
        "OOM" => Finding::error(
            "the server's memory is full (maxmemory)",
            "leases that are held are renewed, but no new one is given: a group that loses its leader has none",
            "raise maxmemory, or free memory",
        )
        .coded("memory-full"),
        "NOREPLICAS" => Finding::error(
            "the server has fewer replicas in step than its min-replicas-to-write",
            "it takes no leases until it has them, so nobody leads",
            "see that the replicas run and can be reached from it, or lower min-replicas-to-write",
        )
        .coded("replicas-missing"),
        "MISCONF" => Finding::error(
            "the server could not save its data to the disk (stop-writes-on-bgsave-error)",
            "it takes no leases, and renews none, until it could, so nobody leads",
            "see its log, and make room on its disk",
        )
        .coded("disk-failing"),
        _ => return None,
    })
}

fn evicting(info: &Info<'_>) -> Option<Finding> {
    let policy = info.is_evicting()?;
    let what = format!("the server's maxmemory-policy is {}", shown(policy));
    let advice =
        "CONFIG SET maxmemory-policy noeviction, and the same in its configuration file; or use a server of its own";
    Some(if info.number("maxmemory") > 0 {
        Finding::error(
            what,
            "at its limit it throws leases and records away: groups lose their leaders at any moment, and wait for a whole \
             ttl for the next",
            advice,
        )
        .coded("evicting")
    } else {
        Finding::warning(
            what,
            "harmless while its maxmemory has no limit; with one, it would throw leases and records away",
            advice,
        )
        .coded("evicting")
    })
}

fn nearly_full(info: &Info<'_>) -> Option<Finding> {
    let (used, limit) = (info.number("used_memory"), info.number("maxmemory"));
    // One that evicts is always nearly full.
    (info.is_evicting().is_none() && limit > 0 && used.saturating_mul(100) / limit >= NEARLY_FULL).then(|| {
        Finding::warning(
            format!("the server's memory is nearly full: more than {NEARLY_FULL} % of its maxmemory of {limit} bytes"),
            "when it is full, leases that are held are renewed, but no new one is given",
            "raise maxmemory, or free memory",
        )
        .coded("memory-nearly-full")
    })
}

/// Of a server that sentinels watch.
pub(super) fn without_replicas(info: &Info<'_>) -> Option<Finding> {
    let is_alone = info.get("role") == Some("master") && info.number("connected_slaves") == 0;
    is_alone.then(|| {
        Finding::warning(
            "sentinels watch the server, and no replica is connected to it",
            "when it fails there is nothing that could take its place: nobody leads until it is back",
            "start a replica (REPLICAOF), or see why those that run are not connected",
        )
        .coded("no-replica")
    })
}

fn not_waited_for(info: &Info<'_>) -> Option<Finding> {
    let has_replicas = info.get("role") == Some("master") && info.number("connected_slaves") > 0;
    // Before Redis 7 a script writes although replicas are missing.
    let is_guarded = info.get("min_slaves_good_slaves").is_some() && info.version() >= Some((7, 0));
    // A node that is cut off from most of its cluster stops by itself.
    (has_replicas && !is_guarded && !info.as_node).then(|| {
        Finding::warning(
            "the server has replicas, and it confirms leases that have not reached them",
            "if it is cut off from them together with a leader, and one of them takes its place, the old leader goes on \
             beside a new one for as long as that lasts",
            "wait for all of them (Config::replicas); or on Redis 7 or newer set min-replicas-to-write, and min-replicas-max-lag \
             to less than the ttl; where a late write would do harm, compare the term as a fencing token",
        )
        .coded("not-waited-for")
    })
}

/// So many have to confirm: too many or too few for those that there are?
fn waited_for(info: &Info<'_>, needed: usize) -> Option<Finding> {
    if info.get("role") != Some("master") {
        return None;
    }
    let connected = info.replicas_in_step();
    if connected < needed {
        return Some(
            Finding::error(
                format!("the server has {connected} replicas in step, and {needed} have to confirm each lease and lock"),
                "nobody leads, and no lock is taken, until there are so many",
                "start replicas, and see that they follow this server (REPLICAOF; its log says why they do not); or lower \
                 Config::replicas (LEADER_REPLICAS)",
            )
            .coded("replicas-missing"),
        );
    }
    // A node that is cut off from most of its cluster stops by itself.
    (connected > needed && !info.as_node).then(|| {
        Finding::warning(
            format!("{needed} of the server's {connected} replicas have to confirm each lease and lock"),
            format!(
                "if another one takes its place while {needed} still follow this server, its leaders go on beside new ones for as \
                 long as they do; one that is waited for confirms nothing to it any more from then on"
            ),
            format!("if that must not be: Config::replicas({connected}); then nobody leads while one of them is missing"),
        )
        .coded("not-waited-for")
    })
}

fn alone(info: &Info<'_>) -> Option<Finding> {
    let is_primary = info.get("role") == Some("master");
    (info.as_node && is_primary && info.number("connected_slaves") == 0).then(|| {
        Finding::warning(
            "the server has no replica",
            "if it fails, nobody leads the groups in its slots until it is back",
            "give it a replica",
        )
        .coded("no-replica")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;

    const HEALTHY: &str = "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:1f\r\n\r\n# Memory\r\nused_memory:1365336\r\n\
        used_memory_human:1.30M\r\nmaxmemory:0\r\nmaxmemory_human:0B\r\nmaxmemory_policy:noeviction\r\n\r\n# Persistence\r\n\
        loading:0\r\nasync_loading:0\r\n\r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\nmaster_replid:2e\r\n\r\n# Cluster\r\n\
        cluster_enabled:0\r\n";

    /// The findings about a server that is healthy but for these lines.
    fn of(changes: &[(&str, &str)], refusal: Option<&str>) -> Vec<Finding> {
        let mut info = HEALTHY.to_owned();
        for (from, to) in changes {
            assert!(info.contains(from), "{from}");
            info = info.replace(from, to);
        }
        judge(Some(&Info::new(&info)), refusal, 0)
    }

    fn one(changes: &[(&str, &str)], refusal: Option<&str>) -> (Severity, String) {
        let found = of(changes, refusal);
        let [finding] = &found[..] else { panic!("{changes:?}: {found:?}") };
        (finding.severity, finding.to_string())
    }

    #[test]
    fn a_server_that_does_not_say_who_it_is_weakens_a_promise() {
        for line in ["run_id:1f\r\n", "master_replid:2e\r\n"] {
            assert!(one(&[(line, "")], None).1.contains("restart"), "{line}");
        }
    }

    #[test]
    fn a_healthy_server_is_nothing_to_find() {
        assert_eq!(of(&[], None), []);
        // One that tells nothing of itself is not even known to be there.
        assert_eq!(judge(Some(&Info::new("")), None, 0).len(), 1);
        assert_eq!(judge(None, None, 0), []);
    }

    #[test]
    fn a_server_that_evicts_is_an_error_with_a_limit_and_a_warning_without() {
        for policy in ["allkeys-lru", "volatile-ttl", "volatile-lru", "allkeys-random"] {
            let policy = format!("maxmemory_policy:{policy}\r\n");
            let changed = ("maxmemory_policy:noeviction\r\n", policy.as_str());
            let (severity, text) = one(&[changed, ("maxmemory:0", "maxmemory:1400000")], None);
            assert!(severity == Severity::Error && text.contains("CONFIG SET maxmemory-policy noeviction"), "{text}");
            let (severity, text) = one(&[changed], None);
            assert!(severity == Severity::Warning && text.contains("harmless"), "{text}");
        }
    }

    #[test]
    fn memory_that_is_nearly_full_is_a_warning_and_full_memory_an_error() {
        assert_eq!(of(&[("maxmemory:0", "maxmemory:2000000")], None), []);
        let near = ("maxmemory:0", "maxmemory:1400000");
        let (severity, text) = one(&[near], None);
        assert!(severity == Severity::Warning && text.contains("1400000 bytes"), "{text}");
        for error in ["OOM command not allowed", "@user_script: 1: -OOM command not allowed"] {
            let (severity, text) = one(&[near], Some(error));
            assert!(severity == Severity::Error && text.contains("full (maxmemory)"), "{text}");
        }
    }

    #[test]
    fn a_server_that_takes_no_writes_says_why() {
        for (error, part) in [
            ("NOREPLICAS Not enough good replicas to write.", "min-replicas-to-write"),
            ("MISCONF Redis is configured to save RDB snapshots, but", "disk"),
            ("READONLY You can't write against a read only replica.", "primary"),
        ] {
            let (severity, text) = one(&[], Some(error));
            assert!(severity == Severity::Error && text.contains(part), "{text}");
            assert_eq!(judge(None, Some(error), 0).len(), 1, "also where INFO is not permitted");
        }
        assert_eq!(of(&[], Some("ERR something else")), []);
    }

    #[test]
    fn a_replica_is_one_error_that_names_its_primary() {
        let replica = ("role:master", "role:slave\r\nmaster_host:10.0.0.7\r\nmaster_port:6379");
        for refusal in [None, Some("READONLY You can't write against a read only replica.")] {
            let (severity, text) = one(&[replica], refusal);
            assert!(severity == Severity::Error && text.contains("10.0.0.7:6379"), "{text}");
        }
    }

    #[test]
    fn replicas_that_nobody_waits_for_are_a_warning_unless_the_server_minds_them() {
        let attached = ("connected_slaves:0", "connected_slaves:2");
        let (severity, text) = one(&[attached], None);
        assert!(severity == Severity::Warning && text.contains("min-replicas-to-write"), "{text}");
        let minds = ("connected_slaves:0", "connected_slaves:2\r\nmin_slaves_good_slaves:2");
        assert_eq!(of(&[minds], None), []);
        assert_eq!(of(&[minds, ("redis_version:7.0.15", "redis_version:6.2.5")], None).len(), 1);
    }

    #[test]
    fn replicas_that_are_waited_for_have_to_be_there_and_had_better_be_all() {
        let line = |number: usize, state: &str| {
            format!("slave{number}:ip=10.0.0.{number},port=6379,state={state},offset=7,lag=0\r\n")
        };
        let of = |states: &[&str], needed: u8, as_node: bool| {
            let lines: String = states.iter().enumerate().map(|(number, state)| line(number, state)).collect();
            let info =
                HEALTHY.replace("connected_slaves:0\r\n", &format!("connected_slaves:{}\r\n{lines}", states.len()));
            let info = if as_node { Info::of_node(&info) } else { Info::new(&info) };
            let found = judge(Some(&info), None, needed);
            assert!(found.len() <= 1, "{states:?} {needed}: {found:?}");
            found.first().map(|finding| (finding.severity, finding.to_string()))
        };
        for (states, needed) in [(&["online", "online"][..], 2), (&["online"], 1), (&["online", "wait_bgsave"], 1)] {
            assert_eq!(of(states, needed, false), None, "{states:?}");
        }
        for states in [&["online"][..], &["online", "send_bulk"]] {
            let (severity, text) = of(states, 2, false).unwrap();
            assert!(severity == Severity::Error && text.contains("1 replicas in step, and 2 have to"), "{text}");
            assert!(text.contains("nobody leads") && text.contains("lower Config::replicas"), "{text}");
            assert_eq!(of(states, 2, true).unwrap().0, Severity::Error);
        }
        let (severity, text) = of(&["online", "online"], 1, false).unwrap();
        assert!(severity == Severity::Warning && text.contains("1 of the server's 2 replicas"), "{text}");
        assert!(text.contains("Config::replicas(2)"), "{text}");
        assert_eq!(of(&["online", "online"], 1, true), None);
    }

    #[test]
    fn a_server_that_sentinels_watch_needs_a_replica() {
        let of = |info: &str| without_replicas(&Info::new(info)).map(|finding| (finding.severity, finding.to_string()));
        assert!(matches!(of(HEALTHY), Some((Severity::Warning, text)) if text.contains("REPLICAOF")));
        assert_eq!(of(&HEALTHY.replace("connected_slaves:0", "connected_slaves:1")), None);
        // Which is an error of its own.
        assert_eq!(of(&HEALTHY.replace("role:master", "role:slave")), None);
    }

    #[test]
    fn the_versions_that_are_supported_begin_with_6_2() {
        for (version, supported) in
            [("5.0.7", false), ("6.0.16", false), ("6.2.5", true), ("8.2", true), ("10.0.1", true)]
        {
            let found = of(&[("redis_version:7.0.15", &format!("redis_version:{version}"))], None);
            assert_eq!(found.is_empty(), supported, "{version}: {found:?}");
        }
    }

    #[test]
    fn what_the_server_says_of_itself_is_shown_in_one_line() {
        let replica = ("role:master", "role:slave\r\nmaster_host:a\u{1b}[2J\r\nmaster_port:6\u{7}");
        assert!(one(&[replica], None).1.contains("of a?[2J:6?"));
        assert!(one(&[("noeviction", "a\u{1b}[2Jlru")], None).1.contains("is a?[2Jlru"));
    }

    #[test]
    fn a_server_of_a_cluster_and_one_that_loads_say_so() {
        let (severity, text) = one(&[("cluster_enabled:0", "cluster_enabled:1")], None);
        assert!(severity == Severity::Error && text.contains("CROSSSLOT"), "{text}");
        let (severity, text) = one(&[("\nloading:0", "\nloading:1")], None);
        assert!(severity == Severity::Warning && text.contains("loading"), "{text}");
    }
}
