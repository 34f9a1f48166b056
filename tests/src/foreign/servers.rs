//! What servers, sentinels and nodes say: whom they name can be asked, and what is made of their errors is one line.

use leader_core::testing::redis_script::{self, Named, Reply};

use super::assert_one_line;
use super::bytes::Bytes;
use super::replies::any;

const SLOTS: usize = 16_384;
const HOSTS: [&str; 9] = ["10.0.0.1", "fd00::1", "[fd00::1]", "node-1.internal", "", "?", "a b", "a\r\nb", "[]"];
/// Beginnings of lines that `INFO` has.
const INFO: [&str; 8] = [
    "redis_version:7.",
    "role:master\r\nconnected_slaves:",
    "role:slave\r\nmaster_host:",
    "master_port:",
    "maxmemory_policy:",
    "maxmemory:",
    "used_memory:",
    "slave0:state=online,ip=",
];

pub(super) fn property(bytes: &[u8]) {
    let mut bytes = Bytes::new(bytes);
    match bytes.below(5) {
        0 => redirections(&mut bytes),
        1 => slots(&mut bytes),
        2 => sentinels(&mut bytes),
        3 => {
            let error = redis_script::error(&bytes.rest());
            assert_one_line(&error.to_string());
            let _ = error.is_permanent();
        }
        _ => findings(&mut bytes),
    }
}

fn redirections(bytes: &mut Bytes<'_>) {
    let code = bytes.choice(&["MOVED", "ASK", "ERR", "moved", ""]);
    let slot = if bytes.flag() { bytes.number().to_string() } else { bytes.text() };
    let host = if bytes.flag() { bytes.choice(&HOSTS).to_owned() } else { bytes.text() };
    let port = bytes.choice(&["6379", "0", "65535", "65536", "+1", "x", ""]);
    if let Some(server) = redis_script::redirected(&format!("{code} {slot} {host}:{port}")) {
        assert!(["MOVED", "ASK"].contains(&code) && host != "?");
        assert_can_be_asked(&server);
    }
}

fn slots(bytes: &mut Bytes<'_>) {
    let ranges = (0..bytes.below(6)).map(|_| {
        let (begin, end) = (i64::from(bytes.byte()), bytes.choice(&[255, 16_383, 16_384, -1, i64::MAX]));
        let mut range = vec![Reply::Integer(begin), Reply::Integer(end)];
        range.extend((0..bytes.below(4)).map(|_| match bytes.byte() % 8 {
            0 => any(bytes, 1),
            _ => Reply::List(vec![host(bytes), Reply::Integer(bytes.choice(&[6379, 7000, 0, 65_535, 65_536, -1]))]),
        }));
        if bytes.byte().is_multiple_of(16) { any(bytes, 2) } else { Reply::List(range) }
    });
    let reply = Reply::List(ranges.collect());
    if let Some((nodes, uncovered)) = redis_script::owners(&reply) {
        assert!(uncovered <= SLOTS);
        assert_eq!(nodes.iter().any(|(_, has)| *has), uncovered < SLOTS, "{reply:?}");
        nodes.iter().for_each(|(node, _)| assert_can_be_asked(node));
    }
}

fn sentinels(bytes: &mut Bytes<'_>) {
    let port = Reply::Text(bytes.choice(&["6379", "0", "65536", "x", "+1"]).to_owned());
    let place = if bytes.byte().is_multiple_of(8) { any(bytes, 1) } else { Reply::List(vec![host(bytes), port]) };
    match redis_script::primary(place, any(bytes, 2)) {
        Ok(server) => assert_can_be_asked(&server),
        Err(cause) => assert_one_line(&cause),
    }
}

fn host(bytes: &mut Bytes<'_>) -> Reply {
    match bytes.below(4) {
        0 => Reply::Nil,
        1 => Reply::Text(bytes.text()),
        _ => Reply::Text(bytes.choice(&HOSTS).to_owned()),
    }
}

fn assert_can_be_asked((host, port): &Named) {
    let strange = |c: char| c.is_control() || c.is_whitespace() || "[]@/".contains(c);
    assert!(*port > 0 && !host.is_empty() && !host.contains(strange), "{host:?}:{port} cannot be asked");
}

fn findings(bytes: &mut Bytes<'_>) {
    let mut lease = vec![Reply::Text(bytes.choice(&["ours", "none", "error", "list"]).to_owned())];
    lease.push(Reply::Text(bytes.choice(&["pod-1", "", "e\u{1b}[2J"]).to_owned()));
    lease.push(Reply::Integer(bytes.number().cast_signed()));
    lease.push(Reply::Text(bytes.choice(&["ours", "error", "string"]).to_owned()));
    lease.push(Reply::Text(bytes.choice(&["pod-1", "pod-2"]).to_owned()));
    lease.push(Reply::Text(bytes.text()));
    let refusal = bytes.choice(&["OOM full", "READONLY", "NOREPLICAS", "MISCONF", "LOADING", "NOPERM", ""]);
    let mut info = bytes.text();
    let replicas = bytes.choice(&[0, 1, 2, 255]);
    for _ in 0..bytes.below(6) {
        let name = bytes.choice(&INFO);
        let value = if bytes.flag() { bytes.number().to_string() } else { bytes.text() };
        info.push_str(&format!("\r\n{name}{value}"));
    }
    // The ttl and the term.
    lease.extend([0, 1].map(|_| Reply::Text(if bytes.flag() { bytes.number().to_string() } else { bytes.text() })));
    for finding in redis_script::findings(&info, replicas, refusal, Reply::List(lease)) {
        assert_one_line(&finding.to_string());
    }
}
