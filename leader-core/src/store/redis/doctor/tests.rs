//! What a server is asked, and what it is not.

use std::sync::Mutex;

use super::super::connection::Pending;
use super::*;
use crate::doctor::Severity;
use crate::identity::{Candidate, Incarnation, InstanceId};

/// A server whose answers a test writes, and what it was asked.
struct Scripted<F> {
    answer: F,
    asked: Mutex<Vec<Request>>,
}

impl<F: Fn(&Request) -> Result<Reply, Failure> + Send + Sync + 'static> Link for Scripted<F> {
    fn run(&self, request: Request, _: Duration) -> Pending<'_, Reply> {
        let answer = (self.answer)(&request);
        self.asked.lock().unwrap().push(request);
        Box::pin(async { answer })
    }

    fn is_over(&self) -> bool {
        false
    }
}

fn denied_command(name: &str) -> Failure {
    Failure::Server(format!("NOPERM this user has no permissions to run the '{name}' command"))
}

fn is_of_leases(request: &Request) -> bool {
    request.arguments.first().is_some_and(|script| script == leases::SCRIPT.as_bytes())
}

/// What `TIME` answers where the clock is ahead by so much.
fn time(ahead: Duration) -> Reply {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap() + ahead;
    Reply::List([now.as_secs(), now.subsec_micros().into()].map(|part| Reply::Text(part.to_string())).into())
}

/// Of a server that is healthy, and has another one's lease under the key of each group.
fn healthy(request: &Request) -> Result<Reply, Failure> {
    let text = |text: &str| Reply::Text(text.to_owned());
    Ok(match request.name {
        "INFO" => text(
            "redis_version:7.0.15\r\nrun_id:1f\r\nrole:master\r\nmaster_replid:2e\r\ncluster_enabled:0\r\nloading:0\r\n",
        ),
        "SCRIPT" => text("5ca1ab1e"),
        "ACL" => text("app"),
        "TIME" => time(Duration::ZERO),
        "EVALSHA" | "EVAL" if !is_of_leases(request) => Reply::List(vec![]),
        "EVAL" => {
            let groups = std::str::from_utf8(&request.arguments[1]).unwrap().parse::<usize>().unwrap() / 2;
            let [ours, nothing] = [text("ours"), text("")];
            let one = vec![
                ours.clone(),
                text("other"),
                Reply::Integer(9),
                ours,
                nothing.clone(),
                nothing.clone(),
                nothing.clone(),
                nothing,
            ];
            let one = Reply::List(one);
            Reply::List(vec![one; groups])
        }
        name => panic!("{name} is none of the doctor's commands"),
    })
}

async fn examined(
    groups: usize,
    until: Instant,
    answer: impl Fn(&Request) -> Result<Reply, Failure> + Send + Sync + 'static,
) -> (Vec<Finding>, Vec<Request>) {
    examined_by(groups, until, false, None, answer).await
}

/// By sentinels, or with what was found out before.
async fn examined_by(
    groups: usize,
    until: Instant,
    sentinels: bool,
    memory: Option<&Memory>,
    answer: impl Fn(&Request) -> Result<Reply, Failure> + Send + Sync + 'static,
) -> (Vec<Finding>, Vec<Request>) {
    let link = Scripted { answer, asked: Mutex::default() };
    let examination = Examination {
        candidate: Candidate { id: InstanceId::new("me").unwrap(), incarnation: Incarnation::from_u128(1) },
        groups: (0..groups).map(|n| (GroupName::new(format!("g{n}")).unwrap(), Vec::new())).collect(),
        program: "billing".to_owned(),
        ttl: Duration::from_secs(10),
        timeout: Duration::from_secs(10),
    };
    let here = Here {
        keys: &Keys::new("leader:"),
        examination: &examination,
        deaf: None,
        shortest_quarantine: Duration::ZERO,
        twins: None,
        memory,
        replicas: 0,
        until,
    };
    let found = examine(&link, here, sentinels).await;
    let found = found.unwrap_or_else(|failure| vec![unchecked("all", &describe(failure))]);
    (found, link.asked.into_inner().unwrap())
}

fn in_time() -> Instant {
    Instant::now() + Duration::from_secs(600)
}

#[tokio::test]
async fn very_many_groups_are_asked_about_in_calls_of_few_and_found_in_one_finding() {
    let (found, asked) = examined(10_000, in_time(), healthy).await;
    assert_eq!(asked.iter().filter(|request| is_of_leases(request)).count(), 10_000 / AT_ONCE);
    assert!(found.len() == 1 && found[0].what.contains("and 9997 more"), "{found:?}");
    // INFO, the three ways to call a script, TIME.
    assert_eq!(asked.len(), 5 + 10_000 / AT_ONCE);
}

#[tokio::test]
async fn nothing_more_is_asked_on_a_link_that_has_failed_and_what_was_found_is_told() {
    let asked_about_leases = Mutex::new(0);
    let (found, asked) = examined(200, in_time(), move |request| {
        *asked_about_leases.lock().unwrap() += usize::from(is_of_leases(request));
        if *asked_about_leases.lock().unwrap() == 2 { Err(Failure::TimedOut) } else { healthy(request) }
    })
    .await;
    assert!(is_of_leases(&asked[asked.len() - 1]) && asked.iter().filter(|r| is_of_leases(r)).count() == 2);
    let [foreign, unchecked] = &found[..] else { panic!("{found:?}") };
    assert!(foreign.what.contains("and 47 more"), "{foreign}");
    assert_eq!(unchecked.severity, Severity::Warning);
    assert!(unchecked.what.contains("the keys of 150 group(s) could not be checked"), "{unchecked}");
}

#[tokio::test]
async fn when_the_time_is_over_nothing_is_asked() {
    let (found, asked) = examined(1, Instant::now(), healthy).await;
    assert!(asked.is_empty() && found.len() == 1 && found[0].what.contains("all could not be checked"), "{found:?}");
}

#[tokio::test]
async fn where_info_is_not_permitted_all_else_is_looked_at() {
    let (found, asked) = examined(1, in_time(), |request| match request.name {
        "INFO" => Err(denied_command("info")),
        "EVAL" | "EVALSHA" if !is_of_leases(request) => {
            let texts = ["info", "ERR The user executing the script can't run this command or subcommand"];
            Ok(Reply::List(vec![Reply::List(texts.map(|text| Reply::Text(text.to_owned())).into())]))
        }
        _ => healthy(request),
    })
    .await;
    assert!(asked.iter().any(is_of_leases));
    assert!(found.iter().any(|finding| finding.to_string().contains("ACL SETUSER app +info")), "{found:?}");
}

#[tokio::test]
async fn who_may_call_no_script_is_told_so_and_not_what_scripts_would_have_found() {
    let (found, asked) = examined(1, in_time(), |request| match request.name {
        "EVAL" => Err(denied_command("eval")),
        "EVALSHA" => Err(denied_command("evalsha")),
        // Nor may it ask who it is.
        "ACL" => Err(denied_command("acl|whoami")),
        _ => healthy(request),
    })
    .await;
    assert!(!asked.iter().any(is_of_leases));
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert!(finding.severity == Severity::Error && finding.advice.ends_with("ACL SETUSER <user> +evalsha +eval"));
}

#[tokio::test]
async fn a_server_of_a_cluster_or_one_that_loads_is_asked_no_more() {
    for line in ["cluster_enabled:1", "loading:1"] {
        let (found, asked) = examined(1, in_time(), move |_| {
            Ok(Reply::Text(format!("run_id:1f\r\nrole:master\r\nmaster_replid:2e\r\n{line}\r\n")))
        })
        .await;
        assert_eq!((found.len(), asked.len()), (1, 1), "{line}: {found:?}");
    }
}

#[tokio::test]
async fn a_server_whose_clock_is_set_from_one_look_to_the_next_is_found_by_what_the_same_elector_remembers() {
    let memory = Memory::default();
    let look = async |memory, ahead| {
        let ahead = Duration::from_secs(ahead);
        let answer = move |request: &Request| if request.name == "TIME" { Ok(time(ahead)) } else { healthy(request) };
        let (found, _) = examined_by(0, in_time(), false, memory, answer).await;
        found.into_iter().map(|finding| finding.code).collect::<Vec<_>>()
    };
    assert!(look(Some(&memory), 0).await.is_empty());
    assert_eq!(look(Some(&memory), 3600).await, ["clock-apart", "clock-jumped"]);
    assert_eq!(look(Some(&memory), 3600).await, ["clock-apart", "clock-jumped"], "for ten minutes");
    assert_eq!(look(Some(&Memory::default()), 3600).await, ["clock-apart"], "another elector has not seen it before");
}

#[tokio::test]
async fn a_server_that_does_not_tell_its_role_is_looked_at_all_the_same() {
    for error in ["ERR unknown command 'ROLE'", "LOADING Redis is loading the dataset in memory"] {
        let answer = move |request: &Request| match request.name {
            "ROLE" => Err(Failure::Server(error.to_owned())),
            _ => healthy(request),
        };
        let (found, asked) = examined_by(1, in_time(), true, None, answer).await;
        let codes: Vec<&str> = found.iter().map(|finding| finding.code).collect();
        assert_eq!(codes, ["no-replica", "foreign-lease"], "{error}: {found:?}");
        assert!(asked.iter().any(|request| request.name == "TIME") && asked.iter().any(is_of_leases), "{error}");
    }
}

#[tokio::test]
async fn settings_that_may_not_be_read_are_nothing_to_find_and_are_asked_for_once() {
    let memory = Memory::default();
    for attempts in [1, 0] {
        let answer = |request: &Request| match request.name {
            "INFO" => match healthy(request)? {
                Reply::Text(info) => Ok(Reply::Text(format!("{info}min_slaves_good_slaves:1\r\n"))),
                reply => panic!("{reply:?}"),
            },
            "CONFIG" => Err(denied_command("config|get")),
            _ => healthy(request),
        };
        let (found, asked) = examined_by(1, in_time(), false, Some(&memory), answer).await;
        let codes: Vec<&str> = found.iter().map(|finding| finding.code).collect();
        assert_eq!(codes, ["foreign-lease"], "{found:?}");
        assert_eq!(asked.iter().filter(|request| request.name == "CONFIG").count(), attempts);
    }
}
